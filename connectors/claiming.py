"""Claims as transactions: `attempt started` for each intent of a batch, with their offsets."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from confluent_kafka import Message, TopicPartition

from connectors.claims import Claim, boot_ms, started
from connectors.dead_letters import dead_letter
from connectors.intake import Intake
from connectors.settings import ConnectorSettings
from streams.fence import FenceLost, require_fence
from streams.outputs import Output
from streams.source import Cause
from streams.transaction import TransactionAborted, TransactionalProducer
from streams.watchdog import Watchdog
from tallystick.codec import Codec
from tallystick.errors import UndecodableRecord
from tallystick.events import event_headers
from tallystick.records import Intent
from tallystick.topics import Topic

SOURCE = "tallystick/dispatcher"
_log = logging.getLogger(__name__)


class Claiming:
    """Turns a batch of messages into claims that are ours to follow with a call."""

    def __init__(
        self, settings: ConnectorSettings, intake: Intake, codec: Codec, watchdog: Watchdog
    ) -> None:
        self._settings = settings
        self._intake = intake
        self._codec = codec
        self._producer = TransactionalProducer(
            f"{settings.prefix}dispatcher-{settings.slot}", settings, watchdog
        )

    def start(self) -> None:
        """Abort what a dead predecessor in this slot left open."""
        self._producer.start()

    def claim(self, messages: Sequence[Message]) -> list[Claim]:
        """Log the claims and the offsets in one transaction; an aborted one claims nothing.

        Raises TransactionFatal when the slot is used by another process.
        """
        try:
            intents = self._log_claims(messages)
        except (TransactionAborted, FenceLost) as error:
            _log.warning("claims were given up and are read again: %s", error)
            self._producer.abort()
            self._intake.seek_back(messages)
            return []
        claimed_boot_ms, taken = intents
        return [
            Claim(intent, claimed_boot_ms, partition, self._producer.logged_at_ms(cause))
            for intent, partition, cause in taken
        ]

    def _log_claims(
        self, messages: Sequence[Message]
    ) -> tuple[int, list[tuple[Intent, int, Cause]]]:
        # Taken before the claim is logged, so the send window never looks longer than it is.
        claimed_boot_ms = boot_ms()
        taken = []
        self._producer.begin()
        for message in messages:
            partition, offset = message.partition() or 0, message.offset() or 0
            cause = Cause(Topic.INTENTS, partition, offset)
            try:
                record = self._codec.decode(Topic.INTENTS, message.value(), message.headers())
            except UndecodableRecord as error:
                letter = dead_letter(self._codec, "dispatcher", Topic.INTENTS, message, error)
                self._producer.send(letter, cause)
                continue
            if isinstance(record, Intent):
                self._producer.send(self._started(record, partition), cause)
                taken.append((record, partition, cause))
        fence = require_fence(self._intake.consumer.consumer_group_metadata())
        self._producer.send_offsets(_next_offsets(messages), fence)
        self._producer.commit()
        return claimed_boot_ms, taken

    def _started(self, intent: Intent, partition: int) -> Output:
        value, headers = self._codec.encode(Topic.ATTEMPTS, started(intent, self._settings.slot))
        event_id = f"{intent.intent_id}/{intent.attempt}/started"
        return Output(
            topic=Topic.ATTEMPTS,
            key=intent.commit_key.encode(),
            value=value,
            headers=[*event_headers(Topic.ATTEMPTS, SOURCE, event_id), *headers],
            partition=partition,
        )


def _next_offsets(messages: Sequence[Message]) -> list[TopicPartition]:
    ends: dict[tuple[str, int], int] = {}
    for message in messages:
        place = (message.topic() or "", message.partition() or 0)
        ends[place] = max(ends.get(place, 0), (message.offset() or 0) + 1)
    return [TopicPartition(topic, number, end) for (topic, number), end in ends.items()]
