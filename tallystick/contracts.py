"""Contracts: what a target's owner promises of each tool, validated, versioned and hashed.

`parse_contract` takes plain values (from YAML or JSON, read elsewhere); every fault is one
ContractError that names its place. The hash covers the normalised document, defaults filled,
with `${VARIABLES}` as they are written: no address and no secret is ever in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeVar

import msgspec
from msgspec.structs import fields, replace

from tallystick.canonical import digest
from tallystick.contract_checks import Fault, check_document
from tallystick.contract_model import (
    Answer,
    Auth,
    AuthKind,
    Compare,
    ContractDocument,
    Key,
    Method,
    ReadbackRule,
    ReadBy,
    Response,
    Tool,
    Write,
)
from tallystick.contract_pointers import field_pointer
from tallystick.errors import CanonicalError, ContractError
from tallystick.records.plans import ContractRef, KeyStyle, ReadbackKind, ToolPolicy

__all__ = [
    "Answer",
    "Auth",
    "AuthKind",
    "Compare",
    "Contract",
    "ContractDocument",
    "Key",
    "Method",
    "ReadBy",
    "ReadbackRule",
    "Response",
    "Tool",
    "Write",
    "contract_schema",
    "parse_contract",
]

T = TypeVar("T")
_AT = re.compile(r" - at `\$(.*)`$")
_UNKNOWN_FIELD = re.compile(r"unknown field `(.*)`")
_WORDS = {
    ".auth.kind": tuple(AuthKind),
    ".write.method": tuple(Method),
    ".key.style": tuple(KeyStyle),
    ".readback.kind": tuple(ReadbackKind),
    ".readback.by": tuple(ReadBy),
}
"""The closed lists of words by the place where they stand."""

_FIELD_NAMES = sorted(
    {
        field.name
        for part in (ContractDocument, Auth, Tool, Write, Key, Response, ReadbackRule, Compare)
        for field in fields(part)
    }
)


class Contract:
    """A valid contract; immutable."""

    def __init__(self, document: ContractDocument) -> None:
        self.document = document

    @property
    def name(self) -> str:
        """The target system's name; also the default scope of its mutation epochs."""
        return self.document.name

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Every tool by name."""
        return self.document.tools

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the canonical JSON (RFC 8785) of the normalised document, in hex."""
        return digest(msgspec.to_builtins(self.document))

    @cached_property
    def ref(self) -> ContractRef:
        """Which contract this is, byte for byte."""
        return ContractRef(name=self.name, version=self.document.version, hash=self.hash)

    def tool(self, name: str) -> Tool:
        """The tool's contract; raises ContractError naming the tools there are."""
        found = self.tools.get(name)
        if found is None:
            raise ContractError(
                f"contract {self.name!r} has no tool {name!r}",
                where=f"tool {name!r}",
                fix=f"use one of: {', '.join(sorted(self.tools))}",
            )
        return found

    def policy(self, name: str) -> ToolPolicy:
        """The part of the tool's contract that the ledger decides by."""
        tool = self.tool(name)
        return ToolPolicy(
            tool=name,
            scope=tool.scope or self.document.scope or self.name,
            key_style=tool.key.style,
            readback=tool.readback.kind,
            acknowledgement=tool.response.acknowledgement,
            read_first=tool.read_first,
            visibility_lag_ms=tool.readback.visibility_lag_ms,
            in_flight_ms=tool.in_flight_ms,
            call_timeout_ms=tool.call_timeout_ms,
            attempts_max=tool.attempts_max,
            backoff_ms=tool.backoff_ms,
            backoff_ms_max=tool.backoff_ms_max,
            compensation=tool.compensation,
        )

    def policies(self) -> dict[str, ToolPolicy]:
        """Every tool's policy by name."""
        return {name: self.policy(name) for name in self.tools}


def parse_contract(document: Any, *, source: str = "contract") -> Contract:
    """Read a contract from plain values; raises ContractError with `source` and a JSON path."""
    try:
        parsed = _normal(_converted(document))
        check_document(parsed)
        contract = Contract(parsed)
        contract.hash  # noqa: B018 - a value without canonical form is refused here, not later
    except Fault as fault:
        raise ContractError(fault.message, where=f"{source}: {fault.path}", fix=fault.fix) from None
    except CanonicalError as error:
        where = f"{source}: {error.where}"
        raise ContractError(error.message, where=where, fix=error.fix) from None
    return contract


def contract_schema() -> dict[str, Any]:
    """The JSON Schema of the contract format, for editors and other languages."""
    return msgspec.json.schema(ContractDocument)


def _converted(document: Any) -> ContractDocument:
    """Convert tool by tool, since the converter's own paths leave out the names of map keys."""
    if not isinstance(document, dict):
        raise Fault("$", "a contract is a map of fields", "start it with 'name:' and 'version:'")
    head = {name: value for name, value in document.items() if name != "tools"}
    tools = document.get("tools")
    if not isinstance(tools, dict) or not tools:
        raise Fault("$.tools", "no tools", "name at least one tool and its 'write'")
    parsed = _strictly(lambda: msgspec.convert({**head, "tools": {}}, ContractDocument), "$")
    return replace(parsed, tools={name: _tool(name, value) for name, value in tools.items()})


def _tool(name: Any, value: Any) -> Tool:
    if not isinstance(name, str) or not name.strip():
        raise Fault("$.tools", f"tool name {name!r} is no text", "quote the name")
    path = f"$.tools.{name}"
    if isinstance(value, dict) and isinstance(value.get("errors"), dict):
        # YAML reads a bare 409 as a number.
        errors = {str(status): answer for status, answer in value["errors"].items()}
        _check_answers(errors, f"{path}.errors")
        value = {**value, "errors": errors}
    return _strictly(lambda: msgspec.convert(value, Tool), path)


def _check_answers(errors: Mapping[str, Any], path: str) -> None:
    words = [answer.value for answer in Answer]
    for status, answer in errors.items():
        if answer not in words:
            raise Fault(f"{path}.{status}", f"{answer!r} is no outcome", f"use {', '.join(words)}")


def _strictly(convert: Callable[[], T], path: str) -> T:
    try:
        return convert()
    except msgspec.ValidationError as error:
        text = str(error)
        place = _AT.search(text)
        message = _AT.sub("", text)
        inner = place.group(1) if place else ""
        raise Fault(path + inner, _plain(message), _advice(message, path + inner)) from None


def _plain(message: str) -> str:
    """The converter's message in the words of a contract's author."""
    text = message.replace("Object contains", "has an").replace("Object missing", "lacks the")
    return text.replace("`", "'")[:1].lower() + text.replace("`", "'")[1:]


def _advice(message: str, path: str) -> str:
    for ending, words in _WORDS.items():
        if path.endswith(ending):
            return f"use {', '.join(words)}"
    if message.startswith("Expected `str"):
        return "put the value in quotes"
    unknown = _UNKNOWN_FIELD.search(message)
    if unknown is None:
        return "see docs/contracts.md for the format"
    near = get_close_matches(unknown.group(1), _FIELD_NAMES, n=1)
    return f"did you mean {near[0]!r}?" if near else "remove it; see docs/contracts.md"


def _normal(document: ContractDocument) -> ContractDocument:
    """The one form that is hashed: a plain field name is short for a pair of pointers."""
    tools = {}
    for name, tool in document.tools.items():
        pairs = tuple(
            pair
            if isinstance(pair, Compare)
            else Compare(planned=_pointer(pair), found=_pointer(pair))
            for pair in tool.readback.compare
        )
        tools[name] = replace(tool, readback=replace(tool.readback, compare=pairs))
    return replace(document, tools=tools)


def _pointer(name: str) -> str:
    return name if name.startswith("/") or not name else field_pointer(name)
