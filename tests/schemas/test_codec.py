"""Bytes: what we write is read back, what was ever recorded stays readable, the rest is refused."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.codec import SCHEMA_HEADER, FingerprintCodec
from tallystick.codec_avro import RECORDS
from tallystick.errors import CallerError, UndecodableRecord
from tallystick.records import (
    VERIFIED,
    Attempt,
    AttemptOutcome,
    Effect,
    EffectStatus,
    ItemStatus,
    PartialReason,
    PartialSuccess,
    PlanAnswer,
    PlanVerdict,
    Receipt,
    Record,
    Resolution,
    ResolutionVerdict,
    Tick,
)
from tallystick.schemas import SCHEMA_TOPICS, released_texts, schema_id
from tallystick.topics import Topic
from tests.golden.samples import FOLDER, SAMPLES
from tests.schemas.strategies import any_record

CODEC = FingerprintCodec()
GOLDEN = sorted(path for path in FOLDER.glob("v*/*.bin"))
FUTURE = sorted((FOLDER / "future").glob("*.bin"))


def writer_header(path: Path) -> list[tuple[str, bytes]]:
    """The header under which a release sent its bytes: its own schema, or the last before it."""
    release = int(path.parent.name[1:])
    texts = [text for version, text in released_texts(path.stem) if int(version[1:]) <= release]
    return [(SCHEMA_HEADER, schema_id(texts[-1]).encode())]


def within(expected: Any, actual: Any) -> bool:
    """Whether everything expected is there; fields that came later may stand beside it."""
    if isinstance(expected, dict):
        return all(name in actual and within(part, actual[name]) for name, part in expected.items())
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(map(within, expected, actual))
    return bool(expected == actual)


def named(paths: list[Path]) -> list[Any]:
    return [pytest.param(path, id=f"{path.parent.name}-{path.stem}") for path in paths]


@given(st.sampled_from(SCHEMA_TOPICS), st.data())
def test_any_record_is_read_back_as_it_was(topic: Topic, data: st.DataObject) -> None:
    record = data.draw(any_record(RECORDS[topic]))
    value, headers = CODEC.encode(topic, record)
    assert CODEC.decode(topic, value, headers) == record


@pytest.mark.parametrize("path", named(GOLDEN))
def test_golden_bytes_are_read_as_the_record_they_were(path: Path) -> None:
    record = CODEC.decode(path.stem, path.read_bytes(), writer_header(path))
    assert within(json.loads(path.with_suffix(".json").read_bytes()), json.loads(_json(record)))


@pytest.mark.parametrize("path", named(GOLDEN))
def test_golden_bytes_cut_anywhere_are_refused(path: Path) -> None:
    raw, header = path.read_bytes(), writer_header(path)
    for end in range(len(raw)):
        with pytest.raises(UndecodableRecord):
            CODEC.decode(path.stem, raw[:end], header)


@pytest.mark.parametrize("path", named(GOLDEN))
@pytest.mark.parametrize("rubbish", [b"\x00", b"\xff", b"rubbish"])
def test_golden_bytes_with_trailing_rubbish_are_refused(path: Path, rubbish: bytes) -> None:
    with pytest.raises(UndecodableRecord, match=f"{len(rubbish)} bytes follow the record"):
        CODEC.decode(path.stem, path.read_bytes() + rubbish, writer_header(path))


@pytest.mark.parametrize("path", named(GOLDEN))
def test_a_damaged_byte_never_raises_anything_but_undecodable(path: Path) -> None:
    raw, header = path.read_bytes(), writer_header(path)
    for place in range(len(raw)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = raw[:place] + bytes([raw[place] ^ flip]) + raw[place + 1 :]
            with contextlib.suppress(UndecodableRecord):
                record = CODEC.decode(path.stem, damaged, header)
                assert type(record) is RECORDS[path.stem]


@given(st.sampled_from(SCHEMA_TOPICS), st.binary(max_size=200))
def test_random_bytes_never_raise_anything_but_undecodable(topic: Topic, raw: bytes) -> None:
    _, headers = CODEC.encode(topic, SAMPLES[topic])
    try:
        record = CODEC.decode(topic, raw, headers)
    except UndecodableRecord:
        return
    assert type(record) is RECORDS[topic]


def test_every_release_recorded_every_topic_it_had() -> None:
    assert {path.stem for path in GOLDEN if path.parent.name == "v1"} == set(SCHEMA_TOPICS)
    assert set(SAMPLES) == set(SCHEMA_TOPICS)


def future_codec(topic: str) -> FingerprintCodec:
    text = (FOLDER / "future" / f"{topic}.avsc").read_text(encoding="utf-8")
    return FingerprintCodec(extra_schemas={topic: [text]})


def from_the_future(topic: Topic) -> Record:
    schema = (FOLDER / "future" / f"{topic}.avsc").read_text(encoding="utf-8")
    headers = [(SCHEMA_HEADER, schema_id(schema).encode())]
    raw = (FOLDER / "future" / f"{topic}.bin").read_bytes()
    return future_codec(topic).decode(topic, raw, headers)


def test_case_76_a_status_from_the_future_reads_as_unknown_and_never_as_success() -> None:
    attempt = from_the_future(Topic.ATTEMPTS)
    effect = from_the_future(Topic.EFFECTS)
    answer = from_the_future(Topic.PLANS)
    receipt = from_the_future(Topic.RECEIPTS)
    partial = from_the_future(Topic.PARTIALS)
    resolution = from_the_future(Topic.RESOLUTIONS)
    assert isinstance(attempt, Attempt)
    assert attempt.outcome is AttemptOutcome.UNKNOWN
    assert isinstance(effect, Effect)
    assert effect.status is EffectStatus.UNKNOWN
    assert isinstance(answer, PlanAnswer)
    assert answer.verdict is PlanVerdict.UNKNOWN
    assert isinstance(partial, PartialSuccess)
    assert partial.reason is PartialReason.UNKNOWN
    assert isinstance(resolution, Resolution)
    assert resolution.verdict is ResolutionVerdict.UNKNOWN
    assert isinstance(receipt, Receipt)
    assert [item.status in VERIFIED for item in receipt.items] == [False, True]
    assert receipt.items[0].status is ItemStatus.UNKNOWN


@pytest.mark.parametrize("path", named(FUTURE))
def test_the_rest_of_a_record_from_the_future_is_kept(path: Path) -> None:
    topic = Topic(path.stem)
    told = json.loads(_json(from_the_future(topic)))
    sample = json.loads(_json(SAMPLES[topic]))
    assert told.keys() == sample.keys()
    assert told["commit_key"] == sample["commit_key"]
    assert sum(told[name] != sample[name] for name in told) == 1


@pytest.mark.parametrize("path", named(FUTURE))
def test_bytes_of_an_unknown_schema_are_refused_rather_than_guessed(path: Path) -> None:
    schema = path.with_suffix(".avsc").read_text(encoding="utf-8")
    headers = [(SCHEMA_HEADER, schema_id(schema).encode())]
    with pytest.raises(UndecodableRecord, match="no schema of this topic has the fingerprint"):
        CODEC.decode(path.stem, path.read_bytes(), headers)


TICK = Tick(partition=1, at_ms=2)
RAW, HEADERS = CODEC.encode(Topic.COMMITS_TICKS, TICK)


@pytest.mark.parametrize(
    ("topic", "value", "headers", "says"),
    [
        (Topic.COMMITS_TICKS, None, HEADERS, "value is null"),
        (Topic.COMMITS_TICKS, RAW, None, "header tally_schema is missing"),
        (Topic.COMMITS_TICKS, RAW, [("ce_id", b"1")], "header tally_schema is missing"),
        (Topic.COMMITS_TICKS, RAW, [(SCHEMA_HEADER, None)], "header tally_schema is missing"),
        (Topic.COMMITS_TICKS, RAW, [(SCHEMA_HEADER, b"0" * 16)], "no schema of this topic"),
        (Topic.COMMITS_TICKS, b"", HEADERS, "bytes do not follow their schema"),
        (Topic.ATTEMPTS, RAW, HEADERS, "no schema of this topic"),
        ("nonsense", RAW, HEADERS, "no schema of this topic"),
        (Topic.COMMITS_CHANGELOG, RAW, HEADERS, "no schema of this topic"),
    ],
)
def test_what_is_no_record_is_refused_with_the_reason(
    topic: str, value: bytes | None, headers: Any, says: str
) -> None:
    with pytest.raises(UndecodableRecord, match=says) as caught:
        CODEC.decode(topic, value, headers)
    assert caught.value.where == topic


def test_headers_may_come_as_a_mapping_or_beside_others() -> None:
    mark = HEADERS[0][1]
    assert CODEC.decode(Topic.COMMITS_TICKS, RAW, {SCHEMA_HEADER: mark}) == TICK
    assert CODEC.decode(Topic.COMMITS_TICKS, RAW, [(SCHEMA_HEADER, mark.decode())]) == TICK
    assert CODEC.decode(Topic.COMMITS_TICKS, RAW, [("ce_id", b"1"), *HEADERS]) == TICK


def test_a_callers_header_list_is_its_own() -> None:
    _, headers = CODEC.encode(Topic.COMMITS_TICKS, TICK)
    headers.append(("ce_id", b"1"))
    assert CODEC.encode(Topic.COMMITS_TICKS, TICK)[1] == HEADERS


@pytest.mark.parametrize(
    ("topic", "record", "says"),
    [
        (Topic.ATTEMPTS, TICK, "a Tick does not belong on this topic"),
        (Topic.COMMITS_CHANGELOG, TICK, "a Tick does not belong on this topic"),
        (Topic.COMMITS_TICKS, Tick(partition=2**63, at_ms=1), "cannot be written"),
        (
            Topic.RESOLUTIONS,
            msgspec.structs.replace(SAMPLES[Topic.RESOLUTIONS], evidence="\ud800"),
            "cannot be written",
        ),
    ],
)
def test_what_cannot_be_written_is_refused(topic: Topic, record: Record, says: str) -> None:
    with pytest.raises(CallerError, match=says):
        CODEC.encode(topic, record)


def _json(record: Record) -> bytes:
    return msgspec.json.encode(record)
