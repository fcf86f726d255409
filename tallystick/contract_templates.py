"""Templates of a contract: text with holes such as `{identity}` or `{/title}`, never code.

A hole is a name from a closed list, or a JSON pointer into the item's payload. `{{` and `}}`
stand for the braces themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tallystick.contract_pointers import Pointer, PointerError, parse_pointer

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

PATH_HOLES = frozenset({"identity", "module", "tool", "intent_id"})
"""What a write's path and headers may name beside payload pointers."""

BODY_HOLES = PATH_HOLES | {"payload"}
"""A body may also place the whole payload."""

READ_HOLES = frozenset({"identity", "module", "tool"})
"""What the path of a read by identity may name beside payload pointers."""

LIST_HOLES = frozenset({"module", "tool"})
"""What the path of a listing may name; a listing is about no single item."""


class TemplateError(ValueError):
    """The text is no template; the message says why."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A place to fill: `pointer` is set where it reads from the payload."""

    name: str
    pointer: Pointer | None = None


Template = tuple[str | Hole, ...]


def parse_template(text: str) -> Template:
    """Split `text` into literal text and holes; raises TemplateError."""
    parts: list[str | Hole] = []
    literal, end = "", 0
    for token in _TOKEN.finditer(text):
        literal += text[end : token.start()]
        end = token.end()
        if token.group() in ("{{", "}}"):
            literal += token.group()[0]
        elif token.group(1) is None:
            raise TemplateError(f"lone {token.group()!r} in {text!r}: double it to mean itself")
        else:
            if literal:
                parts.append(literal)
            literal = ""
            parts.append(_hole(token.group(1)))
    literal += text[end:]
    if literal:
        parts.append(literal)
    return tuple(parts)


def _hole(name: str) -> Hole:
    if not name:
        raise TemplateError("empty placeholder '{}': name what goes there")
    if not name.startswith("/"):
        return Hole(name)
    try:
        return Hole(name, parse_pointer(name))
    except PointerError as fault:
        raise TemplateError(str(fault)) from fault


def holes(template: Template) -> tuple[Hole, ...]:
    """The holes in their order."""
    return tuple(part for part in template if isinstance(part, Hole))


def fill(template: Template, value_of: Callable[[Hole], Any], text_of: Callable[[Any], str]) -> str:
    """The text with every hole filled; `text_of` quotes a value for its place."""
    return "".join(text_of(value_of(part)) if isinstance(part, Hole) else part for part in template)
