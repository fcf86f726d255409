"""A lab for failure tests: topics, notes in, echoes out, worker processes to hurt, their stores."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from ops.processes import Piece
from streams.rows import parse_state_row
from streams.store import Store, StoreLocked, store_path
from tallystick.partitioning import partition_for
from tallystick.records import DeadLetter
from tests.streams.toy import (
    CHANGELOG,
    ECHOES,
    LETTERS,
    MORE_NOTES,
    NOTES,
    TICKS,
    Echo,
    Note,
)

QUICK: dict[str, Any] = {
    "session_timeout_ms": 2_000,
    "heartbeat_ms": 200,
    "poll_gap_ms_max": 10_000,
    "transaction_timeout_ms": 5_000,
    "message_timeout_ms": 4_000,
    "restore_stall_ms": 20_000,
    "fetch_wait_ms": 100,
}
"""Short bounds, so that a test takes seconds."""

PATIENCE_S = 45.0
"""How long a test waits for a fact before it fails."""


def eventually(what: str, held: Callable[[], Any], within_s: float = PATIENCE_S) -> Any:
    """Wait until `held()` is truthy and return it; fail naming `what`."""
    end_s = time.monotonic() + within_s
    while True:
        value = held()
        if value:
            return value
        if time.monotonic() > end_s:
            raise AssertionError(f"did not happen within {within_s:g} s: {what}")
        time.sleep(0.05)


class Lab:
    """One tenant's topics on one broker, and everything around them."""

    def __init__(
        self,
        bootstrap: str,
        prefix: str,
        folder: Path,
        partitions: int = 1,
        session_timeout_ms: int = QUICK["session_timeout_ms"],
    ) -> None:
        self.quick = {**QUICK, "session_timeout_ms": session_timeout_ms}
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.folder = folder
        self.partitions = partitions
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._apps: list[Piece] = []
        self._sent = 0
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})

    def create(self, *, echo_bytes_max: int = 1_048_588, **changelog: str) -> Lab:
        """The toy's topics; `changelog` adds to that topic's settings (dots as underscores)."""
        extra = {name.replace("_", "."): value for name, value in changelog.items()}
        stamped = {"message.timestamp.type": "LogAppendTime"}
        topics = [self._topic(name, stamped) for name in (NOTES, MORE_NOTES, TICKS)]
        sized = {**stamped, "max.message.bytes": str(echo_bytes_max)}
        topics.append(self._topic(ECHOES, sized))
        topics.append(self._topic(LETTERS, {**stamped, "max.message.bytes": "6000000"}))
        topics.append(self._topic(CHANGELOG, {"cleanup.policy": "compact", **extra}))
        for made in self.admin.create_topics(topics).values():
            made.result(30)
        return self

    def _topic(self, name: str, config: dict[str, str]) -> NewTopic:
        return NewTopic(self.prefix + name, self.partitions, 1, config=config)

    def app(
        self,
        slot: str = "a",
        *,
        at: str = "",
        act: str = "kill",
        settings: dict[str, Any] | None = None,
        extra: Iterable[str] = (),
    ) -> Piece:
        """Start a worker without waiting for it."""
        command = [sys.executable, "-m", "tests.failures.app"]
        command += ["--bootstrap", self.bootstrap, "--prefix", self.prefix, "--slot", slot]
        command += ["--state-dir", str(self.folder / slot), "--at", at, "--act", act]
        command += ["--settings", json.dumps({**self.quick, **(settings or {})}), *extra]
        self.folder.mkdir(parents=True, exist_ok=True)
        piece = Piece(slot, command, self.folder / f"{slot}.log", {}).start()
        self._apps.append(piece)
        return piece

    def ready_app(self, slot: str = "a", **more: Any) -> Piece:
        """Start a worker and wait until it runs its share."""
        return self.app(slot, **more).wait_ready()

    def log_of(self, slot: str = "a") -> str:
        """What a worker wrote on standard error."""
        path = self.folder / f"{slot}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """End whatever still runs."""
        for piece in self._apps:
            if piece.returncode is None:
                piece.kill()

    def send(
        self,
        *texts: str,
        key: str = "k",
        topic: str = NOTES,
        headers: list[tuple[str, bytes]] | None = None,
        partition: int | None = None,
    ) -> list[str]:
        """Log notes; returns their ids."""
        ids = []
        for text in texts:
            self._sent += 1
            ids.append(f"n{self._sent}")
            self.send_raw(
                key.encode(),
                msgspec.json.encode(Note(note_id=ids[-1], text=text)),
                topic=topic,
                partition=partition_for(key, self.partitions) if partition is None else partition,
                headers=headers,
            )
        return ids

    def send_together(self, *texts: str, key: str = "k") -> None:
        """Log notes that a consumer sees all at once, since one transaction commits them."""
        notes: list[tuple[bytes, bytes | None]] = []
        for text in texts:
            self._sent += 1
            note = Note(note_id=f"n{self._sent}", text=text)
            notes.append((key.encode(), msgspec.json.encode(note)))
        self.transaction(NOTES, notes)

    def send_raw(
        self,
        key: bytes | None,
        value: bytes | None,
        *,
        topic: str = NOTES,
        partition: int = 0,
        headers: list[tuple[str, bytes]] | None = None,
    ) -> None:
        """Log bytes and wait for the acknowledgement."""
        self._producer.produce(
            self.prefix + topic, value=value, key=key, partition=partition, headers=headers or []
        )
        assert self._producer.flush(30) == 0

    def transaction(
        self,
        topic: str,
        rows: dict[bytes, bytes | None] | list[tuple[bytes, bytes | None]],
        *,
        end: str = "commit",
    ) -> Producer:
        """Write rows to partition 0 in a transaction of a foreign producer; `end` is commit,
        abort or open. Returns the producer, which can end an open one."""
        self._sent += 1
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": f"{self.prefix}foreign-{self._sent}",
                "transaction.timeout.ms": 60_000,
            }
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        for row, value in rows.items() if isinstance(rows, dict) else rows:
            producer.produce(self.prefix + topic, key=row, value=value, partition=0)
        assert producer.flush(30) == 0
        if end == "commit":
            producer.commit_transaction(30)
        elif end == "abort":
            producer.abort_transaction(30)
        return producer

    def set_topic(self, topic: str, **config: str) -> None:
        """Change settings of a topic (dots as underscores)."""
        self._alter(ResourceType.TOPIC, self.prefix + topic, config)

    def compact(self, topic: str, gone: Callable[[], bool]) -> None:
        """Have the broker compact a topic until `gone()`; an aborted record closes its segment."""
        for broker in self.admin.list_topics(timeout=30).brokers:
            self._alter(ResourceType.BROKER, str(broker), {"log_cleaner_backoff_ms": "200"})
        self.set_topic(
            topic,
            segment_ms="100",
            min_cleanable_dirty_ratio="0.0",
            delete_retention_ms="0",
            min_compaction_lag_ms="0",
            max_compaction_lag_ms="100",
        )

        def rolled() -> bool:
            self.transaction(topic, {b"roll": b"x"}, end="abort")
            time.sleep(0.3)
            return gone()

        eventually(f"{topic} is compacted", rolled, 90)

    def _alter(self, kind: ResourceType, name: str, config: dict[str, str]) -> None:
        entries = [
            ConfigEntry(
                key.replace("_", "."),
                value,
                incremental_operation=AlterConfigOpType.SET,
            )
            for key, value in config.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        for done in self.admin.incremental_alter_configs([resource]).values():
            done.result(30)

    def read(self, topic: str, *, committed: bool = True) -> list[Message]:
        """Every record from the log's start to its end, partition by partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"{self.prefix}lab",
                "enable.auto.commit": False,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "log_level": 0,
            }
        )
        found = []
        for partition in range(self.partitions):
            # Asked for here, since a consumer that looks for the start by itself takes its time.
            place = TopicPartition(self.prefix + topic, partition)
            place.offset, _ = consumer.get_watermark_offsets(place, timeout=30)
            consumer.assign([place])
            while True:
                message = consumer.poll(PATIENCE_S)
                assert message is not None, f"reading {topic} stood still"
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    break
        consumer.close()
        return found

    def echoes(self) -> list[Echo]:
        """The committed outputs."""
        return [msgspec.json.decode(m.value() or b"", type=Echo) for m in self.read(ECHOES)]

    def letters(self) -> list[DeadLetter]:
        """The committed dead letters."""
        return [msgspec.json.decode(m.value() or b"", type=DeadLetter) for m in self.read(LETTERS)]

    def wait_echoes(self, count: int, within_s: float = PATIENCE_S) -> list[Echo]:
        """Wait for at least `count` committed echoes."""
        found: list[Echo] = eventually(
            f"{count} echoes",
            lambda: echoes if len(echoes := self.echoes()) >= count else None,
            within_s,
        )
        return found

    def committed(self, topic: str = NOTES, partition: int = 0) -> int:
        """The group's position in a source."""
        group = ConsumerGroupTopicPartitions(f"{self.prefix}toy")
        listed = self.admin.list_consumer_group_offsets([group])[f"{self.prefix}toy"].result(30)
        for place in listed.topic_partitions:
            if (place.topic, place.partition) == (self.prefix + topic, partition):
                return int(place.offset)
        return -1

    def store(self, slot: str = "a", partition: int = 0) -> Store:
        """A worker's store, opened; the worker must have ended."""
        path = store_path(self.folder / slot, "toy", partition)

        def opened() -> Store | None:
            try:
                return Store(path)
            except StoreLocked:
                return None

        store: Store = eventually(f"{path} is free", opened)
        return store

    def local_rows(self, slot: str = "a", partition: int = 0) -> dict[bytes, bytes]:
        """Every row of a worker's store but its mark."""
        store = self.store(slot, partition)
        try:
            return {
                row: value for kind in (b"s", b"t", b"d") for row, value in store.scan(kind, kind)
            }
        finally:
            store.close()

    def logged_rows(self, partition: int = 0) -> dict[bytes, bytes]:
        """What the committed changelog says the rows are."""
        rows: dict[bytes, bytes] = {}
        for message in self.read(CHANGELOG):
            if message.partition() == partition:
                value = message.value()
                if value is None:
                    rows.pop(message.key() or b"", None)
                else:
                    rows[message.key() or b""] = value
        return rows

    def count_of(self, key: str, slot: str = "a", partition: int = 0) -> int:
        """The counter in a key's stored state; 0 without one."""
        for row, value in self.local_rows(slot, partition).items():
            if parse_state_row(row) == (key, 0):
                return int(msgspec.msgpack.decode(value)[0])
        return 0


def wait_exit(piece: Piece, within_s: float = PATIENCE_S) -> int:
    """Wait until a worker ended; returns its exit code (negative: by that signal)."""
    eventually(f"{piece.name} ends", lambda: piece.returncode is not None, within_s)
    code = piece.returncode
    assert code is not None
    return code


def wait_stopped(pid: int) -> None:
    """Wait until a process stands still (SIGSTOP takes a moment to reach every thread)."""
    stat = Path(f"/proc/{pid}/stat")
    eventually(f"{pid} stops", lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")


KILLED = -signal.SIGKILL
