"""One input record as the loop and the replay both see it, and the cause it is for its outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message

from tallystick.codec import Codec
from tallystick.errors import TopicMismatch, UndecodableRecord
from tallystick.records import Record
from tallystick.topics import short_name

Header = tuple[str, bytes]


class Cause(NamedTuple):
    """What an output came from: an input record, or a key that the tick at that place woke."""

    topic: str
    partition: int
    offset: int
    woken: str | None = None


class Flaw(NamedTuple):
    """Why a record cannot be folded; `code` is stable, `reason` is for people."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A consumed record, decoded; with a `flaw` there is nothing to fold.

    `topic` is without prefix. `at_ms` is the log's own time, stamped by the broker on append.
    """

    topic: str
    partition: int
    offset: int
    at_ms: int
    raw_key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    key: str = ""
    record: Record | None = None
    flaw: Flaw | None = None

    @property
    def cause(self) -> Cause:
        """This record as a cause."""
        return Cause(self.topic, self.partition, self.offset)

    @property
    def traceparent(self) -> bytes | None:
        """The W3C trace context that the record carries, if any."""
        for name, content in self.headers:
            if name == "traceparent":
                return content
        return None


def read_message(message: Message, prefix: str, codec: Codec) -> LogRecord:
    """A consumed message as a LogRecord; bytes that cannot be decoded become its flaw.

    Raises TopicMismatch if the topic is stamped by producers: folds rest on log time.
    """
    name = message.topic() or ""
    stamp = message.timestamp()
    if stamp[0] != TIMESTAMP_LOG_APPEND_TIME:
        raise TopicMismatch(
            "records carry their producer's time, not the log's",
            where=f"topic {name}",
            fix="set message.timestamp.type=LogAppendTime, as `tallystick topics create` does",
        )
    return decode(
        LogRecord(
            topic=short_name(prefix, name),
            partition=message.partition() or 0,
            offset=message.offset() or 0,
            at_ms=stamp[1],
            raw_key=_bytes(message.key()),
            value=_bytes(message.value()),
            headers=_headers(message),
        ),
        codec,
    )


def decode(raw: LogRecord, codec: Codec) -> LogRecord:
    """The same record with key and value decoded, or with the flaw that prevents it."""
    if raw.raw_key is None:
        return replace(raw, flaw=Flaw(UndecodableRecord.code, "the record has no key"))
    key, record, flaw = "", None, None
    try:
        key = raw.raw_key.decode()
        record = codec.decode(raw.topic, raw.value, list(raw.headers))
    except UnicodeDecodeError:
        flaw = Flaw(UndecodableRecord.code, "the record's key is not UTF-8")
    except UndecodableRecord as error:
        flaw = Flaw(error.code, str(error))
    return replace(raw, key=key, record=record, flaw=flaw)


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _headers(message: Message) -> tuple[Header, ...]:
    found = message.headers() or ()
    pairs = found.items() if isinstance(found, dict) else found
    return tuple((name, _bytes(content) or b"") for name, content in pairs)
