"""How a record becomes a message's value and headers, and how it is read back.

Without a registry the value is bare Avro and a header names the writer schema by fingerprint;
`codec_registry.py` holds the other form. A codec never guesses: bytes whose schema it cannot
name are refused, and the loop dead-letters them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tallystick.codec_avro import AvroForms, undecodable
from tallystick.records import Record
from tallystick.schemas import SCHEMA_TOPICS, known_texts, parsed, schema_id, schema_text

SCHEMA_HEADER = "tally_schema"
"""Names the header whose value is the writer schema's fingerprint (`schemas.schema_id`)."""

Header = tuple[str, bytes]
Content = str | bytes | None
Headers = Sequence[tuple[str, Content]] | Mapping[str, Content]
"""As confluent-kafka hands them out; on the wire they are always a list of byte strings."""


class Codec(Protocol):
    """Topics are named without their prefix."""

    def encode(self, topic: str, record: Record) -> tuple[bytes, list[Header]]:
        """The message value, and the headers that decoding needs."""

    def decode(self, topic: str, value: bytes | None, headers: Headers | None) -> Record:
        """The record in a message; raises UndecodableRecord for bytes that are none."""


class FingerprintCodec:
    """Bare Avro, and the writer schema's fingerprint in the header `tally_schema`.

    It reads whatever was written with the current schema, any released one, or one of
    `extra_schemas` (JSON texts by topic), such as the next release's during a rolling upgrade.
    """

    def __init__(self, extra_schemas: Mapping[str, Sequence[str]] | None = None) -> None:
        self._forms = AvroForms()
        self._texts: dict[tuple[str, bytes], str] = {}
        self._writers: dict[tuple[str, bytes], Any] = {}
        self._own: dict[str, list[Header]] = {}
        extra = extra_schemas or {}
        for topic in SCHEMA_TOPICS:
            for text in (*extra.get(topic, ()), *known_texts(topic)):
                self._texts[topic, schema_id(text).encode()] = text
            current = schema_id(schema_text(topic)).encode()
            self._own[topic] = [(SCHEMA_HEADER, current)]
            self._writers[topic, current] = self._forms.current(topic)

    def encode(self, topic: str, record: Record) -> tuple[bytes, list[Header]]:
        """See Codec; raises CallerError for a record that does not belong on the topic."""
        value = self._forms.write(topic, record)
        return value, list(self._own[topic])

    def decode(self, topic: str, value: bytes | None, headers: Headers | None) -> Record:
        """See Codec."""
        if value is None:
            undecodable(topic, "value is null", "only changelogs hold tombstones")
        mark = _mark(headers)
        if mark is None:
            undecodable(topic, f"header {SCHEMA_HEADER} is missing", "set it to the schema's id")
        return self._forms.read(topic, value, self._writer(topic, mark))

    def _writer(self, topic: str, mark: bytes) -> Any:
        writer = self._writers.get((topic, mark))
        if writer is not None:
            return writer
        text = self._texts.get((topic, mark))
        if text is None:
            undecodable(
                topic,
                f"no schema of this topic has the fingerprint {mark[:64]!r}",
                "upgrade this reader, or give it the schema",
            )
        writer = self._writers[topic, mark] = parsed(text)
        return writer


def _mark(headers: Headers | None) -> bytes | None:
    """The fingerprint in the headers; of several the last counts, as a forwarder appends."""
    mark: Content = None
    for name, content in headers.items() if isinstance(headers, Mapping) else headers or ():
        if name == SCHEMA_HEADER:
            mark = content
    return mark.encode() if isinstance(mark, str) else mark
