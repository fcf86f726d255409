"""What every target offers: write one intent, read back one request. Knows no wire format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tallystick.records import AttemptOutcome, ErrorClass, Intent, Readback, ReadbackRequest


@dataclass(frozen=True, slots=True)
class CallResult:
    """What is known of one call; the fields are those of a settled attempt."""

    outcome: AttemptOutcome
    error_class: ErrorClass
    code: str
    detail: str
    retry_after_ms: int | None
    target_ref: str | None
    elapsed_ms: int


class Target(Protocol):
    """One system that effects are written to, behind one contract."""

    async def write(self, intent: Intent, *, send_within_ms: int | None = None) -> CallResult:
        """Make exactly one attempt; never raises for what the target or the wire does.

        `send_within_ms` is what is left of the claim's send window: if no connection stands by
        then, nothing is sent. Cancellation leaves the outcome unknown.
        """

    async def read(self, request: ReadbackRequest) -> Readback:
        """Look freshly; a failure is told in the answer's `error` fields, never raised."""

    async def close(self) -> None:
        """Give the connections back."""
