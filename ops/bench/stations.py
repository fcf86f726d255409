"""Where a commit's time goes: the log times at which its records stood at each station."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict

import msgspec

from streams.scan import LogReader
from tallystick.codec import FingerprintCodec
from tallystick.records import Attempt, AttemptPhase
from tallystick.topics import Topic

_STATIONS = (
    (Topic.PLAN_REQUESTS, "request logged"),
    (Topic.INTENTS, "last intent logged"),
    (Topic.ATTEMPTS, "last claim logged"),
    (Topic.ATTEMPTS, "last outcome logged"),
    (Topic.READBACK_REQUESTS, "read-back asked for"),
    (Topic.READBACKS, "read-back logged"),
    (Topic.RECEIPTS, "receipt logged"),
)


class Leg(msgspec.Struct):
    """The way from one station to the next."""

    name: str
    p50_ms: float
    p99_ms: float


def legs(bootstrap: str, prefix: str, keys: str) -> list[Leg]:
    """Every leg over the commits whose key begins with `keys`."""
    at: dict[str, dict[str, int]] = defaultdict(dict)
    reader = LogReader(bootstrap, prefix, FingerprintCodec())
    try:
        for topic in dict.fromkeys(topic for topic, _ in _STATIONS):
            for entry in reader.read_all(topic):
                if entry.key.startswith(keys):
                    station = _station(topic, entry.record)
                    at[entry.key][station] = max(entry.at_ms, at[entry.key].get(station, 0))
    finally:
        reader.close()
    names = [name for _, name in _STATIONS]
    return [_leg(before, after, at) for before, after in itertools.pairwise(names)]


def _station(topic: Topic, record: object) -> str:
    if isinstance(record, Attempt):
        claim = record.phase is AttemptPhase.STARTED
        return "last claim logged" if claim else "last outcome logged"
    return next(name for place, name in _STATIONS if place is topic)


def _leg(before: str, after: str, at: dict[str, dict[str, int]]) -> Leg:
    times = [
        float(stations[after] - stations[before])
        for stations in at.values()
        if before in stations and after in stations
    ]
    cuts = statistics.quantiles(times, n=100) if len(times) > 1 else [0.0] * 99
    return Leg(name=f"{before} → {after}", p50_ms=cuts[49], p99_ms=cuts[98])
