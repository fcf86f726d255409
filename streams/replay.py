"""Replay a stage from its inputs, offline: the same code, the same rows, the same outputs.

Within a topic the log fixes the order. Between two topics of a stage it does not: a live worker
takes what it has fetched. `in_log_time` merges by log time, which is one order that the log
allows; a fold whose result depends on another interleaving than that may have emitted otherwise
live. Given the order of consumption, a replay is byte-equal whatever the batch sizes were.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from streams.batch import Batch, Filler
from streams.metrics import NoMetrics
from streams.outputs import Output
from streams.quarantine import Quarantine
from streams.running import Running
from streams.settings import LoopSettings
from streams.source import Cause, LogRecord, read_message
from streams.stages import STAGES
from streams.store import MemoryStore
from streams.task import FoldFailed, PartitionTask
from streams.ticks import TickGate
from streams.topology import Stage
from tallystick.codec import Codec, FingerprintCodec
from tallystick.errors import BrokerUnavailable
from tallystick.topics import DEFAULT_PREFIX, full_name

STALL_S = 30.0
"""Longest wait for the next record of a log. Lower: a busy broker fails a replay. Higher: an open
foreign transaction is reported later."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came out: state rows by partition, and everything that was produced, in order.

    The changelog is left out: it holds each row once a batch, and the rows themselves are here.
    """

    rows: Mapping[int, Mapping[bytes, bytes]]
    outputs: tuple[Output, ...]

    def digest(self) -> str:
        """SHA-256 over rows and outputs; equal exactly if two replays are byte-equal."""
        total = sha256()
        for partition, rows in sorted(self.rows.items()):
            total.update(repr((partition, sorted(rows.items()))).encode())
        for output in self.outputs:
            place = (output.topic, output.partition, output.key, output.value, output.headers)
            total.update(repr(place).encode())
        return total.hexdigest()

    def to(self, topic: str) -> tuple[Output, ...]:
        """The outputs to one topic."""
        return tuple(output for output in self.outputs if output.topic == topic)


class _Collected:
    """A transaction that keeps its outputs, and forgets them when it is given up."""

    def __init__(self) -> None:
        self.kept: list[Output] = []
        self._open: list[Output] = []

    def begin(self) -> None:
        """See Transaction."""

    def send(self, output: Output, cause: Cause) -> None:
        """See Sink."""
        del cause
        self._open.append(output)

    def commit(self) -> None:
        """Keep what was sent."""
        self.kept += self._open
        self._open = []

    def abort(self) -> None:
        """Forget what was sent."""
        self._open = []


def replay(
    stage: Stage, settings: LoopSettings, codec: Codec, records: Sequence[LogRecord]
) -> Replayed:
    """Fold `records` in the order given, from nothing; of `settings` only the sizes count."""
    collected, quarantine = _Collected(), Quarantine()
    stores = {record.partition: MemoryStore() for record in records}
    running = {
        partition: _running(stage, partition, store, codec, collected, settings)
        for partition, store in stores.items()
    }
    filler = Filler(stage, settings, codec, collected, quarantine, running, NoMetrics())
    done = 0
    while done < len(records):
        queue = deque(records[done : done + settings.batch_records_max])
        offered = len(queue)
        batch = Batch()
        try:
            filler.fill(batch, queue)
        except FoldFailed as failed:
            quarantine.blame(failed.cause, failed.flaw)
            collected.abort()
            for run in running.values():
                run.task.discard()
            continue
        collected.commit()
        for partition, moved in batch.moved.items():
            running[partition].settle(moved, None, lambda: None)
        quarantine.settle(batch.buried, batch.units)
        done += offered - len(queue)
    rows = {partition: dict(sorted(store.rows.items())) for partition, store in stores.items()}
    outputs = tuple(output for output in collected.kept if output.topic != stage.changelog)
    return Replayed(rows, outputs)


def _running(
    stage: Stage,
    partition: int,
    store: MemoryStore,
    codec: Codec,
    collected: _Collected,
    settings: LoopSettings,
) -> Running:
    task = PartitionTask(
        stage, partition, store, codec, collected, NoMetrics(), settings.states_cached_max
    )
    return Running(
        task=task,
        store=store,
        gate=TickGate(0),
        positions=dict.fromkeys(stage.sources, 0),
        noted=set(),
        changelog_next=0,
        changelog_id="",
    )


def in_log_time(stage: Stage, records: Iterable[LogRecord]) -> list[LogRecord]:
    """Merge the records of each partition by log time, then by the stage's order of topics; the
    order within a topic is never touched, whatever its clock did."""
    merged: list[LogRecord] = []
    by_place = sorted(records, key=lambda record: (record.partition, record.topic, record.offset))
    for _, of_partition in groupby(by_place, key=lambda record: record.partition):
        topics = [list(group) for _, group in groupby(of_partition, key=lambda r: r.topic)]
        ranked = (_ranked(stage.sources.index(logs[0].topic), logs) for logs in topics)
        merged += [record for _, _, record in heapq.merge(*ranked, key=lambda item: item[:2])]
    return merged


def _ranked(index: int, logs: list[LogRecord]) -> Iterator[tuple[int, int, LogRecord]]:
    latest_ms = 0
    for record in logs:
        latest_ms = max(latest_ms, record.at_ms)
        yield latest_ms, index, record


def read_inputs(stage: Stage, settings: LoopSettings, codec: Codec) -> list[LogRecord]:
    """Every committed input of a stage up to where its logs end now; raises BrokerUnavailable."""
    consumer = Consumer(
        {
            **settings.kafka,
            "bootstrap.servers": settings.bootstrap,
            "group.id": f"{stage.group(settings.prefix)}-replay",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        topics = consumer.list_topics(timeout=settings.lookup_ms / 1_000).topics
        places = [
            (full_name(settings.prefix, topic), partition)
            for topic in stage.sources
            for partition in topics[full_name(settings.prefix, topic)].partitions
        ]
        return [
            record for place in places for record in _read_one(consumer, place, settings, codec)
        ]
    finally:
        consumer.close()


def _read_one(
    consumer: Consumer, place: tuple[str, int], settings: LoopSettings, codec: Codec
) -> Iterator[LogRecord]:
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING)])
    while True:
        message = consumer.poll(STALL_S)
        error = None if message is None else message.error()
        if message is not None and error is None:
            yield read_message(message, settings.prefix, codec)
        elif error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
            return
        else:
            raise BrokerUnavailable(
                "the log cannot be read to its end" if error is None else error.str(),
                where=f"{place[0]}[{place[1]}]",
                fix="an open foreign transaction may block it; try again in a moment",
            )


def main(arguments: Sequence[str] | None = None) -> None:
    """`python -m streams.replay`: replay a stage's log in memory and print what came out.

    Two releases that print the same digest for one log decide alike.
    """
    parser = argparse.ArgumentParser(prog="python -m streams.replay", description=main.__doc__)
    parser.add_argument("--bootstrap", required=True, help="Kafka's address")
    parser.add_argument("--prefix", default=DEFAULT_PREFIX, help="the tenant's topic prefix")
    parser.add_argument("--stage", choices=sorted(STAGES), default="commits")
    asked = parser.parse_args(arguments)
    settings = LoopSettings(
        bootstrap=asked.bootstrap, prefix=asked.prefix, slot="replay", state_dir=Path("unused")
    )
    stage, codec = STAGES[asked.stage], FingerprintCodec()
    records = in_log_time(stage, read_inputs(stage, settings, codec))
    replayed = replay(stage, settings, codec, records)
    told = {
        "stage": stage.name,
        "records": len(records),
        "rows": sum(len(rows) for rows in replayed.rows.values()),
        "outputs": len(replayed.outputs),
        "digest": replayed.digest(),
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
