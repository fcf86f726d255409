"""What every record shares: frozen, keyword-only, and named fields that match its schema."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A value that crosses a topic; its schema is `schemas/<topic>.avsc`, field for field."""
