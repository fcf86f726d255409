"""Take records from one topic as a member of a group: what dispatcher and reader have in common."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from connectors.capacity import Capacity
from connectors.settings import ConnectorSettings
from tallystick.errors import BrokerUnavailable
from tallystick.topics import Topic, full_name

_log = logging.getLogger(__name__)

Places = Iterable[TopicPartition]


class Intake:
    """A consumer that never takes more than may be in flight; used from one thread."""

    def __init__(
        self,
        settings: ConnectorSettings,
        topic: Topic,
        role: str,
        lost: Callable[[Places], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._lost = lost
        self._owned: set[tuple[str, int]] = set()
        self._stopping = threading.Event()
        self.joined = threading.Event()
        self.consumer = Consumer(
            {
                **settings.client_config,
                "group.id": f"{settings.prefix}{role}",
                "group.instance.id": f"{role}-{settings.slot}",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                # Aborted intents must never be seen (engine rules, failure test 33).
                "isolation.level": "read_committed",
                # Records below the log's start have long expired, so none is lost by beginning
                # there; a committed position is otherwise always followed.
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "range",  # engine rule 26
                "session.timeout.ms": settings.session_timeout_ms,
                "heartbeat.interval.ms": settings.heartbeat_ms,
                "max.poll.interval.ms": settings.poll_gap_ms_max,
                # Their defaults, up to a second, would hide in every hop.
                "fetch.queue.backoff.ms": 10,
                "fetch.error.backoff.ms": 50,
            },
            logger=_log,
        )
        self.consumer.subscribe(
            [full_name(settings.prefix, topic)],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._revoked,
        )

    def batches(self, capacity: Capacity) -> Iterator[list[Message]]:
        """Batches of records as there is room for them; an empty one whenever a poll ran dry."""
        while not self._stopping.is_set():
            room = capacity.wait_room(self._settings.poll_s)
            if not room:
                yield []
                continue
            first = self.consumer.poll(self._settings.poll_s)
            if first is None:
                yield []
                continue
            more = min(room, self._settings.batch_records_max) - 1
            # Never with a timeout: consume(n, t) waits for all n.
            rest = self.consumer.consume(more, 0) if more else []
            yield [message for message in (first, *rest) if self._usable(message)]

    def commit(self, positions: list[TopicPartition]) -> None:
        """Commit the positions of an at-least-once role; the group's generation fences it."""
        if not positions:
            return
        try:
            self.consumer.commit(offsets=positions, asynchronous=True)
        except KafkaException as error:
            _log.warning("positions were not committed: %s", error.args[0].str())

    def seek_back(self, messages: Iterable[Message]) -> None:
        """Read these records again: their transaction was aborted."""
        first: dict[tuple[str, int], int] = {}
        for message in messages:
            place = (message.topic() or "", message.partition() or 0)
            offset = message.offset() or 0
            first[place] = min(first.get(place, offset), offset)
        for (topic, partition), offset in first.items():
            if (topic, partition) not in self._owned:
                continue
            try:
                self.consumer.seek(TopicPartition(topic, partition, offset))
            except KafkaException as error:
                raise BrokerUnavailable(
                    f"cannot go back to an unclaimed intent: {error.args[0].str()}",
                    where=f"{topic}[{partition}]",
                    fix="start it again; it continues at its committed position",
                ) from error

    def stop(self) -> None:
        """End `batches` after its current one."""
        self._stopping.set()

    def close(self, positions: list[TopicPartition] | None = None) -> None:
        """Commit what is finished and leave the group."""
        if positions:
            try:
                self.consumer.commit(offsets=positions, asynchronous=False)
            except KafkaException as error:
                _log.warning("positions were not committed: %s", error.args[0].str())
        self.consumer.close()

    def _usable(self, message: Message) -> bool:
        """Records of partitions that were just lost are dropped (engine rule 29)."""
        problem = message.error()
        if problem is None:
            return (message.topic() or "", message.partition() or 0) in self._owned
        if problem.fatal():
            raise BrokerUnavailable(problem.str(), where="consumer", fix="start it again")
        _log.warning("consumer: %s", problem.str())
        return False

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """Take them; librdkafka itself waits for stable committed positions (engine rule 9)."""
        self._owned.update((place.topic, place.partition) for place in places)
        consumer.assign(places)
        self.joined.set()

    def _revoked(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        self._owned.difference_update((place.topic, place.partition) for place in places)
        self._lost(places)
