"""The Retry-After header (RFC 9110, section 10.2.3): seconds or a date, bounded. Pure."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

RETRY_AFTER_MS_MAX = 3_600_000
"""Longest wait that a target can ask for. Lower: a target in maintenance is asked too early.
Higher: a wrong clock or unit parks an item for days."""


def retry_after_ms(value: str | None, now_ms: int) -> int | None:
    """Milliseconds to wait from `now_ms` (since the epoch); None where nothing usable is said."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        # Ten digits of seconds are 300 years: no need to build the number first.
        wait_ms = int(text[:10]) * 1_000
    else:
        try:
            date = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        wait_ms = int(date.timestamp() * 1_000) - now_ms
    return min(max(wait_ms, 0), RETRY_AFTER_MS_MAX)
