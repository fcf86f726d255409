"""One pipeline a module: starting it costs more than most commands."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.broker.kinds import BrokerHandle
from ops.demo.target_process import DemoTarget
from streams.topics_admin import create, open_admin
from tests.cli.house import KEYED, NOBODY, UNREADABLE, CliHouse
from tests.conftest import _drop_topics

PARTITIONS = 2


def _topics(broker: BrokerHandle) -> Iterator[str]:
    prefix = f"cli-{uuid.uuid4().hex[:12]}."
    create(open_admin(broker.bootstrap), prefix, partitions=PARTITIONS)
    yield prefix
    _drop_topics(broker.bootstrap, prefix)


@pytest.fixture(scope="module")
def ledger(broker: BrokerHandle) -> Iterator[str]:
    """The prefix of topics that nobody works on: a ledger whose worker is down."""
    yield from _topics(broker)


@pytest.fixture(scope="module")
def _house_topics(broker: BrokerHandle) -> Iterator[str]:
    yield from _topics(broker)


@pytest.fixture(scope="module")
def _files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("house")


@pytest.fixture(scope="module")
def away(_files: Path) -> Path:
    """A contract whose target is not there."""
    path = _files / "away.yaml"
    text = KEYED.read_text().replace("${CASES_URL}", f"http://{NOBODY}")
    path.write_text(text.replace("name: cases\n", "name: away\n"))
    return path


@pytest.fixture(scope="module")
def locked(_files: Path) -> Path:
    """A contract whose target asks for a token."""
    path = _files / "locked.yaml"
    text = KEYED.read_text().replace("name: cases\n", "name: locked\n")
    path.write_text(f"{text}auth: {{kind: bearer, env: CASES_TOKEN}}\n")
    return path


@pytest.fixture(scope="module")
def house(
    broker: BrokerHandle, _house_topics: str, _files: Path, away: Path, locked: Path
) -> Iterator[CliHouse]:
    """The pipeline at work, with a demo target of this module's own."""
    with DemoTarget() as target:
        house = CliHouse(broker.bootstrap, _house_topics, target, _files / "state", KEYED.stem)
        try:
            house.begin([KEYED, UNREADABLE, away, locked], {"CASES_TOKEN": "wrong"})
            yield house
        finally:
            house.close()
