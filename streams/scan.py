"""Read topics from the outside, without a group: everything there is, or what comes from now on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from tallystick.codec import Codec
from tallystick.errors import BrokerUnavailable, TopicMismatch, UndecodableRecord
from tallystick.records import Record
from tallystick.topics import Topic, full_name, short_name

LOOKUP_S = 10.0
"""How long metadata and watermarks may take. Lower: a loaded broker counts as away."""

FETCH_WAIT_MS = 20
"""How long a fetch may wait at the broker. Higher: every new scan begins that much later."""

STALL_S = 15.0
"""How long a scan may stand still below its end. Lower: an open foreign transaction (which blocks
committed reads until it times out) fails a scan that would have gone on."""


@dataclass(frozen=True, slots=True)
class Logged:
    """One record where it stands in the log; `record` is None when its bytes cannot be read."""

    topic: str
    partition: int
    offset: int
    at_ms: int
    key: str
    record: Record | None


class LogReader:
    """A group-less read_committed consumer over the topics of one tenant."""

    def __init__(
        self,
        bootstrap: str,
        prefix: str,
        codec: Codec,
        config: Mapping[str, str | int | bool] | None = None,
    ) -> None:
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._codec = codec
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,
                **(config or {}),
                "group.id": f"{prefix}scan",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                # A long poll of the last assignment would hold up the first read of the next.
                "fetch.wait.max.ms": FETCH_WAIT_MS,
            }
        )

    def partitions(self, topic: Topic) -> int:
        """How many partitions a topic has; raises BrokerUnavailable or TopicMismatch."""
        name = full_name(self._prefix, topic)
        try:
            topics = self._consumer.list_topics(timeout=LOOKUP_S).topics
        except KafkaException as error:
            raise BrokerUnavailable(
                f"no Kafka broker answers within {LOOKUP_S:g} s",
                where=self._bootstrap,
                fix="start one with `tallystick broker up`, or correct --bootstrap",
            ) from error
        if name not in topics:
            raise TopicMismatch(
                f"topic {name} does not exist",
                where=self._bootstrap,
                fix="run `tallystick topics create`, or correct --prefix",
            )
        return len(topics[name].partitions)

    def read_all(self, topic: Topic, partition: int | None = None) -> Iterator[Logged]:
        """Every committed record up to where the log ends now; in order within a partition."""
        count = self.partitions(topic)
        name = full_name(self._prefix, topic)
        wanted = range(count) if partition is None else (partition,)
        self._consumer.assign([TopicPartition(name, each, OFFSET_BEGINNING) for each in wanted])
        yield from self._until_ends({(name, each) for each in wanted})
        self._consumer.unassign()

    def _until_ends(self, unfinished: set[tuple[str, int]]) -> Iterator[Logged]:
        while unfinished:
            message = self._consumer.poll(STALL_S)
            if message is None:
                raise BrokerUnavailable(
                    f"reading {sorted(unfinished)} stood still for {STALL_S:g} s",
                    where=self._bootstrap,
                    fix="an open transaction may block it; try again in a moment",
                )
            problem = message.error()
            place = (message.topic() or "", message.partition() or 0)
            if problem is None:
                if place in unfinished:
                    yield self._logged(message)
            elif problem.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                # One of an earlier scan may still come in: it names its partition.
                unfinished.discard(place)
            else:
                raise BrokerUnavailable(problem.str(), where=self._bootstrap)

    def follow(
        self, topic: Topic, *, from_beginning: bool, poll_s: float
    ) -> Iterator[Logged | None]:
        """Records as they come; None whenever `poll_s` seconds passed without one."""
        name = full_name(self._prefix, topic)
        places = []
        for number in range(self.partitions(topic)):
            place = TopicPartition(name, number, OFFSET_BEGINNING)
            if not from_beginning:
                _, place.offset = self._consumer.get_watermark_offsets(place, timeout=LOOKUP_S)
            places.append(place)
        self._consumer.assign(places)
        while True:
            message = self._consumer.poll(poll_s)
            if message is None:
                yield None
            elif message.error() is None:
                yield self._logged(message)

    def close(self) -> None:
        """Let the connection go."""
        self._consumer.close()

    def _logged(self, message: Message) -> Logged:
        topic = short_name(self._prefix, message.topic() or "")
        record: Record | None
        try:
            record = self._codec.decode(topic, message.value(), message.headers())
        except UndecodableRecord:
            record = None
        return Logged(
            topic=topic,
            partition=message.partition() or 0,
            offset=message.offset() or 0,
            at_ms=message.timestamp()[1],
            key=(message.key() or b"").decode(errors="replace"),
            record=record,
        )
