"""Canonical JSON: one text for one value, whichever client, transport or language wrote it.

RFC 8785 (JSON Canonicalization Scheme) through the `rfc8785` library, with one rule added: an
integral number is written as an integer with every digit. RFC 8785 rounds beyond 2^53, and two
object ids that differ in their last digit must never become one. This file knows JSON only.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import rfc8785

from tallystick.errors import CanonicalError

DEPTH_MAX = 64
"""Deepest nesting of arrays and objects. Lower: real documents are refused. Higher: parsers in
other languages, and our own recursion, overflow first."""

NUMBER_DIGITS_MAX = 309
"""Most digits of an integral number: as many as the largest double has. Lower: not every double
fits. Higher: a small text full of 1e999 grows into so many digits that hashing it stalls."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_INTEGER_LIMIT = 10**NUMBER_DIGITS_MAX
_TOO_DEEP = f"nested deeper than {DEPTH_MAX} levels"
_TOO_LONG = f"number has more than {NUMBER_DIGITS_MAX} digits"
_FLATTER = "send a flatter value"
_AS_STRING = "send it as a string"
_FINITE = "send null, a string, or leave it out"


class _Bad:
    """Stands in a parsed value where the text had a fault, until a walk can say where."""

    __slots__ = ("fix", "key", "reason")

    def __init__(self, reason: str, fix: str, key: str | None = None) -> None:
        self.reason = reason
        self.fix = fix
        self.key = key


class _Fault(Exception):
    """A fault on its way up; every level adds the step that led to it."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix
        self.steps: list[str] = []


class _Notes:
    """What a walk met that the plain encoder would write differently from RFC 8785."""

    __slots__ = ("odd",)

    def __init__(self) -> None:
        self.odd = False


def parse_json(text: str | bytes) -> Any:
    """Read JSON strictly; integral numbers become `int`, whatever their notation.

    Raises CanonicalError, naming the place (`$.items[3].title`, or line and column), for: a
    repeated key, NaN and infinities, a lone surrogate, a number too large, nesting deeper than
    DEPTH_MAX, text that is not UTF-8, and anything after the value.
    """
    if isinstance(text, bytes):
        text = _decoded(text)
    if text.startswith("\ufeff"):
        _refuse("text begins with a byte order mark", "byte 0", "save it as plain UTF-8")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        _refuse(f"not JSON: {error.msg}", place, "send one JSON value and nothing after it")
    except RecursionError:
        _refuse(_TOO_DEEP, "$", _FLATTER)
    return _checked(value, _Notes())


def canonical(value: Any) -> bytes:
    """The canonical JSON text of `value`, as UTF-8 (RFC 8785; integers keep every digit).

    Takes what JSON has: None, bool, int, float, str, list or tuple, dict with str keys. A float
    counts as its shortest decimal text, so 1.0 is 1 and -0.0 is 0. Raises CanonicalError, naming
    the place, for everything else.
    """
    notes = _Notes()
    clean = _checked(value, notes)
    if notes.odd:
        return _composed(clean)
    return _ENCODER.encode(clean).encode()


def canonical_text(value: Any) -> str:
    """As `canonical`, as text."""
    return canonical(value).decode()


def digest(value: Any) -> str:
    """SHA-256 over the canonical JSON of `value`, in lower-case hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        _refuse(f"not UTF-8: {error.reason}", f"byte {error.start}", "save it as plain UTF-8")


def _refuse(reason: str, where: str, fix: str) -> NoReturn:
    raise CanonicalError(reason, where=where, fix=fix) from None


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return _Bad("key occurs twice in one object", "keep one of the two", key)
        seen.add(key)
    return found


def _integer(text: str) -> Any:
    if len(text.removeprefix("-")) <= NUMBER_DIGITS_MAX:
        return int(text)
    return _Bad(_TOO_LONG, _AS_STRING)


def _real(text: str) -> Any:
    """A number written with a point or an exponent: an `int` if it is integral, else a float."""
    number = float(text)
    if number == 0:
        return 0
    if math.isfinite(number) and not number.is_integer():
        return number
    try:
        exact = Decimal(text)
    except InvalidOperation:
        return _Bad("number is too large", _AS_STRING)
    if exact.adjusted() >= NUMBER_DIGITS_MAX:
        return _Bad(_TOO_LONG, _AS_STRING)
    if exact == exact.to_integral_value():
        return int(exact)
    if math.isinf(number):
        return _Bad("number is too large", _AS_STRING)
    return int(Decimal(repr(number)))


def _constant(name: str) -> Any:
    return _Bad(f"{name} is not a JSON number", _FINITE)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_float=_real,
    parse_int=_integer,
    parse_constant=_constant,
)
# Writes what RFC 8785 wants as long as there are no floats and every key is ASCII (a property
# test compares the two); several times as quick.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def _checked(value: Any, notes: _Notes) -> Any:
    try:
        return _walk(value, 0, notes)
    except _Fault as fault:
        _refuse(fault.reason, "$" + "".join(reversed(fault.steps)), fault.fix)


def _walk(value: Any, depth: int, notes: _Notes) -> Any:
    """`value` with integral floats as integers and tuples as lists, or a _Fault."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return _whole(int(value))
    if isinstance(value, float):
        return _float(float(value), notes)
    if depth >= DEPTH_MAX and isinstance(value, list | tuple | dict):
        raise _Fault(_TOO_DEEP, _FLATTER)
    if isinstance(value, dict):
        return _walk_object(value, depth, notes)
    if isinstance(value, list | tuple):
        return _walk_array(value, depth, notes)
    raise _unusable(value)


def _walk_object(value: dict[Any, Any], depth: int, notes: _Notes) -> dict[str, Any]:
    clean: dict[str, Any] = {}
    for key, member in value.items():
        if not isinstance(key, str):
            raise _Fault(f"object key {key!r} is not a string", "use strings as keys")
        try:
            name = _text(key)
            clean[name] = _walk(member, depth + 1, notes)
        except _Fault as fault:
            fault.steps.append(_step(key))
            raise
        if not name.isascii():
            notes.odd = True
    return clean


def _walk_array(value: list[Any] | tuple[Any, ...], depth: int, notes: _Notes) -> list[Any]:
    clean = []
    for member in value:
        try:
            clean.append(_walk(member, depth + 1, notes))
        except _Fault as fault:
            fault.steps.append(f"[{len(clean)}]")
            raise
    return clean


def _text(value: str) -> str:
    text = value if type(value) is str else str.__str__(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _Fault("text holds a lone surrogate", "send whole characters") from None
    return text


def _whole(number: int) -> int:
    if -_INTEGER_LIMIT < number < _INTEGER_LIMIT:
        return number
    raise _Fault(_TOO_LONG, _AS_STRING)


def _float(number: float, notes: _Notes) -> int | float:
    if not math.isfinite(number):
        raise _Fault(f"{number} is not a JSON number", _FINITE)
    if number.is_integer():
        return int(Decimal(repr(number)))
    notes.odd = True
    return number


def _unusable(value: Any) -> _Fault:
    if not isinstance(value, _Bad):
        known = "use null, booleans, numbers, strings, arrays and objects"
        return _Fault(f"{type(value).__name__} has no JSON form", known)
    fault = _Fault(value.reason, value.fix)
    if value.key is not None:
        fault.steps.append(_step(value.key))
    return fault


def _step(key: str) -> str:
    return f".{key}" if _NAME.fullmatch(key) else f"[{json.dumps(key)}]"


def _composed(value: Any) -> bytes:
    """RFC 8785 around integers that the library refuses for being beyond 2^53."""
    try:
        return rfc8785.dumps(value)
    except rfc8785.IntegerDomainError:
        pass
    if isinstance(value, dict):
        ordered = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        members = (rfc8785.dumps(key) + b":" + _composed(member) for key, member in ordered)
        return b"{" + b",".join(members) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(_composed(member) for member in value) + b"]"
    return str(value).encode()
