"""A stage fits its topics, or refuses in one line that says which do not."""

from __future__ import annotations

import pytest

from streams.stages import STAGES
from streams.topology import check_partitions, check_position_note, position_note
from tallystick.errors import TopicMismatch
from tests.streams.toy import toy_stage

STAGE = toy_stage()
COUNTS = dict.fromkeys((f"t.{topic}" for topic in STAGE.co_partitioned), 4) | {"t.dead-letters": 1}


def test_equal_counts_pass_whatever_dead_letters_has() -> None:
    assert check_partitions(STAGE, "t.", COUNTS) == 4


def test_31_a_topic_with_another_count_is_refused_by_name() -> None:
    with pytest.raises(TopicMismatch, match=r"t\.resolutions=5"):
        check_partitions(STAGE, "t.", {**COUNTS, "t.resolutions": 5})


def test_a_missing_topic_is_refused_by_name() -> None:
    counts = {name: count for name, count in COUNTS.items() if name != "t.dead-letters"}
    with pytest.raises(TopicMismatch, match=r"do not exist: t\.dead-letters"):
        check_partitions(STAGE, "t.", counts)


def test_31_positions_of_another_count_are_refused() -> None:
    check_position_note(position_note(4), 4, "group")
    check_position_note(None, 4, "group")
    check_position_note("someone else's note", 4, "group")
    with pytest.raises(TopicMismatch, match="with 4 partitions, now there are 8"):
        check_position_note(position_note(4), 8, "group")


def test_names_are_stable_for_a_slot() -> None:
    assert STAGE.group("t.") == "t.toy"
    assert STAGE.transactional_id("t.", "w-0") == "t.toy-w-0"


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_describes_every_topic_it_touches(name: str) -> None:
    stage = STAGES[name]
    text = stage.describe()
    for topic in (*stage.co_partitioned, *stage.spread_outputs, stage.dead_letters):
        assert f" {topic}" in text
