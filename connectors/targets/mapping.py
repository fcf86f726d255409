"""Build the one request that an intent means, from the tool's templates. Pure.

The payload goes out as it was planned: no field is added, dropped or reshaped but by the
contract's own body template, and the pinned key overrides whatever stood in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from yarl import URL

from connectors.targets.compare import Comparison
from tallystick.canonical import canonical, canonical_text, parse_json
from tallystick.contract_pointers import MISSING, Pointer, field_pointer, parse_pointer, resolve
from tallystick.contract_templates import Hole, Template, fill, parse_template
from tallystick.contracts import Method, Tool
from tallystick.errors import CanonicalError
from tallystick.records import Intent, KeyStyle


class Unsendable(Exception):
    """This item cannot be sent under this contract; trying again cannot help."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One HTTP request, complete but for the credentials."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Item:
    """What templates may draw from; `intent_id` is empty in a read."""

    identity: str
    module: str
    tool: str
    intent_id: str
    payload: Any

    def value(self, hole: Hole) -> Any:
        """What belongs into a hole; MISSING where the payload lacks the field."""
        if hole.pointer is not None:
            return resolve(self.payload, hole.pointer)
        return getattr(self, hole.name)


class WriteMapping:
    """A tool's templates, parsed once."""

    def __init__(self, base: str, tool: Tool) -> None:
        self._base = base
        self._tool = tool
        self._path = parse_template(tool.write.path)
        self._headers = {name: parse_template(text) for name, text in tool.write.headers.items()}
        self._body = None if tool.write.body is None else _parse_body(tool.write.body)
        self._key_at = _key_pointer(tool)
        self._comparison = Comparison(tool.readback)

    def request(self, intent: Intent) -> WriteRequest:
        """The request for `intent`; raises Unsendable."""
        item = Item(
            identity=intent.identity,
            module=intent.module,
            tool=intent.tool,
            intent_id=intent.intent_id,
            payload=read_payload(intent.payload),
        )
        if self._comparison.active and not self._comparison.promised(item.payload):
            # Sent, it could never be verified: no read-back would see what was promised.
            raise Unsendable(
                "nothing_to_compare", "the payload has none of the fields the contract compares"
            )
        headers = {
            name: fill(template, item.value, _header_text)
            for name, template in self._headers.items()
        }
        if self._tool.key.style is KeyStyle.HEADER and self._tool.key.name:
            headers[self._tool.key.name] = intent.intent_id
        body = self._body_bytes(item, intent.payload)
        if body is not None:
            headers["Content-Type"] = "application/json"
        return WriteRequest(
            method=self._tool.write.method,
            url=item_url(self._base, self._path, item),
            headers=headers,
            body=body,
        )

    def _body_bytes(self, item: Item, planned: str) -> bytes | None:
        if self._tool.write.method is Method.DELETE:
            return None
        if self._body is None and self._key_at is None:
            return planned.encode()
        body = item.payload if self._body is None else _fill_body(self._body, item)
        if self._key_at is not None:
            body = _placed(body, self._key_at, item.intent_id)
        return canonical(body)


def read_payload(text: str) -> Any:
    """The planned payload as values, every digit kept; raises Unsendable."""
    try:
        return parse_json(text)
    except CanonicalError as error:
        raise Unsendable("payload_not_json", str(error)) from error


def item_url(base: str, path: Template, item: Item) -> URL:
    """The address of one item; what fills a hole is one step of the path and never more."""
    text = fill(path, item.value, _path_text)
    if any(step in (".", "..") for step in text.partition("?")[0].split("/")):
        raise Unsendable(
            "not_addressable", f"{text!r} has a step '.' or '..', which HTTP resolves away"
        )
    return URL(base + text, encoded=True)


def _plain_text(value: Any) -> str:
    if value is MISSING:
        raise Unsendable("payload_field_missing", "the payload lacks a field the contract needs")
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (dict, list)):
        raise Unsendable("not_text", "a placeholder inside text needs text, a number or a boolean")
    return canonical_text(value)


def _path_text(value: Any) -> str:
    text = _plain_text(value)
    if not text:
        raise Unsendable("not_addressable", "an empty value cannot be a step of a path")
    return quote(text, safe="")


def _header_text(value: Any) -> str:
    text = _plain_text(value)
    if not (text.isascii() and text.isprintable()):
        raise Unsendable("not_a_header", "a header takes printable ASCII only (RFC 9110, 5.5)")
    return text


def _key_pointer(tool: Tool) -> Pointer | None:
    name = tool.key.name
    if tool.key.style is not KeyStyle.FIELD or name is None:
        return None
    return parse_pointer(name if name.startswith("/") else field_pointer(name))


def _placed(body: Any, at: Pointer, key: str) -> Any:
    """A copy of `body` with `key` at the pointer, over anything that stood there."""
    if not at:
        return key
    if not isinstance(body, dict):
        raise Unsendable("no_place_for_key", "the body is no object to put the key into")
    inner = body.get(at[0], {}) if len(at) > 1 else None
    return {**body, at[0]: _placed(inner, at[1:], key)}


@dataclass(frozen=True, slots=True)
class _Filled:
    """A text of a body template."""

    template: Template


def _parse_body(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _parse_body(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_parse_body(inner) for inner in value]
    return _Filled(parse_template(value)) if isinstance(value, str) else value


def _fill_body(value: Any, item: Item) -> Any:
    """A text that is one hole takes the value with its type; absent stays absent, not null."""
    if isinstance(value, dict):
        filled = {name: _fill_body(inner, item) for name, inner in value.items()}
        return {name: inner for name, inner in filled.items() if inner is not MISSING}
    if isinstance(value, list):
        elements = [_fill_body(inner, item) for inner in value]
        return [_plain_text(inner) if inner is MISSING else inner for inner in elements]
    if not isinstance(value, _Filled):
        return value
    template = value.template
    if len(template) == 1 and isinstance(template[0], Hole):
        return item.value(template[0])
    return fill(template, item.value, _plain_text)
