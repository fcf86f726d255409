"""A whole house for one test: topics, a demo target, and the pipeline's own processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.contract_file import load_contract
from ops.broker.kinds import BrokerHandle
from ops.demo.target_process import DemoTarget
from ops.processes import Piece, Pieces
from streams.scan import Logged, LogReader
from streams.topics_admin import create, open_admin
from tallystick import Tally, build_plan
from tallystick.codec import FingerprintCodec
from tallystick.contracts import Contract
from tallystick.records import Plan
from tallystick.topics import Topic

CONTRACTS = Path(__file__).parents[2] / "ops" / "demo" / "contracts"
PARTITIONS = 4
# The embedded broker takes nothing shorter.
READ_FAST = {"TALLYSTICK_SESSION_TIMEOUT_MS": "6000"}


class House:
    """Everything that a spine test touches."""

    def __init__(
        self, bootstrap: str, prefix: str, target: DemoTarget, folder: Path, kind: str
    ) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.target = target
        self.kind = kind
        self.contract_path = CONTRACTS / f"{kind}.yaml"
        os.environ["CASES_URL"] = target.url
        self.contract: Contract = load_contract(self.contract_path)
        self.pieces = Pieces(
            bootstrap=bootstrap,
            prefix=prefix,
            state_dir=folder,
            env={"CASES_URL": target.url, **READ_FAST},
        )
        self._tallies: list[Tally] = []

    def start(self, *, env: dict[str, str] | None = None) -> tuple[Piece, Piece, Piece]:
        """Worker, dispatcher (with `env`) and reader, all ready."""
        pieces = (
            self.pieces.worker().start(),
            self.pieces.dispatcher([self.contract_path], env=env).start(),
            self.pieces.reader([self.contract_path]).start(),
        )
        for piece in pieces:
            piece.wait_ready()
        return pieces

    def tally(self) -> Tally:
        """A client; closed with the house."""
        self._tallies.append(Tally.connect(self.bootstrap, prefix=self.prefix))
        return self._tallies[-1]

    def plan(self, *names: str, key: str = "job-1", title: str = "pays by card") -> Plan:
        """A plan of one case a name."""
        return build_plan(
            commit_key=key,
            module="checkout",
            contract=self.contract.ref,
            policies=self.contract.policies(),
            tool="create_case",
            items=[
                {
                    "identity": name,
                    "payload": {"case_id": name, "title": f"{title} {name}", "steps": ["a", "b"]},
                }
                for name in names
            ],
        )

    def records(self, topic: Topic) -> list[Any]:
        """Every committed record of a topic."""
        return [entry.record for entry in self.log(topic)]

    def log(self, topic: Topic) -> list[Logged]:
        """Every committed record of a topic, with its place."""
        reader = LogReader(self.bootstrap, self.prefix, FingerprintCodec())
        try:
            return list(reader.read_all(topic))
        finally:
            reader.close()

    def wait_for(self, what: Callable[[], Any], within_s: float = 30.0) -> Any:
        """Poll until `what` is true; fails by name at the deadline."""
        deadline = time.monotonic() + within_s
        while not (value := what()):
            assert time.monotonic() < deadline, f"{what} did not come true within {within_s} s"
            time.sleep(0.05)
        return value

    def close(self) -> None:
        for tally in self._tallies:
            tally.close()
        self.pieces.stop()


@pytest.fixture
def target() -> Iterator[DemoTarget]:
    """A demo target of this test's own."""
    with DemoTarget() as running:
        yield running


@pytest.fixture
def open_house(
    broker: BrokerHandle, prefix: str, target: DemoTarget, tmp_path: Path
) -> Iterator[Callable[..., House]]:
    """Build the house around one of the sample contracts."""
    houses: list[House] = []

    def build(kind: str = "cases-keyed") -> House:
        create(open_admin(broker.bootstrap), prefix, partitions=PARTITIONS)
        houses.append(House(broker.bootstrap, prefix, target, tmp_path / "state", kind))
        return houses[-1]

    yield build
    for house in houses:
        house.close()
