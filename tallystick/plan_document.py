"""The plan file: what a caller writes down before any hash exists.

It is read strictly: an unknown field is refused rather than ignored, because a misspelled
`evidence` that nobody reads would make a plan that rests on nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from tallystick.canonical import parse_json
from tallystick.errors import CanonicalError, PlanError
from tallystick.keys import item_identity
from tallystick.plan_limits import ITEMS_MAX, NAME_BYTES_MAX, REF_BYTES_MAX, text_fault

DOCUMENT_BYTES_MAX = 8_000_000
"""Largest plan file. Lower: indented files of plans that would fit are refused. Higher: a wrong
file (a dump, a video) is parsed before it is refused."""


class DraftItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item as the caller states it; `payload` is a JSON object, `tool` None for the default."""

    identity: str
    payload: Any
    tool: str | None = None

    @classmethod
    def read(cls, value: Any, where: str) -> DraftItem:
        """The item in a parsed document; raises PlanError, naming the place."""
        fields = _fields(value, where, required=("identity", "payload"), optional=("tool",))
        if not isinstance(fields["payload"], Mapping):
            raise PlanError(
                f"payload is {_kind(fields['payload'])}, not an object",
                where=f"{where}.payload",
                fix="send named fields",
            )
        return cls(
            identity=item_identity(fields["identity"], where=f"{where}.identity"),
            payload=fields["payload"],
            tool=_optional_name(fields, "tool", where, NAME_BYTES_MAX),
        )


class PlanDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed plan file; `plans.plan_from` makes the plan. `source` is the file's name."""

    commit_key: str
    module: str
    items: tuple[DraftItem, ...]
    tool: str | None = None
    evidence: Any | None = None
    evidence_ref: str | None = None
    source: str = ""


def parse_plan(text: str | bytes, *, where: str = "") -> PlanDocument:
    """Read a plan file named `where`.

    Raises PlanError in one line that says what, where and what to do.
    """
    try:
        return _document(text, where)
    except (CanonicalError, PlanError) as error:
        place = f"{where}: {error.where}" if where else error.where
        raise PlanError(error.message, where=place, fix=error.fix) from None


def _document(text: str | bytes, source: str) -> PlanDocument:
    if len(text) > DOCUMENT_BYTES_MAX:
        raise PlanError(
            f"plan file has more than {DOCUMENT_BYTES_MAX} bytes",
            where="$",
            fix="split it into several plans, each with its own commit_key",
        )
    fields = _fields(
        parse_json(text),
        "$",
        required=("commit_key", "module", "items"),
        optional=("tool", "evidence", "evidence_ref"),
    )
    return PlanDocument(
        commit_key=_name(fields, "commit_key", "$", NAME_BYTES_MAX),
        module=_name(fields, "module", "$", NAME_BYTES_MAX),
        items=_items(fields["items"]),
        tool=_optional_name(fields, "tool", "$", NAME_BYTES_MAX),
        evidence=fields.get("evidence"),
        evidence_ref=_optional_name(fields, "evidence_ref", "$", REF_BYTES_MAX),
        source=source,
    )


def _items(value: Any) -> tuple[DraftItem, ...]:
    if not isinstance(value, list):
        raise PlanError(
            f"items is {_kind(value)}, not an array", where="$.items", fix="list the items"
        )
    if not value:
        raise PlanError("plan has no items", where="$.items", fix="plan at least one item")
    if len(value) > ITEMS_MAX:
        raise PlanError(
            f"plan has {len(value)} items, more than {ITEMS_MAX}",
            where="$.items",
            fix="split it into several plans, each with its own commit_key",
        )
    drafts = tuple(DraftItem.read(item, f"$.items[{i}]") for i, item in enumerate(value))
    first: dict[tuple[str | None, str], int] = {}
    for index, draft in enumerate(drafts):
        earlier = first.setdefault((draft.tool, draft.identity), index)
        if earlier != index:
            raise PlanError(
                f"item {draft.identity!r} is planned twice, first as $.items[{earlier}]",
                where=f"$.items[{index}].identity",
                fix="give each item its own identity",
            )
    return drafts


def _fields(
    value: Any, where: str, *, required: tuple[str, ...], optional: tuple[str, ...]
) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        wanted = ", ".join(required)
        raise PlanError(f"{_kind(value)} is not an object", where=where, fix=f"give {wanted}")
    known = (*required, *optional)
    for name in value:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            fix = f"did you mean {near[0]!r}?" if near else f"known fields: {', '.join(known)}"
            raise PlanError(f"unknown field {name!r}", where=where, fix=fix)
    for name in required:
        if name not in value:
            raise PlanError(f"field {name!r} is missing", where=where, fix=f"add {name!r}")
    return value


def _name(fields: Mapping[str, Any], name: str, where: str, bytes_max: int) -> str:
    fault = text_fault(fields[name], bytes_max)
    if fault:
        raise PlanError(f"{name} {fault}", where=f"{where}.{name}", fix="give a short, stable name")
    return str(fields[name])


def _optional_name(fields: Mapping[str, Any], name: str, where: str, bytes_max: int) -> str | None:
    return None if fields.get(name) is None else _name(fields, name, where, bytes_max)


_KINDS: Mapping[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def _kind(value: Any) -> str:
    """A JSON value's type in JSON's own words."""
    return _KINDS.get(type(value), type(value).__name__)
