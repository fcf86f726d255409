"""The consumer: polls, drops what is not ours, seeks back after an abort, keeps a short queue.

Rebalance callbacks fire only inside `poll`. No transaction is ever open there, which is how the
fence by generation becomes one by partition (engine rule 4). Positions are committed with the
transaction alone: auto-commit is off and nothing else commits (engine rule 1).
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from streams.settings import KafkaConfig, LoopSettings
from streams.source import LogRecord, read_message
from streams.topology import Stage
from tallystick.codec import Codec
from tallystick.errors import OperatorError, SourceTruncated, TallyError, invariant
from tallystick.topics import full_name, short_name

_log = logging.getLogger(__name__)

Place = tuple[str, int]
OnPartitions = Callable[[set[int]], None]

_HOPELESS = {
    KafkaError.INVALID_SESSION_TIMEOUT: "use a session timeout that the broker allows "
    "(group.min.session.timeout.ms)",
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: "stop the other consumers of this group first",
    KafkaError.GROUP_MAX_SIZE_REACHED: "stop a worker, or raise group.max.size",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "grant this client access",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "grant this client access",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "grant this client access",
}
"""Errors that trying again never mends, and what does."""

_TAKEN = frozenset(
    {
        KafkaError._FATAL,  # noqa: SLF001 - its public name
        KafkaError._FENCED,  # noqa: SLF001 - its public name
        KafkaError.FENCED_INSTANCE_ID,
    }
)
_SEEK_LATER = frozenset(
    {
        KafkaError._STATE,  # noqa: SLF001 - its public name
        KafkaError._TIMED_OUT,  # noqa: SLF001 - its public name
        KafkaError._IN_PROGRESS,  # noqa: SLF001 - its public name
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - its public name
    }
)


_NUDGE_S = 0.5
"""Longest wait for the answer that wakes a fetcher. Higher: a broker that is away delays the other
partitions."""


class SlotTaken(OperatorError):
    """Someone joined the group under this slot's name after us; this worker ends.

    Give each worker its own slot. Where that is so, it was this worker's own earlier request,
    answered late by a broker that had stood still: start it again.
    """

    code: ClassVar[str] = "slot_taken"


def consumer_config(stage: Stage, settings: LoopSettings) -> KafkaConfig:
    """The source consumer's configuration."""
    return {
        **settings.kafka,
        "bootstrap.servers": settings.bootstrap,
        "group.id": stage.group(settings.prefix),
        "group.instance.id": settings.slot,
        "group.protocol": "classic",
        # Engine rule 26: eager, and co-partitioned inputs stay together.
        "partition.assignment.strategy": "range",
        "enable.auto.commit": False,  # engine rule 1
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",  # engine rule 19: never jump
        "session.timeout.ms": settings.session_timeout_ms,
        "heartbeat.interval.ms": min(settings.heartbeat_ms, settings.session_timeout_ms // 3),
        "max.poll.interval.ms": settings.poll_gap_ms_max,  # engine rule 27
        "fetch.wait.max.ms": settings.fetch_wait_ms,
        # librdkafka waits a second by default after a full queue: hidden latency.
        "fetch.queue.backoff.ms": 10,
        "fetch.error.backoff.ms": 50,
        "queued.max.messages.kbytes": 16_384,
    }


class Intake:
    """Records of the running partitions, in order, each once."""

    def __init__(
        self,
        stage: Stage,
        settings: LoopSettings,
        codec: Codec,
        on_assigned: OnPartitions,
        on_dropped: Callable[[set[int], bool], None],
    ) -> None:
        self._stage = stage
        self._settings = settings
        self._codec = codec
        self._on_assigned = on_assigned
        self._on_dropped = on_dropped
        self._fault: TallyError | None = None
        self._next: dict[Place, int] = {}
        self._unsought: dict[Place, int] = {}
        self.queue: deque[LogRecord] = deque()
        self.consumer = Consumer(consumer_config(stage, settings), logger=_log)

    def subscribe(self) -> None:
        """Join the group; after the producer was initialised (engine rule 9)."""
        names = [full_name(self._settings.prefix, topic) for topic in self._stage.sources]
        self.consumer.subscribe(
            names, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def poll(self, wait_s: float, room: int) -> None:
        """Wait for a record, then take what has already been fetched, up to `room` more.

        `consume(n, t)` waits for n records or t, so it is only used with no wait at all.
        """
        self._seek()
        first = self.consumer.poll(wait_s)
        messages = [] if first is None else [first]
        if messages and room > 1:
            messages += self.consumer.consume(room - 1, 0)
        if self._fault is not None:
            raise self._fault
        for message in messages:
            self._take(message)

    def start(self, partition: int, positions: dict[str, int]) -> None:
        """Let a restored partition run from these positions."""
        for topic, offset in positions.items():
            self._unsought[topic, partition] = offset
        self._seek()
        self._nudge([full_name(self._settings.prefix, topic) for topic in positions], partition)

    def rewind(self, positions: dict[Place, int]) -> None:
        """After an abort: forget what is queued, and seek every touched partition back to its
        committed position (engine rule 10)."""
        self.queue.clear()
        for place, offset in positions.items():
            if self._next.get(place) != offset:
                self._unsought[place] = offset
        self._seek()

    def leave(self) -> None:
        """Leave the group at once, static membership or not."""
        self.consumer.unsubscribe()

    def close(self) -> None:
        """Close the consumer; its partitions are revoked first."""
        self.consumer.close()

    def _take(self, message: Message) -> None:
        error = message.error()
        place = (short_name(self._settings.prefix, message.topic() or ""), message.partition() or 0)
        if error is not None:
            self._note(error, place)
            return
        expected, offset = self._next.get(place), message.offset() or 0
        if expected is None or place in self._unsought or offset < expected:
            return  # engine rule 29: no longer ours, or fetched before a seek
        self._next[place] = offset + 1
        self.queue.append(read_message(message, self._settings.prefix, self._codec))

    def _note(self, error: KafkaError, place: Place) -> None:
        code, where = error.code(), f"{place[0]}[{place[1]}]"
        if error.fatal() or code in _TAKEN:
            raise SlotTaken(
                f"this consumer was fenced: {error.str()}",
                where=f"slot {self._settings.slot}",
                fix="give each worker its own slot; after a broker stood still, start it again",
            )
        if code in _HOPELESS:
            raise OperatorError(error.str(), where=where, fix=_HOPELESS[code])
        if code == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - its public name
            if place in self._next and place not in self._unsought:
                raise SourceTruncated(
                    f"the position lies outside the log: {error.str()}",
                    where=where,
                    fix="restore the topic, or set the group's offset by hand",
                )
            return
        _log.warning("%s: %s", where, error.str())

    def _seek(self) -> None:
        """Seek what is to be sought; what cannot be yet is tried again before the next poll."""
        for (topic, partition), offset in list(self._unsought.items()):
            place = TopicPartition(full_name(self._settings.prefix, topic), partition, offset)
            try:
                self.consumer.seek(place)
                if (topic, partition) not in self._next:
                    self.consumer.resume([TopicPartition(place.topic, partition)])
            except KafkaException as error:
                if error.args[0].code() not in _SEEK_LATER:
                    raise
                continue
            self._next[topic, partition] = offset
            del self._unsought[topic, partition]

    def _nudge(self, names: list[str], partition: int) -> None:
        """Ask the leaders for something, which wakes the threads that fetch: a resumed partition
        would wait up to a second for them to look up by themselves."""
        with contextlib.suppress(KafkaException):  # then they do look up by themselves
            self.consumer.offsets_for_times(
                [TopicPartition(name, partition, 0) for name in names], timeout=_NUDGE_S
            )

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """Take them paused: they run once they are restored, from explicit positions only."""
        paused = [TopicPartition(place.topic, place.partition, 0) for place in places]
        consumer.assign(paused)
        consumer.pause(paused)
        self._guarded(lambda: self._on_assigned(self._whole(places)))

    def _whole(self, places: list[TopicPartition]) -> set[int]:
        """The stage partitions behind topic partitions; each must have come with all its topics."""
        by_partition: dict[int, set[str]] = {}
        for place in places:
            topic = short_name(self._settings.prefix, place.topic)
            by_partition.setdefault(place.partition, set()).add(topic)
        for partition, topics in by_partition.items():
            if topics != set(self._stage.sources):
                raise OperatorError(
                    f"partition {partition} was assigned without all of its topics",
                    where=f"stage {self._stage.name}",
                    fix="workers of one group subscribe to different topics; stop the older ones",
                )
        return set(by_partition)

    def _revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._drop(consumer, places, lost=False)

    def _lost(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._drop(consumer, places, lost=True)

    def _drop(self, consumer: Consumer, places: list[TopicPartition], *, lost: bool) -> None:
        """Forget their records before returning (engine rule 4); lost ones are never flushed
        (engine rule 30)."""
        gone = {(short_name(self._settings.prefix, p.topic), p.partition) for p in places}
        self.queue = deque(r for r in self.queue if (r.topic, r.partition) not in gone)
        for place in gone:
            self._next.pop(place, None)
            self._unsought.pop(place, None)
        self._guarded(lambda: self._on_dropped({partition for _, partition in gone}, lost))
        consumer.unassign()

    def _guarded(self, call: Callable[[], None]) -> None:
        """Keep an error for the loop: librdkafka's callbacks are no place to raise through."""
        try:
            call()
        except TallyError as error:
            self._fault = self._fault or error


def check_closed(is_open: bool) -> None:
    """Engine rule 4, structurally: the consumer is polled only while no transaction is open."""
    invariant(not is_open, "engine rule 4: no transaction is open while callbacks can fire")
