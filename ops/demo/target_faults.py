"""Fault switches of the demo target: which one bites which request, and how often. Pure."""

from __future__ import annotations

from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec


class FaultKind(StrEnum):
    """What goes wrong; the first four refuse before the commit, the rest act around it."""

    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    ERROR_500_BEFORE = "error_500_before"
    REJECT = "reject"
    WRONG_CONTENT = "wrong_content"
    DUPLICATE_DELIVERY = "duplicate_delivery"
    LATE_COMMIT = "late_commit"
    SLOW_READBACK = "slow_readback"
    ACK_LOST = "ack_lost"
    ERROR_500_AFTER_COMMIT = "error_500_after_commit"
    LATENCY = "latency"


class Fault(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One switch. It bites `count` times (None: always) where case, pattern and module match.

    `delay_ms`: how late a late commit commits, how long a slow read or any answer takes.
    `lag_ms`: how long a committed row stays out of reads (slow_readback). `hang`: a lost
    acknowledgement never comes instead of the connection closing. `conflict`: a repeated key
    gets 409 while its late commit is under way. `retry_after_s` goes with 429 and 503.
    `title` is what wrong_content stores.
    """

    kind: FaultKind
    case_id: str | None = None
    pattern: str | None = None
    module: str | None = None
    count: int | None = None
    delay_ms: int = 0
    lag_ms: int = 0
    hang: bool = False
    conflict: bool = False
    retry_after_s: int = 1
    title: str = "something else"

    def matches(self, module: str, case_id: str) -> bool:
        """Whether this switch is meant for this case."""
        return (
            (self.case_id is None or self.case_id == case_id)
            and (self.pattern is None or fnmatchcase(case_id, self.pattern))
            and (self.module is None or self.module == module)
        )


class Faults:
    """The switches that are on, in the order in which they were set."""

    def __init__(self) -> None:
        self._on: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Switch one on."""
        self._on.append(fault)

    def clear(self) -> None:
        """Switch all off."""
        self._on.clear()

    def take(self, module: str, case_id: str, *kinds: FaultKind) -> Fault | None:
        """The first matching switch of these kinds, one bite used up."""
        for fault in self._on:
            if fault.kind in kinds and fault.matches(module, case_id):
                return self._bite(fault)
        return None

    def take_unseen(self, module: str, case_id: str) -> Fault | None:
        """The switch that keeps this case's new row out of reads for a while."""
        for fault in self._on:
            lags = fault.kind is FaultKind.SLOW_READBACK and fault.lag_ms > 0
            if lags and fault.matches(module, case_id):
                return self._bite(fault)
        return None

    def take_slow(self, module: str, case_id: str | None) -> Fault | None:
        """The switch that slows this read; a listing (None) is slowed by any of its module."""
        for fault in self._on:
            if fault.kind is FaultKind.SLOW_READBACK and fault.delay_ms:
                named = case_id is not None and fault.matches(module, case_id)
                if named or (case_id is None and fault.module in (None, module)):
                    return self._bite(fault)
        return None

    def _bite(self, fault: Fault) -> Fault:
        if fault.count is not None:
            fault.count -= 1
            if fault.count <= 0:
                self._on.remove(fault)
        return fault
