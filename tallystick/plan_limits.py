"""The bounds of a plan, and the one check that every short name of it passes."""

from __future__ import annotations

from typing import Any

ITEMS_MAX = 2_000
"""Most items of one plan. Lower: bulk imports need many commits. Higher: receipt and read-back
request, which name every item, outgrow a message (`streams/catalogue.py`)."""

PLAN_BYTES_MAX = 700_000
"""Largest plan. Lower: rich payloads do not fit. Higher: the request, with its headers and the
dead letter that may wrap it, no longer fits Kafka's default message of 1 MiB."""

ITEM_OVERHEAD_BYTES = 80
"""What a record adds to an item's own texts: a hash in hex and length prefixes. Lower: a plan
that passes here could still be too large for the log."""

NAME_BYTES_MAX = 256
"""Longest commit key, module, tool, scope or contract name in UTF-8. Lower: composed keys are
refused. Higher: every record of a commit repeats it."""

REF_BYTES_MAX = 2_048
"""Longest evidence reference in UTF-8. Lower: signed URLs are refused. Higher: an inlined
document passes as a reference."""


DURATION_MS_MAX = 366 * 24 * 3_600_000
"""Longest duration in a tool policy. Lower: a slow approval process cannot be described. Higher:
a hostile policy parks a commit for ever."""

ATTEMPTS_MAX = 1_000
"""Most attempts a tool policy may ask for. Lower: long outages exhaust them. Higher: one item
floods the log."""


def text_fault(text: Any, bytes_max: int) -> str:
    """What is wrong with a short name, as the end of a sentence; empty if nothing is."""
    if not isinstance(text, str):
        return f"is {type(text).__name__}, not text"
    if not text:
        return "is empty"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "holds a lone surrogate"
    return "" if size <= bytes_max else f"has {size} bytes, more than {bytes_max}"
