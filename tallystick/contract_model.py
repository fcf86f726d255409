"""The shape of a contract file: what a target's owner states about each of its tools.

Field for field the format that `docs/contracts.md` describes. `contracts.py` reads it and
`contract_checks.py` holds what types cannot say. A change here is a new `format` number: the
contract's hash covers every field, so a silent new one would orphan frozen plans.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tallystick.records.plans import KeyStyle, ReadbackKind

Name = Annotated[str, Meta(min_length=1, max_length=200)]
"""Bounded so that names fit a log line and a record key."""

Millis = Annotated[int, Meta(ge=0, le=30 * 24 * 3_600_000)]
"""A duration in milliseconds, at most 30 days: longer ones are slips of a unit."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A section of a contract; unknown fields are refused: a typo must not become a default."""


class AuthKind(StrEnum):
    """How a request proves who sends it."""

    NONE = "none"
    BEARER = "bearer"
    HEADER = "header"
    BASIC = "basic"


class Auth(_Part, frozen=True, kw_only=True):
    """Credentials by the NAMES of environment variables; a value never stands in a contract."""

    kind: AuthKind = AuthKind.NONE
    env: Name | None = None
    name: Name | None = None
    user_env: Name | None = None
    password_env: Name | None = None


class Method(StrEnum):
    """HTTP methods that write."""

    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"


class Write(_Part, frozen=True, kw_only=True):
    """The request that writes one item; without a `body` the payload itself is the body."""

    method: Method = Method.POST
    path: Name
    body: dict[str, Any] | None = None
    headers: dict[str, str] = {}


class Key(_Part, frozen=True, kw_only=True):
    """Where the pinned idempotency key goes: a header's name, or a pointer into the body."""

    style: KeyStyle = KeyStyle.NONE
    name: Name | None = None


class Response(_Part, frozen=True, kw_only=True):
    """What the answer to a write tells: `ref` points at the target's own id of the object.

    With `acknowledgement` that id is evidence in itself, for tools that nothing can read back.
    """

    ref: str | None = None
    acknowledgement: bool = False


class ReadBy(StrEnum):
    """IDENTITY asks for one item at a time; LIST reads the module's whole listing."""

    IDENTITY = "identity"
    LIST = "list"


class Compare(_Part, frozen=True, kw_only=True):
    """One promised field: a pointer into the payload, and one into the found object."""

    planned: str
    found: str


class ReadbackRule(_Part, frozen=True, kw_only=True):
    """How to look for a written item, and which fields must agree.

    `items` points at the found object, or at the array of them; `identity` and `ref` point into
    one object. `next` points at the link to the next page of a listing.
    """

    kind: ReadbackKind = ReadbackKind.NONE
    by: ReadBy = ReadBy.IDENTITY
    path: Name | None = None
    items: str = ""
    identity: str | None = None
    ref: str | None = None
    compare: tuple[str | Compare, ...] = ()
    visibility_lag_ms: Millis = 0
    next: str | None = None
    pages_max: Annotated[int, Meta(ge=1, le=1_000)] = 20


class Answer(StrEnum):
    """What a status can be declared to mean; the words are those of an attempt's outcome."""

    APPLIED = "applied"
    EXISTS = "exists"
    EXISTS_DIFFERENT = "exists_different"
    REJECTED = "rejected"
    NOT_EXECUTED = "not_executed"
    UNKNOWN = "unknown"


class Tool(_Part, frozen=True, kw_only=True):
    """One tool's contract.

    `in_flight_ms` bounds how long after it was sent a request may still take effect (null: no
    bound is known). `compensation` names the tool, or tells a person, how to undo a write.
    """

    write: Write
    key: Key = Key()
    response: Response = Response()
    readback: ReadbackRule = ReadbackRule()
    scope: Name | None = None
    in_flight_ms: Millis | None = None
    call_timeout_ms: Annotated[int, Meta(ge=1, le=600_000)] = 10_000
    attempts_max: Annotated[int, Meta(ge=1, le=100)] = 8
    backoff_ms: Annotated[int, Meta(ge=1, le=3_600_000)] = 200
    backoff_ms_max: Annotated[int, Meta(ge=1, le=3_600_000)] = 10_000
    errors: dict[str, Answer] = {}
    compensation: Name | None = None
    read_first: bool = False


class ContractDocument(_Part, frozen=True, kw_only=True):
    """A whole contract: a target system and the tools that write to it.

    `concurrency_max` bounds calls at the same time. `keepalive_ms` is how long an idle
    connection is reused: longer than the target keeps it, and writes meet a closed connection
    and turn unknown; 0 opens one a request.
    """

    format: Literal[1] = 1
    name: Name
    version: Name
    base_url: Name
    auth: Auth = Auth()
    scope: Name | None = None
    concurrency_max: Annotated[int, Meta(ge=1, le=1_000)] = 16
    keepalive_ms: Annotated[int, Meta(ge=0, le=600_000)] = 2_000
    tools: dict[str, Tool]
