"""The simulated dispatcher and reader: who claims, calls and looks, around `connectors.claims` and
`connectors.low_water`. Their order of steps is that of `Claiming`, `Dispatcher` and `Reader`.
"""

from __future__ import annotations

from typing import Any

import connectors.claims
import streams.fence
from connectors.claims import Claim
from connectors.low_water import LowWater
from streams.outputs import Output
from streams.source import LogRecord
from tallystick.records import Attempt, Intent, Readback, ReadbackRequest, Record
from tallystick.topics import Topic
from tests.simulation.clock import Clock
from tests.simulation.dice import Dice
from tests.simulation.log import Log, Refused
from tests.simulation.process import Call, Nap, Point, Process, Task
from tests.simulation.producer import SimProducer
from tests.simulation.target import Reply, Target

_FETCH_MAX = 10


class Connector(Process):
    """A member of a group that takes records of one topic."""

    topic = ""

    def __init__(
        self, role: str, slot: str, clock: Clock, dice: Dice, log: Log, target: Target
    ) -> None:
        super().__init__(role, slot, clock, dice, {self.topic})
        self._log = log
        self._target = target
        self._positions: dict[int, int] = {}
        self._seen = -1

    def _follow_group(self) -> set[int]:
        """Take what the group gives; returns the partitions that were lost."""
        group = self._log.groups[self.role]
        if self.group is None or self.member not in group.members:
            self.join(group)
        if group.generation == self._seen:
            return set()
        self._seen = self.generation = group.generation
        # Eager: every rebalance takes everything away first (engine rule 26).
        lost, self._positions = set(self._positions), {}
        return lost

    def _fetch(self) -> list[LogRecord]:
        group = self._log.groups[self.role]
        records: list[LogRecord] = []
        for number in sorted(group.share(self.member)):
            place = (self.topic, number)
            if number not in self._positions:
                if group.pending.get(place):
                    continue
                self._positions[number] = group.committed.get(place, 0)
            found, self._positions[number] = self._log.fetch(
                place, self._positions[number], _FETCH_MAX
            )
            records += found
        return records

    def _unsettled_places(self) -> bool:
        group = self._log.groups[self.role]
        return any(n not in self._positions for n in group.share(self.member))

    def _produce(self, topic: str, partition: int, key: str, record: Record) -> None:
        value, headers = self._log.codec.encode(topic, record)
        self._log.append(topic, partition, key.encode(), value, headers)


class Dispatcher(Connector):
    """Claims in transactions, then calls, several at once."""

    topic = Topic.INTENTS

    def main(self) -> Task:
        """Claim for ever; each claim is followed in a task of its own."""
        self._positions, self._seen, self.group = {}, -1, None
        producer = SimProducer(self._log, f"dispatcher-{self.slot}")
        producer.start()
        while True:
            self._follow_group()
            records = self._fetch()
            if not records:
                yield Nap(100 if self._unsettled_places() else None)
                continue
            claims = yield from self._claim(producer, records)
            yield Point("after_claim")
            for claim in claims:
                self.spawn(self._follow(claim))

    def _claim(self, producer: SimProducer, records: list[LogRecord]) -> Any:
        claimed_ms = self.clock.now_ms
        try:
            producer.begin()
            intents = [(r.record, r) for r in records if isinstance(r.record, Intent)]
            for intent, record in intents:
                producer.send(self._started(intent, record.partition), record.cause)
            yield Point("before_claim_commit")
            held = streams.fence.parse_fence(streams.fence.require_fence(self.metadata))
            self.maybe_refuse("claim_refused")
            ends = {(self.topic, r.partition): r.offset + 1 for r in records}
            producer.send_offsets(self.role, (held.member, held.generation), ends)
            producer.commit([])
        except (Refused, streams.fence.FenceLost) as refused:
            self.dice.faults[f"claim_{type(refused).__name__.lower()}"] += 1
            producer.abort()
            for record in records:
                at = self._positions.get(record.partition, record.offset)
                self._positions[record.partition] = min(at, record.offset)
            yield Nap(50)
            return []
        return [
            Claim(intent, claimed_ms, record.partition, producer.logged_at_ms[record.cause])
            for intent, record in intents
        ]

    def _started(self, intent: Intent, partition: int) -> Output:
        record = connectors.claims.started(intent, self.slot)
        value, headers = self._log.codec.encode(Topic.ATTEMPTS, record)
        key = intent.commit_key.encode()
        return Output(Topic.ATTEMPTS, key, value, headers, partition)

    def _follow(self, claim: Claim) -> Task:
        yield Point("before_call")
        why_not = connectors.claims.refusal(claim, self.clock.now_ms)
        if why_not:
            self.dice.faults[f"refused_{why_not}"] += 1
            fact = connectors.claims.not_called(claim.intent, self.slot, why_not, "too late")
        else:
            reply = yield Call(lambda answer: self._target.write(claim.intent, answer))
            yield Point("after_call")
            fact = self._fact(claim.intent, reply)
        self._produce(Topic.ATTEMPTS, claim.partition, fact.commit_key, fact)
        if self.dice.fault("outcome_twice", 0.01):
            self._produce(Topic.ATTEMPTS, claim.partition, fact.commit_key, fact)
        yield Point("after_outcome")

    def _fact(self, intent: Intent, reply: Reply) -> Attempt:
        return connectors.claims.settled(
            intent,
            self.slot,
            reply.verdict.outcome,
            error_class=reply.verdict.error_class,
            code=reply.code,
            detail="",
            retry_after_ms=reply.retry_after_ms,
            target_ref=reply.target_ref,
            elapsed_ms=0,
        )


class Reader(Connector):
    """Reads at least once; positions follow finished reads."""

    topic = Topic.READBACK_REQUESTS

    def main(self) -> Task:
        """Take requests for ever; each is read in a task of its own."""
        self._positions, self._seen, self.group = {}, -1, None
        self._low_water = LowWater()
        while True:
            for number in self._follow_group():
                self._low_water.drop(self.topic, number)
            self._commit()
            records = self._fetch()
            if not records:
                yield Nap(100 if self._unsettled_places() else None)
                continue
            for record in records:
                self._low_water.take(self.topic, record.partition, record.offset)
                if isinstance(record.record, ReadbackRequest):
                    self.spawn(self._read(record.record, record))
            yield Point("after_take")

    def _commit(self) -> None:
        group = self._log.groups[self.role]
        for (topic, number), offset in self._low_water.advance().items():
            if group.admits(self.member, self.generation):
                group.committed[topic, number] = offset

    def _read(self, request: ReadbackRequest, record: LogRecord) -> Task:
        yield Point("before_read")
        answer: Readback = yield Call(lambda tell: self._target.read(request, tell))
        yield Point("after_read")
        self._produce(Topic.READBACKS, record.partition, request.commit_key, answer)
        if self.dice.fault("readback_twice", 0.01):
            self._produce(Topic.READBACKS, record.partition, request.commit_key, answer)
        self._low_water.finish(self.topic, record.partition, record.offset)
        self.wake()
        yield Point("after_readback")
