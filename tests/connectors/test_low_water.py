"""Committed positions never pass unfinished work, whatever the order in which it ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connectors.low_water import LowWater

PLACE = ("requests", 0)


def test_a_position_waits_for_the_oldest_open_record() -> None:
    water = LowWater()
    for offset in (5, 6, 9):
        water.take(*PLACE, offset)
    water.finish(*PLACE, 6)
    water.finish(*PLACE, 9)
    assert water.advance() == {}
    water.finish(*PLACE, 5)
    assert water.advance() == {PLACE: 10}
    assert water.advance() == {}


def test_a_dropped_partition_is_forgotten() -> None:
    water = LowWater()
    water.take(*PLACE, 5)
    water.drop(*PLACE)
    water.finish(*PLACE, 5)
    assert water.advance() == {}
    assert water.open_count == 0


@given(st.permutations(range(12)), st.integers(0, 12))
def test_no_position_passes_an_open_record(order: list[int], finished: int) -> None:
    water = LowWater()
    for offset in range(12):
        water.take(*PLACE, offset)
    for offset in order[:finished]:
        water.finish(*PLACE, offset)
    position = water.advance().get(PLACE, 0)
    open_offsets = order[finished:]
    assert position == min(open_offsets, default=12)
    assert water.open_count == len(open_offsets)
