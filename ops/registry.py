"""Bring a schema registry and the released contracts together: register, and compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallystick.codec_registry import open_registry, registry_call
from tallystick.schemas import SCHEMA_TOPICS, schema_text
from tallystick.topics import check_prefix, full_name

COMPATIBILITY = "FULL_TRANSITIVE"
"""What every subject is held to: events are replayed for ever, by old and by new readers."""


@dataclass(frozen=True, slots=True)
class Registered:
    """One subject after `register`."""

    subject: str
    schema_id: int


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One subject in which the registry differs from this release."""

    subject: str
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


def subject_of(prefix: str, topic: str) -> str:
    """The registry's subject for a topic's values (TopicNameStrategy)."""
    return f"{full_name(check_prefix(prefix), topic)}-value"


def register(url: str, prefix: str) -> list[Registered]:
    """Register every current schema and hold its subject to FULL_TRANSITIVE; idempotent.

    Raises SchemaIncompatible, naming the subject, for a schema that breaks an earlier version,
    OperatorError when the registry is away. Subjects before that one stay registered.
    """
    client = open_registry(url)
    return [
        register_one(client, subject_of(prefix, topic), schema_text(topic))
        for topic in SCHEMA_TOPICS
    ]


def register_one(client: Any, subject: str, text: str) -> Registered:
    """Register one schema under the strict rule, errors as in `register`."""
    from confluent_kafka.schema_registry import Schema

    # First the rule, then the schema: a first version under a laxer rule would slip through.
    registry_call("set the rule", subject, client.set_compatibility, subject, COMPATIBILITY)
    number = registry_call(
        "register", subject, client.register_schema, subject, Schema(text, "AVRO")
    )
    return Registered(subject, int(number))


def compare(url: str, prefix: str) -> list[Mismatch]:
    """Every subject that lacks this release's schema or is held to another rule."""
    client = open_registry(url)
    found = []
    for topic in SCHEMA_TOPICS:
        subject = subject_of(prefix, topic)
        reason = _mismatch(client, subject, schema_text(topic))
        if reason:
            found.append(Mismatch(subject, reason))
    return found


def _mismatch(client: Any, subject: str, text: str) -> str:
    from confluent_kafka.schema_registry import Schema

    known = registry_call("look up", subject, client.lookup_schema, subject, Schema(text, "AVRO"))
    if known is None:
        return "this release's schema is not registered (run `tallystick schemas register`)"
    rule = registry_call("show the rule", subject, client.get_compatibility, subject)
    if rule != COMPATIBILITY:
        return f"compatibility is {rule or 'not set'}, expected {COMPATIBILITY}"
    return ""
