"""Run many seeds, count what struck, and make a failing one small: what `tallystick sim` shows."""

from __future__ import annotations

import gc
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from connectors.points import Point
from streams.crashpoints import CrashPoint
from tests.simulation.auditor import Verdict, audit
from tests.simulation.dice import Struck
from tests.simulation.trace import trace
from tests.simulation.world import World

SHRINK_RUNS_MAX = 200
"""Most worlds that one shrinking runs. Lower: longer traces. Higher: a longer wait."""


CRASH_POINTS = tuple(
    f"{role}.{point}"
    for role, points in (
        (
            "worker",
            "after_poll after_produce before_send_offsets after_send_offsets after_commit "
            "mid_store_write after_store_write mid_restore",
        ),
        ("dispatcher", "before_claim_commit after_claim before_call after_call after_outcome"),
        ("reader", "after_take before_read after_read after_readback"),
    )
    for point in points.split()
)
"""Where a process may be killed or stopped."""


GC_OBJECTS = 100_000
"""New objects between two collections: a world is one knot that dies at once. Lower: a seventh of
the time goes into looking for it. Higher: more dead worlds in memory."""


@dataclass
class Summary:
    """What a range of seeds brought."""

    seeds: int = 0
    failures: dict[int, list[str]] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    crash_points: Counter[str] = field(
        default_factory=lambda: Counter(dict.fromkeys(CRASH_POINTS, 0))
    )
    gaps: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    records: int = 0
    receipts: int = 0
    partials: int = 0
    seconds: float = 0.0

    def as_fields(self) -> dict[str, Any]:
        """For programs."""
        rate = self.seeds / self.seconds if self.seconds else 0.0
        return {
            "seeds": self.seeds,
            "violations": sum(map(len, self.failures.values())),
            "failing_seeds": {str(seed): told for seed, told in self.failures.items()},
            "known_gaps": dict(sorted(self.gaps.items())),
            "faults": dict(sorted(self.faults.items())),
            "crash_points": dict(sorted(self.crash_points.items())),
            "records": self.records,
            "calls": self.calls,
            "receipts": self.receipts,
            "partials": self.partials,
            "seeds_per_second": round(rate, 1),
        }

    def take(self, world: World, verdict: Verdict) -> None:
        """Add one world that has run."""
        self.seeds += 1
        if verdict.broken:
            self.failures[world.seed] = verdict.broken
        self.gaps.update(verdict.gaps)
        for name, count in world.dice.faults.items():
            point = name.removeprefix("crash@")
            if point != name:
                self.crash_points[point] += count
            elif not name.startswith("act:"):
                self.faults[name.partition("@")[0]] += count
        self.calls += len(world.history.sent)
        self.records += len(world.shown)
        self.receipts += sum(r.topic == "receipts" for _, r in world.shown)
        self.partials += sum(r.topic == "partials" for _, r in world.shown)


def run_seed(seed: int, left_out: Iterable[Struck] = ()) -> tuple[World, Verdict]:
    """One world and what the auditor says of it."""
    with _quiet():
        world = World(seed, frozenset(left_out)).run()
        return world, audit(world)


def explore(
    seeds: Iterable[int], on_failure: Callable[[int, list[str]], None] = lambda *_: None
) -> Summary:
    """Run them all."""
    summary = Summary()
    began_s = time.perf_counter()
    usual = gc.get_threshold()
    gc.set_threshold(GC_OBJECTS)
    try:
        for seed in seeds:
            world, verdict = run_seed(seed)
            summary.take(world, verdict)
            if verdict.broken:
                on_failure(seed, verdict.broken)
    finally:
        gc.set_threshold(*usual)
    summary.seconds = time.perf_counter() - began_s
    return summary


def first_caught(seeds: Iterable[int]) -> tuple[int, list[str]] | None:
    """The first seed that breaks an invariant, or None."""
    for seed in seeds:
        _, verdict = run_seed(seed)
        if verdict.broken:
            return seed, verdict.broken
    return None


def shrink(seed: int) -> frozenset[Struck]:
    """Which faults and actions can be left out while the same invariant still breaks."""
    world, verdict = run_seed(seed)
    broken = {told.partition(":")[0] for told in verdict.broken}
    left_out: frozenset[Struck] = frozenset()
    runs = 0
    size = max(len(world.dice.struck) // 2, 1)
    while runs < SHRINK_RUNS_MAX:
        smaller = False
        for part in _parts(world.dice.struck, size):
            tried = left_out | set(part)
            again, told = run_seed(seed, tried)
            runs += 1
            if broken & {what.partition(":")[0] for what in told.broken}:
                left_out, world, smaller = tried, again, True
                break
            if runs >= SHRINK_RUNS_MAX:
                break
        if not smaller and size == 1:
            break
        if not smaller:
            size = max(size // 2, 1)
    return left_out


def tell(seed: int, left_out: frozenset[Struck] = frozenset()) -> list[str]:
    """A world's broken invariants and its trace."""
    world, verdict = run_seed(seed, left_out)
    return [*(f"BROKEN {told}" for told in verdict.broken), *trace(world)]


def named_points() -> set[str]:
    """Every crash point that production code names."""
    return {*map(str, CrashPoint), *map(str, Point)}


def _parts(struck: Sequence[Struck], size: int) -> list[Sequence[Struck]]:
    return [struck[start : start + size] for start in range(0, len(struck), size)]


class _quiet:  # noqa: N801 - reads as a word where it is used
    """Production code may log warnings about what the world does to it."""

    def __enter__(self) -> None:
        logging.disable(logging.WARNING)

    def __exit__(self, *_: object) -> None:
        logging.disable(logging.NOTSET)
