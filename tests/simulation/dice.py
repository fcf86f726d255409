"""Chance, drawn from one seed: a stream of its own for each name, so that taking one fault away
changes the draws of no other.

Every fault that strikes is counted and noted by name and turn; a shrunk run is told to leave
some of them out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")
Struck = tuple[str, int]
"""The n-th time that the fault of this name was asked about."""


class Dice:
    """All chance of one world."""

    def __init__(self, seed: int, left_out: frozenset[Struck] = frozenset()) -> None:
        self.seed = seed
        self.left_out = left_out
        self.calm = False
        self.struck: list[Struck] = []
        self.faults: Counter[str] = Counter()
        self._streams: dict[str, Random] = {}
        self._turns: Counter[str] = Counter()

    def of(self, name: str) -> Random:
        """The stream of this name."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Random(f"{self.seed}/{name}")
        return stream

    def fault(self, name: str, chance: float) -> bool:
        """Whether the fault strikes now; never while the world is calm."""
        turn = self._turns[name]
        self._turns[name] += 1
        strikes = self.of(name).random() < chance
        if not strikes or self.calm or (name, turn) in self.left_out:
            return False
        self.struck.append((name, turn))
        self.faults[name] += 1
        return True

    def chance(self, name: str, chance: float) -> bool:
        """A choice that is no fault."""
        return self.of(name).random() < chance

    def between(self, name: str, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(self.of(name).random() * (high - low + 1))

    def pick(self, name: str, options: Sequence[T]) -> T:
        """One of them."""
        return options[int(self.of(name).random() * len(options))]
