"""The client's ear: one background consumer on the partitions that its commits live in."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from tallystick.client.waiting import Waiters
from tallystick.codec import Codec
from tallystick.errors import BrokerUnavailable, UndecodableRecord
from tallystick.topics import Topic, full_name, short_name

ANSWER_TOPICS = (Topic.PLANS, Topic.RECEIPTS, Topic.PARTIALS)
PROGRESS_TOPICS = (Topic.ATTEMPTS, Topic.VERIFICATIONS)

POLL_S = 0.02
"""How long one poll may block; a record ends it at once. Higher: the first commit in a partition
waits longer for its ear. Lower: an idle client wakes up more often."""

LOOKUP_S = 10.0
"""How long the end of a partition may take to look up. Lower: a slow broker fails commits."""


class Listener:
    """Reads committed records only, from the end as it was when a partition was first watched."""

    def __init__(
        self, config: Mapping[str, str | int | bool], prefix: str, codec: Codec, waiters: Waiters
    ) -> None:
        self._consumer = Consumer(
            {
                **config,
                # Never committed to; the client library asks for one.
                "group.id": f"{prefix}client",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "latest",
                # Its default of a second would hide in every answer after a queue ran full.
                "fetch.queue.backoff.ms": 10,
                "fetch.error.backoff.ms": 50,
            }
        )
        self._admin = AdminClient(dict(config))
        self._prefix = prefix
        self._codec = codec
        self._waiters = waiters
        self._wanted: queue.SimpleQueue[tuple[list[TopicPartition], threading.Event]] = (
            queue.SimpleQueue()
        )
        self._watched: set[tuple[str, int]] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tally-listener", daemon=True)
        self._started = False

    def watch(self, partition: int, *, progress: bool) -> None:
        """Listen to `partition` of every answer topic; returns once nothing can be missed."""
        topics = (*ANSWER_TOPICS, *PROGRESS_TOPICS) if progress else ANSWER_TOPICS
        with self._lock:
            fresh = [
                full_name(self._prefix, topic)
                for topic in topics
                if (full_name(self._prefix, topic), partition) not in self._watched
            ]
            if not self._started:
                self._started = True
                self._thread.start()
            if fresh:
                self._assign(fresh, partition)

    def _assign(self, names: list[str], partition: int) -> None:
        """Begin where committed records end now.

        The ends are asked for on a connection of their own: on the consumer's they would wait
        behind its long polls.
        """
        places = [TopicPartition(name, partition) for name in names]
        latest = getattr(OffsetSpec, "latest")()  # noqa: B009 - it carries no types
        asked = self._admin.list_offsets(
            dict.fromkeys(places, latest),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=LOOKUP_S,
        )
        try:
            for place, found in asked.items():
                place.offset = found.result().offset
        except KafkaException as error:
            raise BrokerUnavailable(
                f"cannot look up where the answers begin: {error.args[0].str()}",
                where="client",
                fix="check the broker and `tallystick topics diff`",
            ) from error
        # Assigned by the thread that polls: librdkafka's Python binding can lock up otherwise.
        taken = threading.Event()
        self._wanted.put((list(asked), taken))
        if not taken.wait(LOOKUP_S):
            raise BrokerUnavailable("the client stopped listening", where="client", fix="reconnect")
        self._watched.update((name, partition) for name in names)

    def close(self) -> None:
        """Stop listening."""
        self._closing.set()
        if self._started:
            self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            while not self._wanted.empty():
                places, taken = self._wanted.get()
                self._consumer.incremental_assign(places)
                taken.set()
            message = self._consumer.poll(POLL_S)
            if message is not None:
                self._take(message)

    def _take(self, message: Message) -> None:
        if message.error() is not None:
            return  # librdkafka reconnects by itself; callers have their own deadlines
        key = message.key()
        name = message.topic()
        if key is None or name is None:
            return
        commit_key = key.decode(errors="replace")
        if not self._waiters.wants(commit_key):
            return
        try:
            record = self._codec.decode(
                short_name(self._prefix, name), message.value(), message.headers()
            )
        except UndecodableRecord as error:
            self._waiters.fail_all(error)
            return
        self._waiters.deliver(commit_key, record)
