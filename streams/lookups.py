"""Questions to the broker outside the data path: partition counts, log bounds, topic settings.

Ends are asked for as read_uncommitted: a read_committed end hides committed records that stand
above another worker's open transaction (engine rule 7).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from confluent_kafka import (
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it has no __all__
    AdminClient,
    ConfigResource,
    OffsetSpec,
)

from streams.settings import LoopSettings
from tallystick.errors import BrokerUnavailable, TopicMismatch

Place = tuple[str, int]

_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""An all-zero id: the broker does not number its topics."""

_LOOK_AGAIN_S = 0.2
"""Pause between two looks for missing topics. Lower: more requests at start."""

DELETE_RETENTION_MS = 24 * 3_600_000
"""Kafka's own default, used where a broker does not tell."""


@dataclass(frozen=True, slots=True)
class ChangelogFacts:
    """What a changelog topic is: its id ("" if unknown) and how long it keeps tombstones."""

    topic_id: str
    delete_retention_ms: int


class Lookups:
    """An admin client; every method may block up to `lookup_ms`."""

    def __init__(self, settings: LoopSettings) -> None:
        self._where = settings.bootstrap
        self._wait_s = settings.lookup_ms / 1_000
        self._admin = AdminClient({**settings.kafka, "bootstrap.servers": settings.bootstrap})

    def partition_counts(self) -> dict[str, int]:
        """Partitions of every topic; raises BrokerUnavailable."""
        try:
            topics = self._admin.list_topics(timeout=self._wait_s).topics
        except KafkaException as error:
            raise BrokerUnavailable(
                f"no Kafka broker answers within {self._wait_s:g} s",
                where=self._where,
                fix="start one with `tallystick broker up`, or correct the address",
            ) from error
        return {name: len(topic.partitions) for name, topic in topics.items()}

    def partition_counts_with(self, wanted: Collection[str]) -> dict[str, int]:
        """The same, once all of `wanted` are there or `lookup_ms` have passed: a broker may not
        yet know topics that another one has just created."""
        until_s = time.monotonic() + self._wait_s
        while True:
            counts = self.partition_counts()
            if counts.keys() >= set(wanted) or time.monotonic() > until_s:
                return counts
            time.sleep(_LOOK_AGAIN_S)

    def changelog(self, topic: str) -> ChangelogFacts:
        """Facts of a changelog topic; raises TopicMismatch unless it is compacted only."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        try:
            described = self._admin.describe_configs([resource], request_timeout=self._wait_s)
            entries = described[resource].result(self._wait_s)
        except KafkaException as error:
            raise self._away(f"settings of {topic}", error) from error
        values = {name: entry.value for name, entry in entries.items()}
        policy = values.get("cleanup.policy") or "compact"
        if policy != "compact":
            # Engine rule 20: deletion by age or size would lose state.
            raise TopicMismatch(
                f"cleanup.policy is {policy!r}, it must be 'compact'",
                where=f"topic {topic}",
                fix="run `tallystick topics diff` and correct it",
            )
        kept = values.get("delete.retention.ms")
        return ChangelogFacts(self._topic_id(topic), int(kept) if kept else DELETE_RETENTION_MS)

    def _topic_id(self, topic: str) -> str:
        try:
            asked = self._admin.describe_topics(
                TopicCollection([topic]), request_timeout=self._wait_s
            )
            found = str(asked[topic].result(self._wait_s).topic_id)
        except KafkaException:
            return ""  # an older broker: the recreated topic is then found by its bounds alone
        return "" if found == _NO_TOPIC_ID else found

    def starts(self, places: Iterable[Place]) -> dict[Place, int]:
        """Where each log begins now."""
        return self._bounds(places, "earliest")

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """The high watermark of each log, open transactions included (engine rule 7)."""
        return self._bounds(places, "latest")

    def refresh(self) -> None:
        """Fetch metadata anew: after an election the old leaders refuse what they are asked."""
        with contextlib.suppress(KafkaException):  # whoever asks next is told
            self._admin.list_topics(timeout=self._wait_s)

    def _bounds(self, places: Iterable[Place], which: str) -> dict[Place, int]:
        spec = getattr(OffsetSpec, which)()  # these two class methods carry no types
        wanted = {TopicPartition(topic, partition): spec for topic, partition in places}
        try:
            asked = self._admin.list_offsets(
                wanted,
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
                request_timeout=self._wait_s,
            )
            return {
                (place.topic, place.partition): future.result(self._wait_s).offset
                for place, future in asked.items()
            }
        except KafkaException as error:
            raise self._away("log bounds", error) from error

    def _away(self, what: str, error: KafkaException) -> BrokerUnavailable:
        return BrokerUnavailable(
            f"{what} cannot be read: {error.args[0].str()}",
            where=self._where,
            fix="check that the brokers run and that this client may read there",
        )
