"""The words of a target, made fit to store: found in its answer, one line, bounded, no secrets."""

from __future__ import annotations

import json
from collections.abc import Callable

DETAIL_BYTES_MAX = 500
"""Longest stored explanation in UTF-8. Lower: the useful half of a message is cut. Higher: a
target's error pages fill the log; ten items' details still must fit one record."""

_RAW_BYTES_MAX = 8_192
"""How much of a body is searched for an explanation; error pages can be megabytes."""

_FIELDS = ("detail", "message", "error_description", "error", "title", "reason")
"""Where targets put it: problem details (RFC 9457), OAuth, and common habit, best first."""


def explain(body: bytes, hide: Callable[[str], str]) -> str:
    """What the answer says went wrong, or its beginning."""
    text = body[:_RAW_BYTES_MAX].decode("utf-8", errors="replace")
    return bounded(hide(_said(text) or text))


def bounded(text: str) -> str:
    """One line of printable text of at most DETAIL_BYTES_MAX bytes."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    raw = line.encode("utf-8", errors="replace")
    if len(raw) <= DETAIL_BYTES_MAX:
        return raw.decode()
    return raw[: DETAIL_BYTES_MAX - 3].decode("utf-8", errors="ignore") + "…"


def _said(text: str) -> str:
    if not text.lstrip().startswith("{"):
        return ""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    found = [answer.get(name) for name in _FIELDS] if isinstance(answer, dict) else []
    for said in found:
        if isinstance(said, str) and said:
            return said
        if isinstance(said, dict) and isinstance(said.get("message"), str):
            return str(said["message"])
    return ""
