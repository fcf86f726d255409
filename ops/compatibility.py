"""Check schema evolution without a registry: FULL_TRANSITIVE, by the rules of Apache Avro.

Every current schema must read, and be readable by, every version that was ever released. The
checker is Avro's own, so it shares no code with the codec that it guards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tallystick.errors import OperatorError
from tallystick.schemas import SCHEMA_TOPICS, released_texts, schema_text


@dataclass(frozen=True, slots=True)
class Break:
    """One way in which a schema and a released version do not understand each other."""

    topic: str
    version: str
    direction: str
    reason: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.direction} {self.version}: {self.reason}"


def check_all() -> list[Break]:
    """Every break of every topic's current schema; empty when all is well."""
    return [found for topic in SCHEMA_TOPICS for found in check_topic(topic, schema_text(topic))]


def check_topic(topic: str, candidate: str) -> list[Break]:
    """Every break between `candidate` and the topic's released versions.

    An enum without a default counts too: the next symbol would stop every older reader.
    """
    found = [
        Break(topic, "any version", "reading a later symbol of", f"enum {name} has no default")
        for name in enums_without_default(json.loads(candidate))
    ]
    for version, released in released_texts(topic):
        back = _reasons(candidate, released)
        forth = _reasons(released, candidate)
        found += (Break(topic, version, "cannot read", reason) for reason in back)
        found += (Break(topic, version, "cannot be read by", reason) for reason in forth)
    return found


def enums_without_default(schema: Any) -> Iterator[str]:
    """The names of enums, at any depth, whose unknown symbols would be an error."""
    if isinstance(schema, list):
        for part in schema:
            yield from enums_without_default(part)
    elif isinstance(schema, dict):
        if schema.get("type") == "enum" and schema.get("default") not in schema.get("symbols", ()):
            yield str(schema.get("name"))
        for part in schema.values():
            yield from enums_without_default(part)


def _reasons(reader: str, writer: str) -> list[str]:
    """Why `reader` cannot read what `writer` wrote."""
    try:
        from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
        from avro.errors import SchemaParseException
        from avro.schema import parse
    except ImportError as error:
        raise OperatorError(
            "the offline check needs Apache Avro",
            where="schemas check",
            fix="pip install 'avro>=1.12'",
        ) from error
    checker: Any = ReaderWriterCompatibilityChecker  # its constructor has no types
    try:
        result = checker().get_compatibility(parse(reader), parse(writer))
    except SchemaParseException as error:
        return [f"no valid Avro schema: {' '.join(str(error).split())}"[-500:]]
    if result.compatibility is SchemaCompatibilityType.compatible:
        return []
    places = ", ".join(sorted(result.locations)) or "/"
    told = "; ".join(sorted(" ".join(str(message).split()) for message in result.messages))
    return [f"at {places}: {told or 'types differ'}"[:500]]
