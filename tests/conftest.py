"""Fixtures for every test: a shared broker, private brokers to hurt, and a topic prefix."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ops.broker import apache
from ops.broker.kinds import BrokerHandle
from tests.support.brokers import (
    SERVICE_SETTING,
    BrokerService,
    plan_line,
    shared_broker,
    why_no_apache,
)

_service = pytest.StashKey[BrokerService]()

PRIVATE = frozenset({"private_broker", "private_cluster", "start_apache"})
"""Fixtures that start an Apache Kafka for one test, whatever the session's broker is."""


def pytest_configure(config: pytest.Config) -> None:
    """The session's first process owns the broker; workers and child sessions ask it."""
    if not hasattr(config, "workerinput"):
        service = BrokerService()
        config.stash[_service] = service
        os.environ[SERVICE_SETTING] = service.address


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the broker with the session."""
    service = config.stash.get(_service, None)
    if service is not None:
        service.close()


def pytest_report_header() -> str:
    """Say which broker the session will use."""
    return plan_line(os.environ)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say which broker the session did use."""
    service = config.stash.get(_service, None)
    if service is None:
        return
    used = service.answer
    if "error" in used:
        terminalreporter.write_line(f"broker: none ({used['error']})", red=True)
    elif used:
        terminalreporter.write_line(
            f"broker: {used['kind']} {used['version']} at {used['bootstrap']}", bold=True
        )
        for note in service.notes:
            if note.startswith("not "):
                terminalreporter.write_line(f"broker: {note}", yellow=True)
    else:
        terminalreporter.write_line("broker: none was needed")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what the broker at hand cannot show, saying why."""
    fixtures = set(getattr(item, "fixturenames", ()))
    if fixtures & PRIVATE:
        if why := why_no_apache(os.environ):
            pytest.skip(f"needs an Apache Kafka of its own; {why}")
    elif item.get_closest_marker("fencing") and not shared_broker().kind.fences_generations:
        pytest.skip(
            "needs a broker that refuses an older generation's commit (Apache Kafka); "
            "the embedded one accepts it"
        )


@pytest.fixture(scope="session")
def broker() -> BrokerHandle:
    """The session's broker (`.bootstrap`, `.kind`); never stop or pause this one."""
    return shared_broker()


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic prefix of this test's own; its topics are removed afterwards."""
    name = f"t-{uuid.uuid4().hex[:12]}."
    yield name
    if "broker" in request.fixturenames:
        _drop_topics(request.getfixturevalue("broker").bootstrap, name)


@pytest.fixture
def start_apache() -> Iterator[Callable[..., apache.ApacheBroker]]:
    """Start Apache Kafka brokers for this test alone: `start_apache(nodes=3)`."""
    started: list[apache.ApacheBroker] = []

    def start(nodes: int = 1) -> apache.ApacheBroker:
        started.append(apache.start(nodes))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def private_broker(start_apache: Callable[..., apache.ApacheBroker]) -> apache.ApacheBroker:
    """One Apache Kafka node that this test may pause, kill and restart."""
    return start_apache(1)


@pytest.fixture
def private_cluster(start_apache: Callable[..., apache.ApacheBroker]) -> apache.ApacheBroker:
    """Three Apache Kafka nodes that this test may pause, kill and restart one by one."""
    return start_apache(3)


def _drop_topics(bootstrap: str, prefix: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        mine = [name for name in client.list_topics(timeout=5).topics if name.startswith(prefix)]
        for done in client.delete_topics(mine).values() if mine else ():
            done.result(timeout=5)
    except KafkaException:
        return  # left behind: the name is never used again, and the broker is about to go
