"""Records to Avro bytes and back, under a named writer schema; no framing, no headers, no I/O.

Every schema that was ever released may be the writer; the reader is always the current one, so
Avro's own resolution fills added fields with defaults and turns unknown symbols into `unknown`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import fastavro
import msgspec
from fastavro.read import SchemaResolutionError

from tallystick import records
from tallystick.errors import CallerError, UndecodableRecord
from tallystick.records import Record
from tallystick.schemas import parsed, schema_text
from tallystick.topics import Topic

RECORDS: Mapping[str, type[Record]] = MappingProxyType(
    {
        Topic.PLAN_REQUESTS: records.PlanRequest,
        Topic.ATTEMPTS: records.Attempt,
        Topic.READBACKS: records.Readback,
        Topic.RESOLUTIONS: records.Resolution,
        Topic.COMMITS_TICKS: records.Tick,
        Topic.EVIDENCE: records.EvidenceSnapshot,
        Topic.PLANS: records.PlanAnswer,
        Topic.INTENTS: records.Intent,
        Topic.READBACK_REQUESTS: records.ReadbackRequest,
        Topic.MUTATIONS: records.Mutation,
        Topic.VERIFICATIONS: records.Verification,
        Topic.RECEIPTS: records.Receipt,
        Topic.PARTIALS: records.PartialSuccess,
        Topic.EFFECTS: records.Effect,
        Topic.DEAD_LETTERS: records.DeadLetter,
    }
)
"""The one record type of every topic (`schemas/<topic>.avsc` describes it)."""

_UNREADABLE = (
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    SchemaResolutionError,
    TypeError,
    ValueError,
    msgspec.ValidationError,
)
_UNWRITABLE = (AttributeError, OverflowError, TypeError, ValueError)


class AvroForms:
    """The parsed schemas of every topic, each parsed once, at its first use."""

    def __init__(self) -> None:
        self._current: dict[str, Any] = {}

    def current(self, topic: str) -> Any:
        """The schema that records of `topic` are written with."""
        schema = self._current.get(topic)
        if schema is None:
            schema = self._current[topic] = parsed(schema_text(topic))
        return schema

    def write(self, topic: str, record: Record) -> bytes:
        """The record's Avro value; raises CallerError if it is not one of the topic's."""
        if type(record) is not RECORDS.get(topic):
            raise CallerError(
                f"a {type(record).__name__} does not belong on this topic",
                where=topic,
                fix="send it to the topic of its type",
            )
        sink = io.BytesIO()
        try:
            fastavro.schemaless_writer(
                sink, self.current(topic), msgspec.to_builtins(record, builtin_types=(bytes,))
            )
        except _UNWRITABLE as error:
            raise CallerError(
                f"{type(record).__name__} cannot be written: {error}",
                where=topic,
                fix="use whole Unicode text and 64-bit numbers",
            ) from error
        return sink.getvalue()

    def read(self, topic: str, raw: bytes, writer: Any) -> Record:
        """The record in `raw`, written with `writer`; raises UndecodableRecord."""
        kind = RECORDS.get(topic)
        if kind is None:
            undecodable(topic, "no record type is known for this topic", "check the topic prefix")
        reader = self.current(topic)
        source = io.BytesIO(raw)
        try:
            value = fastavro.schemaless_reader(source, writer, None if writer is reader else reader)
            record = msgspec.convert(value, kind, builtin_types=(bytes,))
        except _UNREADABLE as error:
            told = str(error) or type(error).__name__
            undecodable(topic, f"bytes do not follow their schema: {told}", "look at the producer")
        if source.tell() != len(raw):
            spare = len(raw) - source.tell()
            undecodable(topic, f"{spare} bytes follow the record", "look at the producer")
        return record


def undecodable(topic: str, reason: str, fix: str) -> NoReturn:
    """Refuse a record's bytes; the loop moves it to `dead-letters`."""
    raise UndecodableRecord(reason, where=topic, fix=fix)
