"""The topic catalogue: complete, consistent with records and limits, and as documented."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from streams.catalogue import (
    CATALOGUE,
    FOREVER_MS,
    LARGE_BYTES,
    OUTBOX_MS,
    SPECS,
    TOMBSTONE_MS,
    Cleanup,
    Role,
    as_markdown,
    message_bytes_max,
)
from tallystick.codec_avro import RECORDS, AvroForms
from tallystick.keys import IDENTITY_BYTES_MAX
from tallystick.plans import ITEMS_MAX, PLAN_BYTES_MAX
from tallystick.protocol import COMMIT_WITHIN_MS_MAX
from tallystick.records import Plan, PlanAnswer, Readback, Record
from tallystick.topics import Topic
from tests.golden.samples import PLAN, RECEIPT, SAMPLES

DOCS = Path(__file__).parents[2] / "docs"
FORMS = AvroForms()


def test_every_topic_has_one_row_and_its_own_record() -> None:
    assert sorted(spec.topic for spec in CATALOGUE) == sorted(Topic)
    for topic, spec in SPECS.items():
        kind = RECORDS.get(topic)
        assert spec.record == ("" if kind is None else kind.__name__)


@pytest.mark.parametrize(
    "topic",
    [spec.topic for spec in CATALOGUE if spec.role in (Role.INPUT, Role.OUTPUT, Role.OUTBOX)],
)
def test_a_key_is_a_field_of_its_record(topic: Topic) -> None:
    fields = RECORDS[topic].__struct_fields__
    if topic is Topic.PLAN_REQUESTS:
        fields = Plan.__struct_fields__  # the key stands in the plan that the request carries
    assert SPECS[topic].key in fields


def test_what_a_replay_needs_is_kept_for_ever() -> None:
    for spec in CATALOGUE:
        if spec.role in (Role.INPUT, Role.OUTPUT, Role.ASIDE):
            assert (spec.cleanup, spec.retention_ms) == (Cleanup.DELETE, FOREVER_MS), spec.topic


def test_an_outbox_outlives_every_deadline() -> None:
    assert OUTBOX_MS > 2 * COMMIT_WITHIN_MS_MAX
    assert {spec.topic for spec in CATALOGUE if spec.retention_ms == OUTBOX_MS} == {
        Topic.INTENTS,
        Topic.READBACK_REQUESTS,
    }


def test_the_changelog_is_compacted_only_and_keeps_tombstones() -> None:
    config = SPECS[Topic.COMMITS_CHANGELOG].config(3)
    assert config["cleanup.policy"] == "compact"
    assert config["delete.retention.ms"] == str(TOMBSTONE_MS)
    assert [spec.topic for spec in CATALOGUE if spec.cleanup is Cleanup.COMPACT] == [
        Topic.COMMITS_CHANGELOG
    ]


@pytest.mark.parametrize(("copies", "needed"), [(1, "1"), (2, "1"), (3, "2"), (5, "2")])
def test_two_copies_are_needed_where_a_third_may_be_away(copies: int, needed: str) -> None:
    assert {spec.config(copies)["min.insync.replicas"] for spec in CATALOGUE} == {needed}


def test_time_is_the_logs_own_on_every_topic() -> None:
    assert {spec.config(1)["message.timestamp.type"] for spec in CATALOGUE} == {"LogAppendTime"}


def size(topic: Topic, record: Record) -> int:
    return len(FORMS.write(topic, record))


def largest() -> list[tuple[Topic, Record]]:
    """The largest records that a plan of ITEMS_MAX items and PLAN_BYTES_MAX bytes leads to."""
    name = "n" * (PLAN_BYTES_MAX // ITEMS_MAX - 100)
    assert len(name) <= IDENTITY_BYTES_MAX
    refs = ("r" * 64, "r" * 64)
    items = tuple(
        msgspec.structs.replace(
            RECEIPT.items[0], identity=f"{name}{i:04}", evidence_id="e" * 64, target_refs=refs
        )
        for i in range(ITEMS_MAX)
    )
    receipt = msgspec.structs.replace(RECEIPT, items=items)
    planned = tuple(
        msgspec.structs.replace(PLAN.items[0], identity=item.identity, payload="{}")
        for item in items
    )
    answer = SAMPLES[Topic.PLANS]
    readback = SAMPLES[Topic.READBACKS]
    assert isinstance(answer, PlanAnswer)
    assert isinstance(readback, Readback)
    found = tuple(
        msgspec.structs.replace(readback.found[0], identity=item.identity, target_refs=refs)
        for item in items
    )
    plan = msgspec.structs.replace(PLAN, items=planned)
    return [
        (Topic.RECEIPTS, receipt),
        (Topic.PLANS, msgspec.structs.replace(answer, plan=plan, receipt=receipt)),
        (Topic.READBACKS, msgspec.structs.replace(readback, found=found)),
    ]


@pytest.mark.parametrize(("topic", "record"), largest(), ids=lambda value: str(value)[:12])
def test_the_records_of_the_largest_plan_fit_their_topics(topic: Topic, record: Record) -> None:
    assert size(topic, record) < SPECS[topic].message_bytes_max == LARGE_BYTES


def test_a_dead_letter_can_wrap_the_largest_record() -> None:
    others = [spec for spec in CATALOGUE if spec.topic is not Topic.DEAD_LETTERS]
    room = SPECS[Topic.DEAD_LETTERS].message_bytes_max
    assert room == message_bytes_max()
    assert room >= max(spec.message_bytes_max for spec in others) + 65_536


def test_the_docs_print_the_catalogue_as_it_is() -> None:
    page = (DOCS / "topics.md").read_text(encoding="utf-8")
    assert as_markdown() in page
