"""Load the Avro contracts: the current schema of every topic, and every one ever released.

They live in `schemas/` of the repository and are packed into this package as `_schemas`, so that
no package called `schemas` is needed or imported. Knows files and Avro, not records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

from tallystick.errors import CallerError, SchemaIncompatible
from tallystick.topics import Topic

NAMESPACE = "tallystick.v1"

UNSCHEMED = frozenset({Topic.COMMITS_CHANGELOG})
"""Topics without an Avro schema: a changelog holds a store's raw rows."""

SCHEMA_TOPICS = tuple(topic for topic in Topic if topic not in UNSCHEMED)


@cache
def schemas_root() -> Traversable:
    """Where the schemas are: inside the installed package, or beside it in a checkout."""
    packed = files("tallystick") / "_schemas"
    if packed.is_dir():
        return packed
    beside = Path(__file__).parent.parent / "schemas"
    if (beside / f"{Topic.PLANS}.avsc").is_file():
        return beside
    raise SchemaIncompatible(
        "no schemas are packed with this installation",
        where=str(packed),
        fix="install tallystick again from a complete wheel or checkout",
    )


@cache
def schema_text(topic: str) -> str:
    """The current schema of a topic (its name without the prefix), as JSON text."""
    path = schemas_root() / f"{topic}.avsc"
    if topic not in SCHEMA_TOPICS or not path.is_file():
        raise CallerError(
            f"topic {topic!r} has no schema",
            where="schemas",
            fix=f"topics with one: {', '.join(SCHEMA_TOPICS)}",
        )
    return path.read_text(encoding="utf-8")


@cache
def released_texts(topic: str) -> tuple[tuple[str, str], ...]:
    """Every released schema of a topic as (version, JSON text), oldest first."""
    folder = schemas_root() / "released" / topic
    if not folder.is_dir():
        return ()
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".avsc")]
    found.sort(key=lambda entry: int(entry.name[1 : -len(".avsc")]))
    return tuple(
        (entry.name.removesuffix(".avsc"), entry.read_text(encoding="utf-8")) for entry in found
    )


def known_texts(topic: str) -> Iterator[str]:
    """Every schema that bytes on a topic may have been written with: released, then current."""
    for _, text in released_texts(topic):
        yield text
    yield schema_text(topic)


def parsed(text: str) -> Any:
    """A schema ready for fastavro; each is parsed alone, so equal names never meet."""
    return fastavro.parse_schema(json.loads(text), named_schemas={})


def schema_id(text: str) -> str:
    """The schema's CRC-64-AVRO fingerprint over its Parsing Canonical Form (Avro 1.12).

    Sixteen lower-case hex digits of the unsigned number, as `%016x` prints it.
    """
    little_endian = fingerprint(to_parsing_canonical_form(json.loads(text)), "CRC-64-AVRO")
    return bytes.fromhex(little_endian)[::-1].hex()
