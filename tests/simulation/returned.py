"""Bugs of the fold that the simulator found, put back one at a time."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from msgspec.structs import replace

import processors.commits.advance as advance
import processors.commits.readbacks as readbacks
import processors.commits.supersede as supersede
import processors.commits.transitions as transitions
from processors.commits.state import Commit, Item, ItemState
from processors.commits.timing import can_repeat
from processors.commits.transitions import ItemEvent, follow
from tallystick.records import PlanRequest, ToolPolicy
from tests.simulation.plants import Bug


def _supersede_untimed(patch: pytest.MonkeyPatch) -> None:
    """A successor believes that a changed item's old write is not there, at the first miss."""
    real = supersede.supersede

    def untimed(old: Commit, request: PlanRequest, at_ms: int) -> Commit:
        commit = real(old, request, at_ms)
        items = tuple(
            replace(item, settled_at_ms=0) if not item.attempt else item
            for item in commit.head.items
        )
        return commit.with_head(items=items)

    patch.setattr("processors.commits.freeze.supersede", untimed)


def _own_key_is_safe(patch: pytest.MonkeyPatch) -> None:
    """Any key makes an inconclusive miss safe, also one that the target never saw."""

    def again(commit: Commit, item: Item, policy: ToolPolicy, asked_at_ms: int) -> Item:
        in_time = asked_at_ms < commit.head.cutoff_at_ms
        if item.state is ItemState.CHECKING and can_repeat(policy) and in_time:
            return replace(item, state=follow(item.state, ItemEvent.ABSENT_AGAIN))
        return item

    patch.setattr(readbacks, "_judge_inconclusive", again)


def _no_way_back_to_doubt(patch: pytest.MonkeyPatch) -> None:
    """An item that was about to leave again cannot be held back as unknown."""
    pair = (ItemState.PLANNED, ItemEvent.DOUBT_HOLD)
    table = {key: after for key, after in transitions.TRANSITIONS.items() if key != pair}
    patch.setattr(transitions, "TRANSITIONS", MappingProxyType(table))


def _hide_old_content(patch: pytest.MonkeyPatch) -> None:
    """What was to be overwritten, and never was, counts as missing."""
    patch.setattr(advance, "_not_hidden", lambda item: item)


def _differ_again(patch: pytest.MonkeyPatch) -> None:
    """A round that is given up makes a different item differ once more."""
    real = advance._last_word

    def last_word(commit: Commit, index: int, item: Item, at_ms: int) -> Item:
        if item.code == "content_differs" and item.differing:
            return replace(item, state=follow(item.state, ItemEvent.DIFFER), doubtful=())
        return real(commit, index, item, at_ms)

    patch.setattr(advance, "_last_word", last_word)


RETURNED = (
    Bug("a successor believes a miss before the old write can be seen", _supersede_untimed),
    Bug("a successor's own key is taken to make a miss safe", _own_key_is_safe),
    Bug("a read answered after the cut-off stops the partition", _no_way_back_to_doubt),
    Bug("what was to be overwritten is called missing", _hide_old_content),
    Bug("a different item that is to differ again stops the partition", _differ_again),
)
