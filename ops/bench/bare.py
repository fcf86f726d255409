"""The yardstick: one bare transactional hop (consume, produce, offsets, commit), nothing else."""

from __future__ import annotations

import time
import uuid

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

HOPS = 200
WARM_UP = 20


def bare_hop_ms(bootstrap: str) -> list[float]:
    """Milliseconds of each of 200 hops, one record each, one after the other."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(f"{name}-{end}", 1, 1) for end in ("in", "out")]
    for done in admin.create_topics(topics).values():
        done.result()
    source = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
    hop = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0})
    hop.init_transactions()
    reader = {"bootstrap.servers": bootstrap, "enable.auto.commit": False}
    consumer = Consumer({**reader, "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe([f"{name}-in"])
    out = Consumer({**reader, "group.id": f"{name}-out", "isolation.level": "read_committed"})
    out.assign([TopicPartition(f"{name}-out", 0, 0)])
    times = []
    for _ in range(WARM_UP + HOPS):
        began = time.perf_counter()
        source.produce(f"{name}-in", b"x" * 200)
        source.poll(0)
        message = None
        while message is None:
            message = consumer.poll(1)
        hop.begin_transaction()
        hop.produce(f"{name}-out", message.value())
        position = TopicPartition(f"{name}-in", 0, (message.offset() or 0) + 1)
        hop.send_offsets_to_transaction([position], consumer.consumer_group_metadata())
        hop.commit_transaction()
        while out.poll(1) is None:
            pass
        times.append((time.perf_counter() - began) * 1_000)
    source.flush()
    consumer.close()
    out.close()
    admin.delete_topics([topic.topic for topic in topics])
    return times[WARM_UP:]
