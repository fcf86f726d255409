"""Contracts of every kind, drawn by seed: what a simulated target promises, and then keeps.

A target breaks its promise in one way only: a keyed one that states an in-flight bound may still
commit later than that. Its key keeps even such a write single; what was said of it may be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallystick.records import ContractRef, KeyStyle, ReadbackKind, ToolPolicy
from tests.simulation.dice import Dice

CONTRACT = ContractRef(name="simulated", version="1", hash="c" * 64)


@dataclass(frozen=True, slots=True)
class Kind:
    """How a tool can be written and looked at."""

    name: str
    key: KeyStyle
    read: ReadbackKind
    bounded: bool
    acknowledges: bool = False
    unique: bool = False


KINDS = (
    Kind("keyed_strong", KeyStyle.HEADER, ReadbackKind.STRONG, bounded=False),
    Kind("keyed_strong_bounded", KeyStyle.FIELD, ReadbackKind.STRONG, bounded=True),
    Kind("keyed_lagging", KeyStyle.HEADER, ReadbackKind.LAGGING, bounded=False),
    Kind("keyed_unread", KeyStyle.HEADER, ReadbackKind.NONE, bounded=False),
    Kind("keyed_certifying", KeyStyle.HEADER, ReadbackKind.NONE, bounded=False, acknowledges=True),
    Kind("natural_strong", KeyStyle.NATURAL, ReadbackKind.STRONG, bounded=True, unique=True),
    Kind("natural_lagging", KeyStyle.NATURAL, ReadbackKind.LAGGING, bounded=True, unique=True),
    Kind("natural_unbounded", KeyStyle.NATURAL, ReadbackKind.STRONG, bounded=False, unique=True),
    Kind("natural_unread", KeyStyle.NATURAL, ReadbackKind.NONE, bounded=False, unique=True),
    Kind("plain_strong", KeyStyle.NONE, ReadbackKind.STRONG, bounded=True),
    Kind("plain_strong_unbounded", KeyStyle.NONE, ReadbackKind.STRONG, bounded=False),
    Kind("plain_lagging", KeyStyle.NONE, ReadbackKind.LAGGING, bounded=True),
    Kind("plain_lagging_unbounded", KeyStyle.NONE, ReadbackKind.LAGGING, bounded=False),
    Kind("plain_unique", KeyStyle.NONE, ReadbackKind.STRONG, bounded=True, unique=True),
    Kind("plain_unread", KeyStyle.NONE, ReadbackKind.NONE, bounded=False),
    Kind("plain_certifying", KeyStyle.NONE, ReadbackKind.NONE, bounded=False, acknowledges=True),
)


def draw_policy(dice: Dice, kind: Kind, number: int) -> ToolPolicy:
    """The policy of one tool of this kind."""
    lagging = kind.read is ReadbackKind.LAGGING
    return ToolPolicy(
        tool=f"tool{number}",
        scope=dice.pick("scope", ("shop", "desk")),
        key_style=kind.key,
        readback=kind.read,
        acknowledgement=kind.acknowledges,
        read_first=kind.read is not ReadbackKind.NONE and dice.chance("read_first", 0.3),
        visibility_lag_ms=dice.between("lag", 200, 5_000) if lagging else 0,
        in_flight_ms=dice.between("bound", 1_500, 15_000) if kind.bounded else None,
        call_timeout_ms=dice.pick("timeout", (500, 1_000, 3_000)),
        attempts_max=dice.between("attempts", 1, 5),
        backoff_ms=dice.pick("backoff", (50, 200, 1_000)),
        backoff_ms_max=dice.pick("backoff_max", (1_000, 5_000)),
        compensation=None,
    )
