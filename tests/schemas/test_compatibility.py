"""FULL_TRANSITIVE: every schema and every released version of it read each other's bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ops.compatibility import check_all, check_topic, enums_without_default
from tallystick.schemas import SCHEMA_TOPICS, schema_text
from tallystick.topics import Topic

Change = Callable[[dict[str, Any]], None]


def changed(topic: Topic, change: Change) -> str:
    schema: dict[str, Any] = json.loads(schema_text(topic))
    change(schema)
    return json.dumps(schema)


def field(schema: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(part for part in schema["fields"] if part["name"] == name)
    return found


def add_with_default(schema: dict[str, Any]) -> None:
    schema["fields"].append({"name": "later", "type": ["null", "string"], "default": None})


def add_symbol(schema: dict[str, Any]) -> None:
    field(schema, "outcome")["type"]["symbols"].append("later")


def reorder(schema: dict[str, Any]) -> None:
    schema["fields"].reverse()


def reword(schema: dict[str, Any]) -> None:
    schema["doc"] = "other words"


def add_without_default(schema: dict[str, Any]) -> None:
    schema["fields"].append({"name": "later", "type": "string"})


def remove(schema: dict[str, Any]) -> None:
    schema["fields"].remove(field(schema, "code"))


def rename(schema: dict[str, Any]) -> None:
    field(schema, "code")["name"] = "status"


def narrow(schema: dict[str, Any]) -> None:
    field(schema, "attempt")["type"] = "int"


def widen(schema: dict[str, Any]) -> None:
    field(schema, "attempt")["type"] = "double"


def require(schema: dict[str, Any]) -> None:
    field(schema, "target_ref")["type"] = "string"


def drop_enum_default(schema: dict[str, Any]) -> None:
    del field(schema, "outcome")["type"]["default"]


def foreign_enum_default(schema: dict[str, Any]) -> None:
    field(schema, "outcome")["type"]["default"] = "nowhere"


def test_every_schema_fits_every_released_version_both_ways() -> None:
    assert [str(found) for found in check_all()] == []


@pytest.mark.parametrize("change", [add_with_default, add_symbol, reorder, reword])
def test_an_allowed_change_passes(change: Change) -> None:
    assert check_topic(Topic.ATTEMPTS, changed(Topic.ATTEMPTS, change)) == []


@pytest.mark.parametrize(
    ("change", "direction"),
    [
        (add_without_default, "cannot read"),
        (remove, "cannot be read by"),
        (rename, "cannot read"),
        (narrow, "cannot read"),
        (widen, "cannot be read by"),
        (require, "cannot read"),
        (drop_enum_default, "reading a later symbol of"),
        (foreign_enum_default, "reading a later symbol of"),
    ],
)
def test_a_breaking_change_is_found_and_named(change: Change, direction: str) -> None:
    found = check_topic(Topic.ATTEMPTS, changed(Topic.ATTEMPTS, change))
    assert direction in [row.direction for row in found]
    assert all(row.topic == Topic.ATTEMPTS and row.reason for row in found)


@pytest.mark.parametrize("topic", SCHEMA_TOPICS)
def test_every_enum_has_a_default_for_symbols_of_later_releases(topic: Topic) -> None:
    assert list(enums_without_default(json.loads(schema_text(topic)))) == []


@pytest.mark.parametrize("topic", SCHEMA_TOPICS)
def test_no_enum_defaults_to_anything_but_not_known(topic: Topic) -> None:
    def check(schema: Any) -> None:
        parts = schema.values() if isinstance(schema, dict) else schema
        if isinstance(schema, dict) and schema.get("type") == "enum":
            assert schema["default"] in ("unknown", "none"), schema["name"]
        for part in parts:
            if isinstance(part, dict | list):
                check(part)

    check(json.loads(schema_text(topic)))
