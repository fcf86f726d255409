"""The transition table: every pair it names, and every pair it does not."""

from __future__ import annotations

import itertools

import pytest

from processors.commits.state import ItemState
from processors.commits.transitions import EVENT_MEANINGS, TRANSITIONS, ItemEvent, follow
from tallystick.errors import InvariantBroken

PAIRS = list(itertools.product(ItemState, ItemEvent))


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=lambda value: str(value))
def test_a_pair_is_followed_or_refused_as_the_table_says(
    state: ItemState, event: ItemEvent
) -> None:
    if (state, event) in TRANSITIONS:
        assert follow(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(InvariantBroken, match=f"{state} cannot {event}"):
            follow(state, event)


def test_nothing_leaves_the_verified_state() -> None:
    assert not [pair for pair in TRANSITIONS if pair[0] is ItemState.VERIFIED]


def test_unknown_is_left_by_an_answer_a_read_or_a_new_round_only() -> None:
    events = {event for state, event in TRANSITIONS if state is ItemState.UNKNOWN}
    assert ItemEvent.INTEND not in events
    assert ItemEvent.GIVE_UP not in events


def test_every_state_can_be_reached_and_every_event_has_a_meaning() -> None:
    reached = {ItemState.PLANNED, *TRANSITIONS.values()}
    assert reached == set(ItemState)
    assert set(EVENT_MEANINGS) == set(ItemEvent)
