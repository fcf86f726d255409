"""The Confluent wire format: a zero byte, the schema's id in the registry, then Avro.

Only this file talks to a registry, and it imports the registry client at first use, so that a
client without the `registry` extra never needs it. An absent registry is an operator's problem
and not the record's: nothing is dead-lettered because of it.
"""

from __future__ import annotations

import struct
from typing import Any

from tallystick.codec import Codec, FingerprintCodec, Header, Headers
from tallystick.codec_avro import AvroForms, undecodable
from tallystick.errors import CallerError, OperatorError, SchemaIncompatible
from tallystick.records import Record
from tallystick.schemas import parsed, schema_text
from tallystick.topics import check_prefix, full_name

MAGIC = 0
"""First byte of every value in this format."""

HEAD = struct.Struct(">bI")
"""Magic byte and schema id."""

REGISTRY_TIMEOUT_S = 10.0
"""How long one call to the registry may take. Lower: a busy registry counts as away. Higher: the
loop stands longer before it says why."""

_NOT_FOUND = 404
_CONFLICT = 409
_UNPROCESSABLE = 422


def open_registry(url: str) -> Any:
    """A registry client for `url`; raises OperatorError if the extra is not installed."""
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient
    except ImportError as error:
        raise OperatorError(
            f"the registry client is not installed ({error.name} is missing)",
            where="schema registry",
            fix="pip install 'tallystick[registry]'",
        ) from error
    try:
        # Its own retries would turn an absent registry into a minute of silence.
        return SchemaRegistryClient({"url": url, "timeout": REGISTRY_TIMEOUT_S, "max.retries": 1})
    except ValueError as error:
        raise CallerError(
            f"registry address {url!r} is not usable: {error}",
            where="schema registry",
            fix="give http://host:port and the path of its API",
        ) from error


def registry_call(what: str, subject: str, call: Any, *arguments: Any) -> Any:
    """Make one registry call; returns None for "not found", and translates every other failure.

    Raises SchemaIncompatible for a schema that the registry refuses (409 and 422),
    OperatorError when it is away or denies access.
    """
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    try:
        return call(*arguments)
    except SchemaRegistryError as error:
        if error.http_status_code == _NOT_FOUND:
            return None
        told = " ".join(str(error.error_message).split())[:300]
        if error.http_status_code in (_CONFLICT, _UNPROCESSABLE):
            raise SchemaIncompatible(
                f"registry refuses to {what}: {told}",
                where=subject,
                fix="add fields with defaults and symbols at the end; never rename or remove",
            ) from error
        raise OperatorError(
            f"registry cannot {what} (HTTP {error.http_status_code}): {told}",
            where=subject,
            fix="check the registry's address and credentials",
        ) from error
    except Exception as error:  # the client lets its HTTP library's own errors through
        told = " ".join(str(error).split())[:300]
        raise OperatorError(
            f"registry does not answer to {what}: {told}",
            where=subject,
            fix="start it, or correct its address",
        ) from error


def codec_for(registry: str | None, prefix: str) -> Codec:
    """The codec that a setting chooses: through a registry where one is named, else by header."""
    return RegistryCodec(registry, prefix) if registry else FingerprintCodec()


class RegistryCodec:
    """Values in Confluent's wire format; the subject is the full topic name and `-value`.

    It writes with the current schema, which must be registered (`tallystick schemas register`)
    unless `auto_register` is set; that is for development, because it lets any process change
    the contract. It reads whatever the registry knows, newer releases included.
    """

    def __init__(self, url: str, prefix: str, *, auto_register: bool = False) -> None:
        self._client = open_registry(url)
        self._prefix = check_prefix(prefix)
        self._auto_register = auto_register
        self._forms = AvroForms()
        self._heads: dict[str, bytes] = {}
        self._writers: dict[tuple[str, int], Any] = {}

    def encode(self, topic: str, record: Record) -> tuple[bytes, list[Header]]:
        """See Codec; raises CallerError for a foreign record, OperatorError as the class says."""
        value = self._forms.write(topic, record)
        head = self._heads.get(topic)
        if head is None:
            head = self._heads[topic] = HEAD.pack(MAGIC, self._own_id(topic))
        return head + value, []

    def decode(self, topic: str, value: bytes | None, headers: Headers | None) -> Record:
        """See Codec; raises OperatorError, not UndecodableRecord, while the registry is away."""
        del headers  # this form carries its schema's id in the value
        if value is None:
            undecodable(topic, "value is null", "only changelogs hold tombstones")
        if len(value) < HEAD.size:
            undecodable(topic, f"{len(value)} bytes are no framed value", "look at the producer")
        magic, number = HEAD.unpack_from(value)
        if magic != MAGIC:
            undecodable(topic, f"first byte is {magic}, not {MAGIC}", "send framed values")
        return self._forms.read(topic, value[HEAD.size :], self._writer(topic, number))

    def _subject(self, topic: str) -> str:
        return f"{full_name(self._prefix, topic)}-value"

    def _own_id(self, topic: str) -> int:
        from confluent_kafka.schema_registry import Schema

        subject = self._subject(topic)
        schema = Schema(schema_text(topic), "AVRO")
        if self._auto_register:
            return int(
                registry_call("register", subject, self._client.register_schema, subject, schema)
            )
        found = registry_call("look up", subject, self._client.lookup_schema, subject, schema)
        if found is None:
            raise OperatorError(
                "the current schema is not registered",
                where=subject,
                fix="run `tallystick schemas register`",
            )
        return int(found.schema_id)

    def _writer(self, topic: str, number: int) -> Any:
        writer = self._writers.get((topic, number))
        if writer is None:
            found = registry_call("fetch", f"schema {number}", self._client.get_schema, number)
            if found is None:
                undecodable(topic, f"registry knows no schema {number}", "look at the producer")
            current = schema_text(topic)
            same = found.schema_str == current
            writer = self._forms.current(topic) if same else parsed(found.schema_str)
            self._writers[topic, number] = writer
        return writer
