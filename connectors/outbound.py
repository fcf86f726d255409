"""Facts on their way into the log: an idempotent producer that never waits for a transaction.

An outcome or a read-back is true whoever logs it, and the fold drops repeats, so it needs no
fence; what it needs is to arrive soon.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, Message, Producer

from streams.catalogue import message_bytes_max
from streams.outputs import Output
from tallystick.codec import Codec
from tallystick.events import event_headers
from tallystick.records import Record
from tallystick.topics import Topic, full_name

DELIVERY_MS = 120_000
"""How long a fact may wait for a broker. Lower: an election loses outcomes, which then have to be
read back. Higher: a fact arrives long after its claim has expired anyway."""

QUEUE_FULL_POLL_S = 0.05
"""Pause while librdkafka's queue is full; deliveries make room meanwhile."""

_log = logging.getLogger(__name__)


class Outbound:
    """Produce records to their source's partition, from any thread."""

    def __init__(
        self, config: Mapping[str, str | int | float | bool], prefix: str, codec: Codec, source: str
    ) -> None:
        self._producer = Producer(
            {
                **config,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                "partitioner": "murmur2_random",
                "delivery.timeout.ms": DELIVERY_MS,
                "message.max.bytes": message_bytes_max(),
            }
        )
        self._prefix = prefix
        self._codec = codec
        self._source = source
        self._closing = threading.Event()
        self._pump = threading.Thread(target=self._poll, name="outbound", daemon=True)
        self._pump.start()

    def send(
        self,
        topic: Topic,
        key: str,
        partition: int,
        record: Record,
        event_id: str,
        delivered: Callable[[], None] | None = None,
    ) -> None:
        """Produce one record; `delivered` runs on another thread once it is in the log."""

        value, headers = self._codec.encode(topic, record)
        output = Output(
            topic=topic,
            key=key.encode(),
            value=value,
            headers=[*event_headers(topic, self._source, event_id), *headers],
            partition=partition,
        )
        self.send_output(output, delivered)

    def send_output(self, output: Output, delivered: Callable[[], None] | None = None) -> None:
        """As `send`, for a record that is encoded already."""

        def on_delivery(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                _log.error("not delivered to %s: %s", output.topic, error.str())
            elif delivered is not None:
                delivered()

        while True:
            try:
                self._producer.produce(
                    full_name(self._prefix, output.topic),
                    key=output.key,
                    value=output.value,
                    partition=-1 if output.partition is None else output.partition,
                    headers=list(output.headers),
                    on_delivery=on_delivery,
                )
            except BufferError:
                self._closing.wait(QUEUE_FULL_POLL_S)
            else:
                return

    def close(self, flush_s: float) -> int:
        """Wait for deliveries; returns how many records were left behind."""
        left = self._producer.flush(flush_s)
        self._closing.set()
        self._pump.join()
        return int(left)

    def _poll(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(0.1)
