"""JSON pointers (RFC 6901): where a value stands inside a payload or a target's answer."""

from __future__ import annotations

from typing import Any

Pointer = tuple[str, ...]


class PointerError(ValueError):
    """The text is no JSON pointer; the message says why."""


class Missing:
    """The type of MISSING: null is a value, and an absent field is not null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


def parse_pointer(text: str) -> Pointer:
    """The steps of a pointer; the empty pointer is the whole document (RFC 6901, section 5)."""
    if not text:
        return ()
    if not text.startswith("/"):
        raise PointerError(f"{text!r} is no JSON pointer: it must start with '/'")
    if "~" in text.replace("~0", "").replace("~1", ""):
        raise PointerError(f"{text!r} has a '~' that is not '~0' or '~1'")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/"))


def field_pointer(name: str) -> str:
    """The pointer to a top-level field."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def resolve(document: Any, pointer: Pointer) -> Any:
    """The value at `pointer`, or MISSING."""
    value = document
    for step in pointer:
        if isinstance(value, dict):
            value = value.get(step, MISSING)
        elif isinstance(value, list) and _is_index(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value


def _is_index(step: str) -> bool:
    # "01" and "-" are no indices of an existing element (RFC 6901, section 4).
    return step.isascii() and step.isdigit() and (step == "0" or step[0] != "0") and len(step) < 10
