"""The life of one planned item, as data: (state, event) -> state.

Everything that may change an item's state is in this table; a pair that is absent is an error
of ours, and the partition stops rather than guess. `docs/item-states.md` is drawn from it.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

from processors.commits.state import ItemState as S
from tallystick.errors import InvariantBroken


class ItemEvent(StrEnum):
    """What can happen to an item; which one a fact amounts to is the folds' decision."""

    INTEND = "intend"
    CLAIM = "claim"
    ACKNOWLEDGE = "acknowledge"
    CERTIFY = "certify"
    CONFLICT = "conflict"
    REFUSE_AGAIN = "refuse_again"
    REFUSE_LAST = "refuse_last"
    REJECT = "reject"
    DOUBT_AGAIN = "doubt_again"
    DOUBT_HOLD = "doubt_hold"
    MATCH = "match"
    DIFFER = "differ"
    REPEAT = "repeat"
    ABSENT_AGAIN = "absent_again"
    ABSENT_LAST = "absent_last"
    GIVE_UP = "give_up"
    RECHECK = "recheck"
    REOPEN = "reopen"


E = ItemEvent

EVENT_MEANINGS = MappingProxyType(
    {
        E.INTEND: "an intent with the next attempt number leaves through the outbox",
        E.CLAIM: "a dispatcher logged that it is about to call",
        E.ACKNOWLEDGE: "the target (or a person) says that the item is there",
        E.CERTIFY: "an acknowledgement that is itself evidence, where nothing can be read",
        E.CONFLICT: "the target says that the item exists with different content",
        E.REFUSE_AGAIN: "not executed; another attempt follows after a backoff",
        E.REFUSE_LAST: "not executed, and no attempt is left",
        E.REJECT: "refused for good: permission, schema or business rule",
        E.DOUBT_AGAIN: "outcome unknown; the same key goes out again after a backoff",
        E.DOUBT_HOLD: "outcome unknown, and writing again could write twice",
        E.MATCH: "a fresh read found it once, with the planned content",
        E.DIFFER: "a fresh read found it with other content",
        E.REPEAT: "a fresh read found it more than once",
        E.ABSENT_AGAIN: "a conclusive read did not find it; it may be written (again)",
        E.ABSENT_LAST: "a conclusive read did not find it, and no attempt is left",
        E.GIVE_UP: "the deadline passed, or attempts ran out, before it left",
        E.RECHECK: "a new round reads it first",
        E.REOPEN: "a new round writes it, because nothing can be read",
    }
)

_ANSWERED = {
    E.ACKNOWLEDGE: S.WRITTEN,
    E.CERTIFY: S.VERIFIED,
    E.CONFLICT: S.DIFFERENT,
    E.REFUSE_AGAIN: S.BACKOFF,
    E.REFUSE_LAST: S.MISSING,
    E.REJECT: S.REJECTED,
    E.DOUBT_AGAIN: S.BACKOFF,
    E.DOUBT_HOLD: S.UNKNOWN,
}
_READ = {E.MATCH: S.VERIFIED, E.DIFFER: S.DIFFERENT, E.REPEAT: S.DUPLICATE}
_AGAIN = {E.RECHECK: S.CHECKING, E.REOPEN: S.PLANNED}

_TABLE: dict[S, dict[ItemEvent, S]] = {
    S.PLANNED: {E.INTEND: S.INTENDED, E.GIVE_UP: S.MISSING, E.DOUBT_HOLD: S.UNKNOWN},
    S.CHECKING: {
        **_READ,
        E.ABSENT_AGAIN: S.PLANNED,
        E.ABSENT_LAST: S.MISSING,
        E.DOUBT_HOLD: S.UNKNOWN,
        E.GIVE_UP: S.MISSING,
    },
    S.INTENDED: {**_ANSWERED, E.CLAIM: S.DISPATCHED, E.GIVE_UP: S.MISSING},
    S.DISPATCHED: {**_ANSWERED},
    S.BACKOFF: {**_ANSWERED, E.INTEND: S.INTENDED, E.GIVE_UP: S.MISSING},
    S.UNKNOWN: {
        **_ANSWERED,
        **_READ,
        **_AGAIN,
        E.ABSENT_AGAIN: S.PLANNED,
        E.ABSENT_LAST: S.MISSING,
    },
    S.WRITTEN: {
        **_READ,
        E.ACKNOWLEDGE: S.WRITTEN,
        E.CERTIFY: S.VERIFIED,
        E.ABSENT_LAST: S.MISSING,
        E.RECHECK: S.CHECKING,
    },
    S.REJECTED: {**_READ, **_AGAIN},
    S.MISSING: {**_ANSWERED, **_READ, **_AGAIN, E.CLAIM: S.DISPATCHED},
    S.VERIFIED: {},
    S.DIFFERENT: {E.RECHECK: S.CHECKING},
    S.DUPLICATE: {E.RECHECK: S.CHECKING},
}
TRANSITIONS = MappingProxyType(
    {(state, event): after for state, row in _TABLE.items() for event, after in row.items()}
)


def follow(state: S, event: ItemEvent) -> S:
    """The state after `event`; an absent pair raises InvariantBroken."""
    after = TRANSITIONS.get((state, event))
    if after is None:
        raise InvariantBroken(f"an item that is {state} cannot {event}", where="item transition")
    return after
