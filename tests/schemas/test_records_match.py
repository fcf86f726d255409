"""Records and schemas describe the same thing, field for field, in both directions."""

from __future__ import annotations

import json
import tomllib
import types
import typing
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import pytest
from avro.schema import parse as avro_parse

from tallystick.codec_avro import RECORDS
from tallystick.records import Record, Tick
from tallystick.schemas import (
    NAMESPACE,
    SCHEMA_TOPICS,
    UNSCHEMED,
    released_texts,
    schema_id,
    schema_text,
    schemas_root,
)
from tallystick.topics import Topic

ROOT = Path(__file__).parents[2]
PLAIN = {str: "string", int: "long", bool: "boolean", bytes: "bytes"}


def shape(hint: Any) -> Any:
    """A Python type as the Avro schema that must stand for it, names written out in full."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (part for part in typing.get_args(hint) if part is not types.NoneType)
        return ["null", shape(inner)]
    if origin is tuple:
        item, rest = typing.get_args(hint)
        assert rest is Ellipsis
        return {"array": shape(item)}
    if issubclass(hint, Enum):
        symbols = [member.value for member in hint]
        default = "unknown" if "unknown" in symbols else "none"
        return {"enum": hint.__name__, "symbols": symbols, "default": default}
    if issubclass(hint, msgspec.Struct):
        hints = typing.get_type_hints(hint)
        return {
            "record": hint.__name__,
            "fields": [(name, shape(hints[name])) for name in hint.__struct_fields__],
        }
    return PLAIN[hint]


def described(schema: Any, known: dict[str, Any]) -> Any:
    """An Avro schema in the same form, named types looked up where they are only named."""
    if isinstance(schema, list):
        return [described(part, known) for part in schema]
    if isinstance(schema, str):
        return known.get(schema, schema)
    kind, name = schema["type"], schema.get("name", "")
    if kind == "array":
        return {"array": described(schema["items"], known)}
    if kind == "enum":
        known[name] = {
            "enum": name,
            "symbols": schema["symbols"],
            "default": schema.get("default"),
        }
        return known[name]
    fields = [(field["name"], described(field["type"], known)) for field in schema["fields"]]
    known[name] = {"record": name, "fields": fields}
    return known[name]


def mismatch(kind: type[Record], text: str) -> bool:
    return described(json.loads(text), {}) != shape(kind)


@pytest.mark.parametrize("topic", SCHEMA_TOPICS)
def test_every_field_stands_in_both_with_the_same_type_and_place(topic: Topic) -> None:
    assert described(json.loads(schema_text(topic)), {}) == shape(RECORDS[topic])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"partition"', '"part"'),
        ('"type": "long"', '"type": "int"'),
        ('"type": "long"', '"type": ["null", "long"]'),
        ('"name": "Tick"', '"name": "Tock"'),
    ],
)
def test_the_comparison_can_fail(old: str, new: str) -> None:
    text = schema_text(Topic.COMMITS_TICKS)
    assert not mismatch(Tick, text)
    assert mismatch(Tick, text.replace(old, new, 1))


def test_every_topic_has_one_record_and_one_schema_file() -> None:
    assert set(RECORDS) == set(SCHEMA_TOPICS) == set(Topic) - UNSCHEMED
    files = {entry.name for entry in schemas_root().iterdir() if entry.name.endswith(".avsc")}
    assert files == {f"{topic}.avsc" for topic in SCHEMA_TOPICS}


@pytest.mark.parametrize("topic", SCHEMA_TOPICS)
def test_a_schema_stands_alone_and_documents_itself(topic: Topic) -> None:
    schema = json.loads(schema_text(topic))
    assert schema["namespace"] == NAMESPACE
    assert schema["doc"]
    assert avro_parse(schema_text(topic)).name == schema["name"]


@pytest.mark.parametrize("topic", SCHEMA_TOPICS)
def test_nullable_fields_default_to_null(topic: Topic) -> None:
    def check(schema: Any) -> None:
        if isinstance(schema, dict):
            for field in schema.get("fields", ()):
                if isinstance(field["type"], list):
                    assert field["type"][0] == "null"
                    assert field.get("default", "absent") is None, field["name"]
            for part in schema.values():
                check(part)
        elif isinstance(schema, list):
            for part in schema:
                check(part)

    check(json.loads(schema_text(topic)))


@pytest.mark.parametrize("topic", SCHEMA_TOPICS)
def test_the_fingerprint_agrees_with_apache_avro(topic: Topic) -> None:
    theirs = avro_parse(schema_text(topic)).fingerprint("CRC-64-AVRO")
    assert schema_id(schema_text(topic)) == bytes(theirs)[::-1].hex()


@pytest.mark.parametrize("topic", SCHEMA_TOPICS)
def test_the_newest_released_schema_is_the_current_one(topic: Topic) -> None:
    versions = released_texts(topic)
    assert [version for version, _ in versions] == [f"v{i + 1}" for i in range(len(versions))]
    assert schema_id(versions[-1][1]) == schema_id(schema_text(topic))


def test_the_wheel_carries_the_schemas_inside_the_client() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert packed["schemas"] == "tallystick/_schemas"
    assert Path(str(schemas_root())) in (ROOT / "schemas", ROOT / "tallystick" / "_schemas")


def test_an_application_may_have_a_folder_called_schemas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    schemas_root.cache_clear()
    schema_text.cache_clear()
    assert schema_text(Topic.PLANS)
