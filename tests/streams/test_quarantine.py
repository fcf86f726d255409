"""Every refusal leads somewhere: a mark, a smaller letter, a narrower batch, or a stop."""

from __future__ import annotations

import pytest

from streams.quarantine import Mark, Quarantine
from streams.source import Cause, Flaw
from tallystick.errors import OperatorError

ONE = Cause("attempts", 0, 5)
OTHER = Cause("attempts", 0, 6)


def test_a_blamed_record_is_marked_until_its_letter_is_committed() -> None:
    quarantine = Quarantine()
    quarantine.blame(ONE, Flaw("fold_failed", "why"))
    assert quarantine.mark_of(ONE) == Mark(Flaw("fold_failed", "why"))
    quarantine.settle([], 3)
    assert quarantine.mark_of(ONE) is not None
    quarantine.settle([ONE], 1)
    assert quarantine.mark_of(ONE) is None


def test_a_refused_letter_leaves_out_the_value_and_a_refused_small_letter_stops() -> None:
    quarantine = Quarantine()
    quarantine.refuse([ONE], "too large", 1)
    assert quarantine.mark_of(ONE) == Mark(Flaw("output_refused", "too large"))
    quarantine.refuse([ONE], "letter too large", 1)
    assert quarantine.mark_of(ONE) == Mark(Flaw("output_refused", "too large"), whole=False)
    with pytest.raises(OperatorError, match=r"max\.message\.bytes"):
        quarantine.refuse([ONE], "still too large", 1)


def test_several_refused_causes_are_tried_one_by_one_before_any_is_blamed() -> None:
    quarantine = Quarantine()
    quarantine.refuse([ONE, OTHER], "too large", 4)
    assert quarantine.alone
    assert quarantine.mark_of(ONE) is None
    for _ in range(4):
        assert quarantine.alone
        quarantine.settle([], 1)
    assert not quarantine.alone


def test_a_refused_tick_stops_the_stage() -> None:
    with pytest.raises(OperatorError):
        Quarantine().refuse([Cause("commits-ticks", 0, -1)], "no", 1)
