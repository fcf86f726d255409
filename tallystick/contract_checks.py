"""What the types of a contract cannot say: templates, pointers, and parts that need each other.

Every fault names its JSON path and what to do. Faults are found in the order of the document,
one at a time, so that an author fixes the first and asks again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tallystick.contract_model import (
    Auth,
    AuthKind,
    Compare,
    ContractDocument,
    Method,
    ReadbackRule,
    ReadBy,
    Tool,
)
from tallystick.contract_pointers import PointerError, parse_pointer
from tallystick.contract_templates import (
    BODY_HOLES,
    LIST_HOLES,
    PATH_HOLES,
    READ_HOLES,
    Template,
    TemplateError,
    holes,
    parse_template,
)
from tallystick.records.plans import KeyStyle, ReadbackKind

_URL = re.compile(r"(https?://|\$\{[A-Za-z_]\w*\}).*")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STATUS = re.compile(r"[2-5]\d\d")
_TOOL_LIKE = re.compile(r"[A-Za-z_][\w.-]*")
_OWN_HEADERS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "authorization"}
)
"""Headers that the transport or `auth` sets; a second value would be a hidden conflict."""


class Fault(Exception):
    """A rule of the format is broken at `path`."""

    def __init__(self, path: str, message: str, fix: str) -> None:
        super().__init__(message)
        self.path, self.message, self.fix = path, message, fix


def check_document(document: ContractDocument) -> None:
    """Raise Fault at the first broken rule."""
    _check_url(document.base_url)
    _check_auth(document.auth)
    for name, tool in document.tools.items():
        path = f"$.tools.{name}"
        _check_write(tool, document.auth, f"{path}.write")
        _check_key(tool, f"{path}.key")
        _check_response(tool, f"{path}.response")
        _check_readback(tool.readback, f"{path}.readback")
        _check_limits(tool, document, path)


def _check_url(url: str) -> None:
    if not _URL.fullmatch(url):
        raise Fault("$.base_url", f"{url!r} is no http address", "write https://… or ${VARIABLE}")
    for variable in _VARIABLE.findall(url):
        if not _VARIABLE_NAME.fullmatch(variable):
            raise Fault("$.base_url", f"{variable!r} is no variable name", "write ${NAME}")
    if "@" in url:
        raise Fault("$.base_url", "credentials stand in the address", "move them to 'auth'")


_AUTH_NEEDS = {
    AuthKind.NONE: (),
    AuthKind.BEARER: ("env",),
    AuthKind.HEADER: ("name", "env"),
    AuthKind.BASIC: ("user_env", "password_env"),
}


def _check_auth(auth: Auth) -> None:
    needed = _AUTH_NEEDS[auth.kind]
    for field in ("env", "name", "user_env", "password_env"):
        value = getattr(auth, field)
        if field in needed and value is None:
            raise Fault("$.auth", f"kind {auth.kind} needs {field!r}", f"add '{field}:'")
        if field not in needed and value is not None:
            raise Fault(f"$.auth.{field}", f"kind {auth.kind} has no use for it", "remove it")
        if value is not None and field != "name" and not _VARIABLE_NAME.fullmatch(value):
            raise Fault(
                f"$.auth.{field}",
                "is not the name of an environment variable",
                "put the secret into the environment, and its variable's name here",
            )
    if auth.name is not None:
        _check_header_name(auth.name, "$.auth.name")


def _check_header_name(name: str, path: str) -> None:
    if not _HEADER.fullmatch(name):
        raise Fault(path, f"{name!r} is no header name (RFC 9110)", "use letters, digits, dashes")


def _check_write(tool: Tool, auth: Auth, path: str) -> None:
    write = tool.write
    _check_path(write.path, f"{path}.path")
    _check_template(write.path, PATH_HOLES, f"{path}.path", pointers=True)
    taken = {*_OWN_HEADERS, (auth.name or "").lower()}
    if tool.key.style is KeyStyle.HEADER:
        taken.add((tool.key.name or "").lower())
    for name, value in write.headers.items():
        _check_header_name(name, f"{path}.headers")
        if name.lower() in taken:
            raise Fault(f"{path}.headers.{name}", "is set by the contract elsewhere", "remove it")
        _check_template(value, PATH_HOLES, f"{path}.headers.{name}", pointers=True)
    if write.body is not None and write.method is Method.DELETE:
        raise Fault(f"{path}.body", "DELETE sends no body (RFC 9110, 9.3.5)", "remove it")
    for place, text in _texts(write.body, f"{path}.body"):
        _check_template(text, BODY_HOLES, place, pointers=True)


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every text in a body template, with its place."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise Fault(path, f"field name {name!r} is no text", "quote it")
            yield from _texts(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, f"{path}[{index}]")


def _check_path(text: str, path: str) -> None:
    if not text.startswith("/") or text.startswith("//"):
        raise Fault(path, f"{text!r} is no path under base_url", "start it with one '/'")
    if "#" in text or not text.isprintable() or " " in text:
        raise Fault(path, "has '#', spaces or control characters", "percent-encode them")


def _check_template(text: str, known: frozenset[str], path: str, *, pointers: bool) -> Template:
    try:
        template = parse_template(text)
    except TemplateError as fault:
        raise Fault(path, str(fault), "see 'Templates' in docs/contracts.md") from None
    for hole in holes(template):
        if hole.pointer is None and hole.name not in known:
            allowed = ", ".join(f"{{{name}}}" for name in sorted(known))
            tail = " or a payload pointer such as {/title}" if pointers else ""
            raise Fault(path, f"unknown placeholder {{{hole.name}}}", f"use {allowed}{tail}")
        if hole.pointer is not None and not pointers:
            raise Fault(
                path, f"{{{hole.name}}} reads a payload", "a listing is about no single item"
            )
    return template


def _names(template: Template) -> set[str]:
    return {hole.name for hole in holes(template)}


def _check_key(tool: Tool, path: str) -> None:
    key, write = tool.key, tool.write
    if key.style in (KeyStyle.NONE, KeyStyle.NATURAL) and key.name is not None:
        raise Fault(f"{path}.name", f"style {key.style} sends no key", "remove it")
    if key.style in (KeyStyle.HEADER, KeyStyle.FIELD) and key.name is None:
        raise Fault(path, f"style {key.style} needs a 'name'", "add the header or field name")
    if key.style is KeyStyle.HEADER:
        _check_header_name(key.name or "", f"{path}.name")
        if (key.name or "").lower() in _OWN_HEADERS:
            raise Fault(f"{path}.name", "is a header with its own meaning", "use another name")
    if key.style is KeyStyle.FIELD and write.method is Method.DELETE:
        raise Fault(f"{path}.style", "DELETE sends no body for a field", "use style 'header'")
    if key.style is KeyStyle.NATURAL:
        addressed = "identity" in _names(parse_template(write.path))
        if write.method not in (Method.PUT, Method.DELETE) or not addressed:
            raise Fault(
                f"{path}.style",
                "a natural key needs PUT or DELETE (RFC 9110, 9.2.2) and {identity} in the path",
                "change 'write', or state the style that the target really has",
            )


def _check_response(tool: Tool, path: str) -> None:
    _check_pointer(tool.response.ref, f"{path}.ref")
    if tool.response.acknowledgement and tool.response.ref is None:
        raise Fault(
            path, "an acknowledgement is evidence only with the target's own id", "add 'ref:'"
        )


def _check_pointer(text: str | None, path: str) -> None:
    try:
        parse_pointer(text or "")
    except PointerError as fault:
        raise Fault(path, str(fault), "write it like /data/id") from None


def _check_readback(rule: ReadbackRule, path: str) -> None:
    if rule.kind is ReadbackKind.NONE:
        if rule != ReadbackRule():
            raise Fault(path, "kind none has no use for other fields", "state 'kind:' or drop them")
        return
    if rule.path is None:
        raise Fault(path, f"kind {rule.kind} needs a 'path'", "say what to GET")
    _check_path(rule.path, f"{path}.path")
    for name in ("items", "identity", "ref", "next"):
        _check_pointer(getattr(rule, name), f"{path}.{name}")
    _check_reach(rule, rule.path, path)
    if not rule.compare:
        raise Fault(
            f"{path}.compare", "is empty, so nothing would be verified", "name the promised fields"
        )
    for index, pair in enumerate(rule.compare):
        _check_pair(pair, f"{path}.compare[{index}]")
    planned = {pair.planned for pair in rule.compare if isinstance(pair, Compare)}
    if len(planned) < len(rule.compare):
        raise Fault(f"{path}.compare", "names a planned field twice", "name each once")
    lagging = rule.kind is ReadbackKind.LAGGING
    if lagging != (rule.visibility_lag_ms > 0):
        raise Fault(
            f"{path}.visibility_lag_ms",
            "a lagging read needs a lag above 0" if lagging else "a strong read has no lag",
            "state the longest lag" if lagging else "use kind 'lagging'",
        )


def _check_reach(rule: ReadbackRule, text: str, path: str) -> None:
    """A read by identity must name the item, a listing must say whose each object is."""
    if rule.by is ReadBy.IDENTITY:
        template = _check_template(text, READ_HOLES, f"{path}.path", pointers=True)
        named = {hole for hole in holes(template) if hole.name == "identity" or hole.pointer}
        if not named:
            raise Fault(
                f"{path}.path", "does not name the item", "add {identity}, or use 'by: list'"
            )
        if rule.next is not None:
            raise Fault(f"{path}.next", "only a listing has pages", "remove it, or use 'by: list'")
        return
    _check_template(text, LIST_HOLES, f"{path}.path", pointers=False)
    if rule.identity is None:
        raise Fault(path, "a listing needs 'identity'", "point at each object's identity")


def _check_pair(pair: str | Compare, path: str) -> None:
    if isinstance(pair, str) or not pair.planned or not pair.found:
        raise Fault(path, "names no field", "write a field name, or planned and found pointers")
    _check_pointer(pair.planned, f"{path}.planned")
    _check_pointer(pair.found, f"{path}.found")


def _check_limits(tool: Tool, document: ContractDocument, path: str) -> None:
    if tool.backoff_ms > tool.backoff_ms_max:
        raise Fault(f"{path}.backoff_ms", "is above backoff_ms_max", "lower it, or raise the other")
    for status in tool.errors:
        if not _STATUS.fullmatch(status):
            raise Fault(f"{path}.errors.{status}", "is no status from 200 to 599", "use e.g. '409'")
    if tool.read_first and tool.readback.kind is ReadbackKind.NONE:
        raise Fault(f"{path}.read_first", "nothing can be read", "add a 'readback', or remove it")
    undo = tool.compensation
    if undo is not None and _TOOL_LIKE.fullmatch(undo) and undo not in document.tools:
        raise Fault(
            f"{path}.compensation",
            f"names the tool {undo!r}, which this contract lacks",
            f"add the tool, or describe in words what to do; tools: {', '.join(document.tools)}",
        )
