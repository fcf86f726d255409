"""One simulated world: a seed in, a log and a history out; nothing else moves it."""

from __future__ import annotations

from dataclasses import dataclass

from streams.source import LogRecord
from streams.stages import COMMITS
from tallystick.errors import InvariantBroken, StateCorrupt
from tallystick.records import Intent, PartialSuccess, PlanAnswer, Receipt
from tallystick.topics import Topic
from tests.simulation.clock import Clock, virtual_time
from tests.simulation.codec import codec_for
from tests.simulation.connectors import Dispatcher, Reader
from tests.simulation.contracts import KINDS, Kind, draw_policy
from tests.simulation.dice import Dice, Struck
from tests.simulation.groups import Group
from tests.simulation.history import History
from tests.simulation.log import Log
from tests.simulation.people import People
from tests.simulation.process import Process
from tests.simulation.scenario import Scenario
from tests.simulation.takeover import Stores
from tests.simulation.target import TAIL_MS, Target
from tests.simulation.worker import Worker, settings_of

FAULTS_MS = 240_000
"""How long faults strike."""

SETTLE_MS = 300_000
"""Enough for what callers asked last, and for every restart, once faults stopped."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Which faults a seed has, so that worlds differ in kind and not only in order."""

    target: float
    processes: bool
    lying: bool


class World:
    """Everything that one seed brings about."""

    def __init__(self, seed: int, left_out: frozenset[Struck] = frozenset()) -> None:
        self.seed = seed
        self.dice = Dice(seed, left_out)
        self.clock = Clock()
        self.history = History()
        self.log = Log(self.clock, codec_for(seed), self.dice.between("partitions", 1, 2))
        self.trouble = self._draw_trouble()
        self.lying = self.trouble.lying
        kinds = self._draw_kinds()
        self.policies = [draw_policy(self.dice, kind, n) for n, kind in enumerate(kinds)]
        by_tool = {policy.tool: policy for policy in self.policies}
        self.history.policies = by_tool
        self.target = Target(
            clock=self.clock,
            dice=self.dice,
            history=self.history,
            policies=by_tool,
            kinds={policy.tool: kind for policy, kind in zip(self.policies, kinds, strict=True)},
            faulty=self.trouble.target,
        )
        self.people = People(
            self.clock, self.dice, self.log, self.target, self.history, self.policies
        )
        self.shown: list[tuple[int, LogRecord]] = []
        self.stopped = ""
        self.stores = Stores()
        self.settings = settings_of(
            self.dice.pick("batch", (1, 3, 20, 500)), self.dice.pick("wakes", (1, 2, 200))
        )
        self.processes: list[Process] = []
        for role in (COMMITS.name, "dispatcher", "reader"):
            group = self.log.groups[role] = Group(role, self.log.partitions)
            group.changed.append(lambda role=role: self._wake(role))
        self.log.told.append(self._news)
        self.log.seen.append(self._show)

    def _draw_trouble(self) -> Trouble:
        return Trouble(
            target=self.dice.pick("faulty", (0.0, 0.3, 1.0, 2.0)),
            processes=self.dice.chance("troubled", 0.75),
            lying=self.dice.chance("lying", 0.15),
        )

    def _draw_kinds(self) -> list[Kind]:
        count = self.dice.between("tools", 1, 2)
        return [self.dice.pick("kind", KINDS) for _ in range(count)]

    def run(self) -> World:
        """Let it all happen: faults, then calm, then the last retries."""
        with virtual_time(self.clock):
            try:
                self._live()
            except (InvariantBroken, StateCorrupt) as error:
                # In production the stage stops here, for good: no record is blamed for it.
                self.stopped = str(error)
        return self

    def _live(self) -> None:
        self._start()
        Scenario(self).begin()
        self.clock.run(self.clock.now_ms + FAULTS_MS)
        self._heal()
        self.clock.run(self.clock.now_ms + SETTLE_MS + TAIL_MS[1])
        self._settle()

    def _start(self) -> None:
        for number in range(self.dice.between("workers", 1, 2)):
            self._add(self._worker(f"w{number}"))
        for number in range(self.dice.between("dispatchers", 1, 2)):
            self._add(self._connector(Dispatcher, "dispatcher", f"d{number}"))
        for number in range(self.dice.between("readers", 1, 2)):
            self._add(self._connector(Reader, "reader", f"r{number}"))
        if self.trouble.processes:
            self._plan_twins()
        for number in range(3):
            moment_ms = self.dice.between("compaction", 0, FAULTS_MS)
            if self.dice.fault("compaction", 0.5):
                self.clock.after(moment_ms, lambda: self._compact())
            del number

    def _compact(self) -> None:
        self.log.compact(COMMITS.changelog)

    def _worker(self, slot: str, disk: str = "") -> Worker:
        worker = Worker(slot, self.clock, self.dice, self.log, self.stores, self.settings, disk)
        worker.skew_ms = self.dice.between("skew", -1_500, 1_500)
        return worker

    def _connector(
        self, kind: type[Dispatcher] | type[Reader], role: str, slot: str
    ) -> Dispatcher | Reader:
        return kind(role, slot, self.clock, self.dice, self.log, self.target)

    def _add(self, process: Process) -> None:
        process.troubled = self.trouble.processes
        if isinstance(process, Worker):
            process.disturb = self._flap
        self.processes.append(process)
        process.start()

    def _plan_twins(self) -> None:
        """A second process in the same slot, started while the first one lives."""
        for first in list(self.processes):
            if isinstance(first, Reader) or not self.dice.fault("twin", 0.1):
                continue
            moment_ms = self.dice.between("twin_at", 1_000, FAULTS_MS // 2)
            self.clock.after(moment_ms, lambda first=first: self._twin(first))

    def _flap(self) -> None:
        """While a worker stands still another one comes and goes, so that its partitions move."""
        if not self.dice.fault("flap", 0.4):
            return
        spare = self._worker(self.dice.pick("spare", ("a9", "a9", "z9")))
        spare.troubled = False
        self.processes.append(spare)
        come_ms = self.dice.between("come", 100, 2_000)
        self.clock.after(come_ms, spare.start)
        self.clock.after(come_ms + self.dice.between("go", 100, 3_000), lambda: self._gone(spare))

    def _gone(self, spare: Process) -> None:
        spare.retired = True
        spare.leave()
        self.processes.remove(spare)

    def _twin(self, first: Process) -> None:
        first.replaced = True
        if isinstance(first, Worker):
            self._add(self._worker(first.slot, f"{first.disk}-twin"))
        else:
            self._add(self._connector(Dispatcher, "dispatcher", first.slot))

    def _news(self, topic: str) -> None:
        for process in self.processes:
            process.news(topic)

    def _wake(self, role: str) -> None:
        for process in self.processes:
            if process.group is not None and process.group.name == role:
                process.wake()

    def _show(self, record: LogRecord) -> None:
        """Clients listen to answers and endings; each topic comes with its own delay."""
        if record.topic != COMMITS.changelog:
            self.shown.append((self.clock.now_ms, record))
        if isinstance(record.record, Intent):
            self.people.contents[record.record.intent_id] = record.record.payload
        if record.topic in (Topic.PLANS, Topic.RECEIPTS, Topic.PARTIALS):
            shown = record.record
            if isinstance(shown, PlanAnswer | Receipt | PartialSuccess):
                pause_ms = self.dice.between(f"listen:{record.topic}", 1, 30)
                key = record.key
                self.clock.after(pause_ms, lambda: self.people.waiters.deliver(key, shown))

    def _heal(self) -> None:
        """Faults stop; whoever was stopped or dead is there again."""
        self.dice.calm = True
        self.history.healed_at_ms = self.clock.now_ms
        self.target.outage_until_ms = 0
        for process in self.processes:
            process.stopped_until_ms = min(process.stopped_until_ms, self.clock.now_ms)
            process.start()

    def _settle(self) -> None:
        """True words for what nothing can see, then one last request for each open plan."""
        for partial in self.open_partials():
            self.people.resolve(partial, lying=False)
        self.clock.run(self.clock.now_ms + 60_000)
        for partial in self.open_partials():
            plan = next(
                a.request.plan
                for a in self.people.asked
                if a.request.plan.plan_hash == partial.plan_hash
            )
            self.people.submit(plan, 120_000)
        self.clock.run(self.clock.now_ms + SETTLE_MS)

    def open_partials(self) -> list[PartialSuccess]:
        """The last ending of every key whose last ending is no receipt."""
        last: dict[str, tuple[int, PartialSuccess | Receipt]] = {}
        for topic in (Topic.PARTIALS, Topic.RECEIPTS):
            for number in range(self.log.partitions):
                for record in self.log.committed((topic, number)):
                    ending = record.record
                    if isinstance(ending, PartialSuccess | Receipt):
                        known = last.get(ending.commit_key)
                        if known is None or ending.round >= known[0]:
                            last[ending.commit_key] = (ending.round, ending)
        return [end for _, end in last.values() if isinstance(end, PartialSuccess)]
