"""Any record of any type, for Hypothesis."""

from __future__ import annotations

import types
import typing
from enum import Enum
from typing import Any

from hypothesis import strategies as st

from tallystick.records import Record

LONG = 2**63


def any_record(kind: type[Record]) -> st.SearchStrategy[Any]:
    """Records of `kind` with arbitrary content in every field, nested ones included."""
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{name: _any(hints[name]) for name in kind.__struct_fields__})


def _any(hint: Any) -> st.SearchStrategy[Any]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(_any(part) for part in typing.get_args(hint)))
    if origin is tuple:
        return st.lists(_any(typing.get_args(hint)[0]), max_size=3).map(tuple)
    if isinstance(hint, type) and issubclass(hint, Record):
        return any_record(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    plain = {
        int: st.integers(-LONG, LONG - 1),
        str: st.text(max_size=20),
        bytes: st.binary(max_size=20),
        bool: st.booleans(),
        types.NoneType: st.none(),
    }
    return plain[hint]
