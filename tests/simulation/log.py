"""A log as Kafka keeps one: partitions, offsets with gaps, transactions, aborts, the last stable
offset, log-append time, compaction. One broker that never loses what it acknowledged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from streams.source import Cause, LogRecord, decode
from tallystick.codec import Codec
from tests.simulation.clock import Clock
from tests.simulation.groups import Group

Place = tuple[str, int]
Header = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Folded:
    """One input that a committed transaction took: a record, or the part of a tick that woke so
    many keys (`woken`); `whole` says that the position moved past it."""

    place: Place
    offset: int
    woken: int | None
    whole: bool


class Refused(Exception):
    """The broker refused an operation of a transaction, which is to be aborted."""


class Fenced(Exception):
    """A younger producer holds this transactional id: the process must end."""


@dataclass(slots=True)
class Txn:
    """One transaction; `consumed` says in which order its inputs were taken."""

    producer: str
    epoch: int
    state: str = "open"
    first: dict[Place, int] = field(default_factory=dict)
    offsets: dict[tuple[str, Place], int] = field(default_factory=dict)
    consumed: list[Folded] = field(default_factory=list)


@dataclass(slots=True)
class Entry:
    """One slot of a partition; a control record ends a transaction and is never handed out."""

    offset: int
    raw: LogRecord | None
    txn: Txn | None
    read: LogRecord | None = None


@dataclass
class Partition:
    """One partition's entries in offset order; compaction leaves gaps."""

    entries: list[Entry] = field(default_factory=list)
    end: int = 0
    at_ms: int = 0
    open: dict[int, Txn] = field(default_factory=dict)

    @property
    def stable(self) -> int:
        """The last stable offset: nothing above the first open transaction is handed out."""
        return min(self.open, default=self.end)


class Log:
    """All topics of one tenant, and the groups that read them."""

    def __init__(self, clock: Clock, codec: Codec, partitions: int) -> None:
        self.clock = clock
        self.codec = codec
        self.partitions = partitions
        self.groups: dict[str, Group] = {}
        self.consumed: list[Folded] = []
        self.causes: dict[tuple[str, int, int], Cause] = {}
        self.told: list[Callable[[str], None]] = []
        self.seen: list[Callable[[LogRecord], None]] = []
        self._places: dict[Place, Partition] = {}
        self._epochs: dict[str, int] = {}
        self._open: dict[str, Txn] = {}

    def place(self, place: Place) -> Partition:
        """A partition, which exists once it is named."""
        found = self._places.get(place)
        if found is None:
            found = self._places[place] = Partition()
        return found

    def places(self) -> dict[Place, Partition]:
        """Every partition that was ever used."""
        return self._places

    def high_watermark(self, place: Place) -> int:
        """Where the partition ends, as a read-uncommitted reader sees it (engine rule 7)."""
        return self.place(place).end

    def append(
        self,
        topic: str,
        partition: int,
        key: bytes,
        value: bytes | None,
        headers: list[Header],
        txn: Txn | None = None,
    ) -> LogRecord:
        """Write one record; the broker stamps it. Outside a transaction it is visible at once."""
        if txn is not None:
            self._check(txn)
        place = (topic, partition)
        log = self.place(place)
        log.at_ms = max(log.at_ms, self.clock.now_ms)
        raw = LogRecord(topic, partition, log.end, log.at_ms, key, value, tuple(headers))
        entry = Entry(log.end, raw, txn)
        log.entries.append(entry)
        log.end += 1
        if txn is None:
            self._show(entry)
        elif place not in txn.first:
            txn.first[place] = raw.offset
            log.open[raw.offset] = txn
        return raw

    def fetch(self, place: Place, position: int, records_max: int) -> tuple[list[LogRecord], int]:
        """Committed records from `position` on, and the position behind them."""
        log = self.place(place)
        stable = log.stable
        found: list[LogRecord] = []
        index = bisect_left(log.entries, position, key=lambda entry: entry.offset)
        while index < len(log.entries) and len(found) < records_max:
            entry = log.entries[index]
            if entry.offset >= stable:
                break
            position = entry.offset + 1
            if entry.raw is not None and (entry.txn is None or entry.txn.state == "committed"):
                found.append(self._decoded(entry))
            index += 1
        reached_end = len(found) < records_max
        return found, max(position, stable) if reached_end else position

    def committed(self, place: Place) -> list[LogRecord]:
        """Everything that a reader would ever get of this partition."""
        return self.fetch(place, 0, 1 << 60)[0]

    def init_producer(self, producer: str) -> int:
        """Begin a new epoch of a transactional id; what an older one left open is aborted."""
        self._epochs[producer] = self._epochs.get(producer, -1) + 1
        if producer in self._open:
            self._end(self._open[producer], "aborted")
        return self._epochs[producer]

    def begin(self, producer: str, epoch: int, timeout_ms: int) -> Txn:
        """Open a transaction; one that stays open too long is aborted by the broker."""
        txn = Txn(producer, epoch)
        self._check(txn)
        self._open[producer] = txn
        self.clock.after(timeout_ms, lambda: self._expire(txn))
        return txn

    def send_offsets(
        self, txn: Txn, group: Group, fence: tuple[str, int], offsets: dict[Place, int]
    ) -> None:
        """Put positions into the transaction; fenced by the group's generation (KIP-447)."""
        self._check(txn)
        if not group.admits(*fence):
            raise Refused("ILLEGAL_GENERATION")
        for place, offset in offsets.items():
            txn.offsets[group.name, place] = offset
            group.pending.setdefault(place, []).append(txn)

    def commit(self, txn: Txn) -> None:
        """All of it becomes visible at once."""
        self._check(txn)
        for (group, place), offset in txn.offsets.items():
            self.groups[group].committed[place] = offset
        self.consumed += txn.consumed
        self._end(txn, "committed")

    def abort(self, txn: Txn) -> None:
        """None of it ever happened."""
        if txn.state == "open":
            self._end(txn, "aborted")

    def compact(self, topic: str) -> int:
        """Drop committed records that a later one of the same key replaces; tombstones stay."""
        dropped = 0
        for (name, _), log in self._places.items():
            if name != topic:
                continue
            last: dict[bytes | None, int] = {}
            for entry in log.entries:
                if entry.offset < log.stable and _is_live(entry) and entry.raw is not None:
                    last[entry.raw.raw_key] = entry.offset
            kept = [entry for entry in log.entries if _stays(entry, last, log)]
            dropped += len(log.entries) - len(kept)
            log.entries = kept
        return dropped

    def _check(self, txn: Txn) -> None:
        if self._epochs.get(txn.producer) != txn.epoch:
            raise Fenced(txn.producer)
        if txn.state != "open":
            raise Refused(f"the transaction is {txn.state}")

    def _expire(self, txn: Txn) -> None:
        if txn.state == "open":
            self._end(txn, "aborted")

    def _end(self, txn: Txn, state: str) -> None:
        txn.state = state
        if self._open.get(txn.producer) is txn:
            del self._open[txn.producer]
        for group, place in txn.offsets:
            self.groups[group].pending[place].remove(txn)
        for place, first in txn.first.items():
            log = self.place(place)
            del log.open[first]
            log.entries.append(Entry(log.end, None, txn))
            log.end += 1
        if state == "committed":
            for place, first in txn.first.items():
                self._show_all(place, first, txn)
        for topic in dict.fromkeys(place[0] for place in txn.first):
            self._tell(topic)

    def _show_all(self, place: Place, first: int, txn: Txn) -> None:
        entries = self.place(place).entries
        index = bisect_left(entries, first, key=lambda entry: entry.offset)
        for entry in entries[index:]:
            if entry.txn is txn and entry.raw is not None and entry.raw.value is not None:
                self._show(entry)

    def _show(self, entry: Entry) -> None:
        for see in self.seen:
            see(self._decoded(entry))
        if entry.txn is None and entry.raw is not None:
            self._tell(entry.raw.topic)

    def _tell(self, topic: str) -> None:
        for tell in self.told:
            tell(topic)

    def _decoded(self, entry: Entry) -> LogRecord:
        if entry.read is None and entry.raw is not None:
            topic = entry.raw.topic
            entry.read = (
                entry.raw if topic.endswith("-changelog") else decode(entry.raw, self.codec)
            )
        if entry.read is None:
            raise Refused("a control record is never handed out")
        return entry.read


def _is_live(entry: Entry) -> bool:
    return entry.txn is None or entry.txn.state == "committed"


def _stays(entry: Entry, last: dict[bytes | None, int], log: Partition) -> bool:
    if entry.offset >= log.stable:
        return True
    if entry.raw is None or not _is_live(entry):
        return False
    return last[entry.raw.raw_key] == entry.offset
