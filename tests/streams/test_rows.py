"""Row keys are unambiguous whatever a key holds, and timers sort by time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streams.rows import (
    pack_ms,
    parse_state_row,
    parse_timer_row,
    state_row,
    timer_floor,
    timer_row,
    unpack_ms,
)

keys = st.text(max_size=20)
times = st.integers(min_value=0, max_value=2**63)


@given(keys, st.integers(min_value=0, max_value=65_535))
def test_a_state_row_says_whose_and_which(key: str, index: int) -> None:
    assert parse_state_row(state_row(key, index)) == (key, index)


@given(st.tuples(keys, st.integers(0, 300)), st.tuples(keys, st.integers(0, 300)))
def test_two_rows_are_equal_only_if_key_and_index_are(
    one: tuple[str, int], other: tuple[str, int]
) -> None:
    assert (state_row(*one) == state_row(*other)) == (one == other)


@given(st.tuples(times, keys), st.tuples(times, keys))
def test_timers_sort_by_time(one: tuple[int, str], other: tuple[int, str]) -> None:
    assert parse_timer_row(timer_row(*one)) == one
    if one[0] < other[0]:
        assert timer_row(*one) < timer_floor(other[0]) <= timer_row(*other)


@given(times)
def test_a_pushed_time_is_kept(at_ms: int) -> None:
    assert unpack_ms(pack_ms(at_ms)) == at_ms


def test_a_row_of_another_kind_is_no_state_row() -> None:
    assert parse_state_row(timer_row(1, "s")) is None
