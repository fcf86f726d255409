"""The transactional producer of a simulated process: what `streams.transaction` is on a broker."""

from __future__ import annotations

from streams.outputs import Output
from streams.source import Cause
from tallystick.partitioning import partition_for
from tests.simulation.log import Folded, Log, Place, Refused, Txn

TIMEOUT_MS = 12_000
"""`transaction.timeout.ms` of the loop's defaults."""


class SimProducer:
    """Keeps one transaction open at most; `sent` is what delivery reports say of it."""

    def __init__(self, log: Log, producer: str) -> None:
        self._log = log
        self._id = producer
        self._epoch = -1
        self.txn: Txn | None = None
        self.changelog_next: dict[int, int] = {}
        self.logged_at_ms: dict[Cause, int] = {}

    def start(self) -> None:
        """Fence whoever had this id before, and abort what it left open."""
        self._epoch = self._log.init_producer(self._id)

    def begin(self) -> None:
        """See Transaction."""
        if self.txn is None:
            self.txn = self._log.begin(self._id, self._epoch, TIMEOUT_MS)
            self.changelog_next = {}
            self.logged_at_ms = {}

    def send(self, output: Output, cause: Cause) -> None:
        """See Sink; a transaction that the broker ended meanwhile fails at its commit."""
        self.begin()
        if self.txn is None or self.txn.state != "open":
            raise Refused("the transaction timed out")
        partition = output.partition
        if partition is None:
            partition = partition_for(output.key.decode(), self._log.partitions)
        topic = str(output.topic)
        raw = self._log.append(
            topic, partition, output.key, output.value, list(output.headers), self.txn
        )
        self.logged_at_ms[cause] = raw.at_ms
        self._log.causes[topic, partition, raw.offset] = cause
        if topic.endswith("-changelog"):
            self.changelog_next[partition] = raw.offset + 1

    def send_offsets(self, group: str, fence: tuple[str, int], offsets: dict[Place, int]) -> None:
        """Positions join the transaction, under the group's fence."""
        if self.txn is not None:
            self._log.send_offsets(self.txn, self._log.groups[group], fence, offsets)

    def commit(self, consumed: list[Folded]) -> None:
        """Make it visible; `consumed` is noted for the auditor."""
        if self.txn is not None:
            self.txn.consumed = consumed
            self._log.commit(self.txn)
            self.txn = None

    def abort(self) -> None:
        """Give it up."""
        if self.txn is not None:
            self._log.abort(self.txn)
            self.txn = None
