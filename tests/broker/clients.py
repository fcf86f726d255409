"""Small Kafka clients for these tests: make a topic, write numbered records, read them back."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

READ_S = 30.0


def make_topic(bootstrap: str, name: str, *, replicas: int = 1) -> None:
    """Create a topic of one partition and wait until it exists."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_topics([NewTopic(name, 1, replicas)])[name].result(timeout=15)


class Writer:
    """Writes numbered records with acks=all and remembers which were acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 60_000,
                "log_level": 0,
            }
        )
        self._topic = topic
        self.acknowledged: set[int] = set()
        self.refused: list[str] = []

    def write(self, number: int) -> None:
        """Queue one record and serve what was delivered meanwhile."""

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                self.acknowledged.add(number)
            else:
                self.refused.append(error.str())

        self._producer.produce(self._topic, str(number).encode(), on_delivery=delivered)
        self._producer.poll(0)

    def flush(self) -> int:
        """Wait for every record; returns how many are still on their way."""
        return self._producer.flush(60)


def read_all(bootstrap: str, topic: str, count: int) -> list[int]:
    """The topic's records from its start, once `count` are there or time is up."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    deadline = time.monotonic() + READ_S
    try:
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.2):
                value = message.value()
                if message.error() is None and value is not None:
                    found.append(int(value))
    finally:
        consumer.close()
    return found


def transaction(bootstrap: str, topic: str, *, commit: bool, value: bytes = b"1") -> None:
    """One transaction with one record, committed or aborted."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(15)
    producer.begin_transaction()
    producer.produce(topic, value)
    producer.flush(15)
    if commit:
        producer.commit_transaction(15)
    else:
        producer.abort_transaction(15)
