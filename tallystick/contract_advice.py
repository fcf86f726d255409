"""What a valid contract still cannot give: the gaps its owner may want to close.

A fault is refused; advice is not. It follows from the protocol alone (DESIGN.md, steps 5 and 7):
how an unknown outcome is settled, and what a receipt could rest on.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallystick.contract_model import ReadBy, Tool
from tallystick.contracts import Contract
from tallystick.records.plans import KeyStyle, ReadbackKind


@dataclass(frozen=True, slots=True)
class Advice:
    """One gap: its place, what it costs, and what would close it."""

    path: str
    message: str
    fix: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message} ({self.fix})"


def advise(contract: Contract) -> tuple[Advice, ...]:
    """Every gap, tool by tool."""
    return tuple(
        advice for name, tool in contract.tools.items() for advice in _of(f"$.tools.{name}", tool)
    )


def _of(path: str, tool: Tool) -> list[Advice]:
    found = []
    readable = tool.readback.kind is not ReadbackKind.NONE
    unkeyed = tool.key.style is KeyStyle.NONE
    if not readable and not tool.response.acknowledgement:
        found.append(
            Advice(
                path,
                "nothing can verify a write, so no receipt is possible",
                "add a 'readback', or 'response.acknowledgement' with the target's own id",
            )
        )
    if unkeyed and not readable:
        found.append(
            Advice(
                f"{path}.key",
                "an unknown outcome stays unknown until a person settles it",
                "have the target take an idempotency key, or make it readable",
            )
        )
    if unkeyed and readable and tool.in_flight_ms is None:
        found.append(
            Advice(
                f"{path}.in_flight_ms",
                "without a key or a bound, a read that misses an item proves nothing",
                "state how long a request may still take effect, or have the target take a key",
            )
        )
    if unkeyed and readable and tool.readback.by is ReadBy.IDENTITY and not tool.readback.items:
        found.append(
            Advice(
                f"{path}.readback.by",
                "a read of one object cannot show that there are two",
                "read by 'list', or by a search whose 'items' is an array",
            )
        )
    return found
