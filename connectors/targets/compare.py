"""Judge what was found against what was promised, by identity, field by field. Pure.

Values are equal when their canonical JSON is: `1` equals `1.0`, `"1"` does not. A field that
the payload leaves out was not promised and is not compared; absent and null differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallystick.canonical import canonical, canonical_text, digest
from tallystick.contract_pointers import MISSING, Pointer, parse_pointer, resolve
from tallystick.contracts import Compare, ReadbackRule
from tallystick.errors import CanonicalError
from tallystick.records import FoundItem, ReadbackKind, WantedItem

REFS_MAX = 20
"""Most ids named for one identity. Lower: a person cannot clean up duplicates by the record
alone. Higher: a runaway writer's copies outgrow the record."""


class Comparison:
    """A tool's read-back rule, its pointers parsed once."""

    def __init__(self, rule: ReadbackRule) -> None:
        self.active = rule.kind is not ReadbackKind.NONE
        self._pairs = tuple(
            (pair.planned, parse_pointer(pair.planned), parse_pointer(pair.found))
            for pair in rule.compare
            if isinstance(pair, Compare)
        )
        self._identity = None if rule.identity is None else parse_pointer(rule.identity)
        self._ref = None if rule.ref is None else parse_pointer(rule.ref)

    def promised(self, payload: Any) -> dict[str, Any]:
        """The compared fields that the payload has, by planned pointer."""
        return _present((name, resolve(payload, planned)) for name, planned, _ in self._pairs)

    def identity_of(self, found: Any) -> str | None:
        """The identity that an object claims; None where it has none to compare with."""
        return None if self._identity is None else text_at(found, self._identity)

    @property
    def names_identity(self) -> bool:
        """Whether found objects say whose they are."""
        return self._identity is not None

    def ref_of(self, found: Any) -> str:
        """The target's own id of an object, or nothing."""
        return "" if self._ref is None else text_at(found, self._ref) or ""

    def judge(self, wanted: WantedItem, payload: Any, copies: Sequence[Any]) -> FoundItem:
        """What the target holds for one identity; `copies` are the objects that claim it."""
        promised = self.promised(payload)
        if not promised:
            return failed(wanted, "nothing_to_compare")
        try:
            return self._judged(wanted, promised, copies)
        except CanonicalError:
            return failed(wanted, "found_not_canonical")

    def _judged(
        self, wanted: WantedItem, promised: dict[str, Any], copies: Sequence[Any]
    ) -> FoundItem:
        first = self._seen(promised, copies[0]) if copies else {}
        refs = tuple(ref for ref in map(self.ref_of, copies) if ref)
        return FoundItem(
            tool=wanted.tool,
            identity=wanted.identity,
            copies=len(copies),
            planned_digest=digest(promised),
            found_digest=digest(first) if copies else "",
            differing=_differing(promised, first) if copies else (),
            target_refs=refs[:REFS_MAX],
            error="",
        )

    def _seen(self, promised: dict[str, Any], found: Any) -> dict[str, Any]:
        """The same fields of a found object, named alike so that the digests can agree."""
        return _present(
            (name, resolve(found, at)) for name, _, at in self._pairs if name in promised
        )


def failed(wanted: WantedItem, code: str) -> FoundItem:
    """Nothing is known of this item; not the same as zero copies."""
    return FoundItem(
        tool=wanted.tool,
        identity=wanted.identity,
        copies=0,
        planned_digest="",
        found_digest="",
        differing=(),
        target_refs=(),
        error=code,
    )


def text_at(document: Any, pointer: Pointer) -> str | None:
    """A text or whole number at `pointer` as text; None for anything else."""
    value = resolve(document, pointer)
    if isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return canonical_text(value)
    return None


def _present(pairs: Any) -> dict[str, Any]:
    return {name: value for name, value in pairs if value is not MISSING}


def _differing(promised: dict[str, Any], found: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        name.removeprefix("/")
        for name, value in promised.items()
        if name not in found or canonical(found[name]) != canonical(value)
    )
