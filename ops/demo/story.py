"""The demo: three commits against a hostile target, told as they happen.

What it prints is counted from receipts, partial records and the target's own ledger; nothing of
it is written down beforehand.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException

from connectors.contract_file import load_contract
from ops.broker.kinds import BrokerHandle, BrokerKind
from ops.demo.target_process import DemoTarget
from ops.processes import Pieces
from streams.catalogue import CATALOGUE
from streams.topics_admin import create, open_admin
from tallystick.client import Tally
from tallystick.client.waiting import Ending
from tallystick.contracts import Contract
from tallystick.errors import OperatorError, TallyError
from tallystick.plans import build_plan
from tallystick.records import PartialSuccess, Plan, Receipt
from tallystick.topics import full_name

PREFIX = f"demo-{uuid.uuid4().hex[:6]}."
PARTITIONS = 2
ENVIRONMENT = {
    "TALLYSTICK_SESSION_TIMEOUT_MS": "6000",
    "TALLYSTICK_REGISTRY": "",
    "TALLYSTICK_KAFKA": "{}",
}
"""The demo's broker is its own: what the environment says of another one must not reach it."""

CONTRACTS = Path(__file__).parent / "contracts"
WITHIN_MS = 30_000
"""Answer time of each commit; a loaded machine must not turn the demo partial."""

REMOVE_S = 3.0
"""How long to wait until the demo's topics are gone. Lower: the request may not have left.
Higher: a busy controller holds up the end of the demo."""

FIRST = tuple(f"TC-{n:02}" for n in range(1, 11))
SECOND = tuple(f"TC-{n:02}" for n in range(11, 21))
TARGET_ANSWERS_MS = 120
"""Slow enough that the worker can be killed while the plan is being carried out."""

Say = Callable[[str], None]
Show = Callable[[Ending], None]


@dataclass
class Total:
    """What the three acts add up to; printed by `--json`."""

    planned: int = 0
    verified: int = 0
    duplicates: int = 0
    receipts: int = 0
    partials: int = 0
    broker: str = ""
    seconds: float = 0.0
    endings: list[Ending] = field(default_factory=list)

    def count(self, ending: Ending) -> None:
        """Add one ending."""
        self.endings.append(ending)
        self.receipts += isinstance(ending, Receipt)
        self.partials += isinstance(ending, PartialSuccess)


class Story:
    """The pieces on the stage, and the acts."""

    def __init__(self, broker: BrokerHandle, target: DemoTarget, folder: Path) -> None:
        os.environ["CASES_URL"] = target.url
        self._target = target
        self._paths = [CONTRACTS / "cases-keyed.yaml", CONTRACTS / "cases-natural.yaml"]
        self._keyed, self._natural = (load_contract(path) for path in self._paths)
        create(open_admin(broker.bootstrap), PREFIX, partitions=PARTITIONS)
        self._pieces = Pieces(
            bootstrap=broker.bootstrap,
            prefix=PREFIX,
            state_dir=folder,
            env={"CASES_URL": target.url, **ENVIRONMENT},
        )
        try:
            self._start(broker)
        except BaseException:  # Ctrl-C too: the pieces write into a folder that is about to go
            self._pieces.stop()
            raise

    def _start(self, broker: BrokerHandle) -> None:
        self._worker = self._pieces.worker().start()
        others = [
            self._pieces.dispatcher(self._paths).start(),
            self._pieces.reader(self._paths).start(),
        ]
        for piece in (self._worker, *others):
            piece.wait_ready()
        self._tally = Tally.connect(broker.bootstrap, prefix=PREFIX)

    def first_act(self, say: Say) -> Ending:
        """Ten items, two lost acknowledgements, a late commit, a repeated delivery, a crash."""
        target = self._target
        target.fault("latency", delay_ms=TARGET_ANSWERS_MS)
        target.fault("ack_lost", case_id="TC-03", count=1)
        target.fault("ack_lost", case_id="TC-07", count=1)
        target.fault("late_commit", case_id="TC-05", count=1, delay_ms=700)
        target.fault("duplicate_delivery", case_id="TC-09", count=1)
        say("TC-03 and TC-07 lose their acknowledgement, TC-05 commits late,")
        say("TC-09 is delivered twice, and the worker dies in the middle of the plan")
        plan = self._plan(self._keyed, "create_case", "release-42/cases", FIRST)
        pending = self._tally.submit(plan, commit_within_ms=WITHIN_MS)
        try:
            self._kill_worker(say)
            return pending.result(2 * WITHIN_MS / 1_000)
        finally:
            target.clear_faults()

    def second_act(self, say: Say) -> Ending:
        """Ten more: two are refused each time, and one is stored with other content."""
        for name in ("TC-12", "TC-17"):
            self._target.fault("unavailable", case_id=name)
        self._target.fault("wrong_content", case_id="TC-15", count=1)
        say("TC-12 and TC-17 cannot be written, TC-15 is stored with other content")
        try:
            return self._tally.commit(self.second_plan(), commit_within_ms=WITHIN_MS)
        finally:
            self._target.clear_faults()

    def third_act(self) -> Ending:
        """The same plan again: it reads first, then writes what is missing or different."""
        return self._tally.commit(self.second_plan(), commit_within_ms=WITHIN_MS)

    def second_plan(self) -> Plan:
        """The plan of the second and third act; its hash is the same both times."""
        return self._plan(self._natural, "put_case", "release-43/cases", SECOND)

    def close(self) -> None:
        """Everything off the stage."""
        self._tally.close()
        self._pieces.stop()

    def _plan(self, contract: Contract, tool: str, key: str, names: tuple[str, ...]) -> Plan:
        return build_plan(
            commit_key=key,
            module="checkout",
            contract=contract.ref,
            policies=contract.policies(),
            tool=tool,
            evidence={"spec": "checkout", "version": 7},
            items=[
                {
                    "identity": name,
                    "payload": {
                        "case_id": name,
                        "title": f"checkout case {name}",
                        "steps": ["open the cart", "pay"],
                    },
                }
                for name in names
            ],
        )

    def _kill_worker(self, say: Say) -> None:
        """SIGKILL once the first effects are in the target, then a new process in its slot."""
        deadline = time.monotonic() + WITHIN_MS / 1_000
        while not self._target.ledger():
            if time.monotonic() > deadline:
                raise OperatorError("nothing was written in time", where="demo")
            time.sleep(0.01)
        self._worker.kill()
        written = len(self._target.ledger())
        say(f"worker killed (SIGKILL) with {written} effects in the target; a new one takes over")
        self._worker = self._pieces.worker().start()


def tell(broker: BrokerHandle, say: Say, act: Say, show: Show) -> Total:
    """Play the three acts on `broker`; returns what they add up to."""
    began = time.monotonic()
    total = Total(broker=broker.kind.value)
    with tempfile.TemporaryDirectory(prefix="tallystick-demo-") as folder, DemoTarget() as target:
        story = Story(broker, target, Path(folder))
        try:
            act("1. ten items, and everything goes wrong on the way")
            total.count(story.first_act(say))
            show(total.endings[-1])
            act("2. ten more, and three do not arrive as planned")
            total.count(story.second_act(say))
            show(total.endings[-1])
            act("3. the same plan again, which completes it")
            total.count(story.third_act())
            show(total.endings[-1])
        finally:
            story.close()
            if broker.kind is BrokerKind.EXTERNAL:
                _remove_topics(broker)
        target.wait_for_late()
        last = {ending.commit_key: ending for ending in total.endings}
        total.planned = sum(ending.planned_count for ending in last.values())
        total.verified = sum(ending.verified_count for ending in last.values())
        total.duplicates = target.duplicates()
    total.seconds = round(time.monotonic() - began, 1)
    return total


def _remove_topics(broker: BrokerHandle) -> None:
    """Leave somebody else's broker as it was; what cannot be removed disturbs nobody."""
    names = [full_name(PREFIX, spec.topic) for spec in CATALOGUE]
    with suppress(KafkaException, TallyError):
        wait(open_admin(broker.bootstrap).delete_topics(names).values(), timeout=REMOVE_S)
