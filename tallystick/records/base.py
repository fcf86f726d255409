"""What every record shares: frozen, keyword-only, and named fields that match its schema."""

from __future__ import annotations

from typing import dataclass_transform

import msgspec


# msgspec hands `frozen` and `kw_only` down to every child; this tells the type checker so.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A value that crosses a topic; its schema is `schemas/<topic>.avsc`, field for field."""
