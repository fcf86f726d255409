"""Topics on a real broker: created once, described as they are, and every difference named."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it has no __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from typer.testing import CliRunner

from ops.broker.kinds import BrokerHandle
from ops.cli.topics import app
from streams.catalogue import CATALOGUE, SPECS, as_markdown
from streams.topics_admin import create, describe, diff, open_admin
from tallystick.errors import BrokerUnavailable, CallerError, TopicMismatch
from tallystick.topics import Topic, full_name

PATIENCE_S = 10.0


@pytest.fixture
def admin(broker: BrokerHandle) -> AdminClient:
    return open_admin(broker.bootstrap)


def until_agreed(admin: AdminClient, prefix: str, **expected: int) -> list[str]:
    """What still differs once the broker's metadata had time to settle."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = [str(row) for row in diff(admin, prefix, **expected)]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


@pytest.mark.broker
def test_creating_twice_changes_nothing(admin: AdminClient, prefix: str) -> None:
    first = create(admin, prefix, partitions=2, replication=1)
    assert [row.name for row in first] == [full_name(prefix, spec.topic) for spec in CATALOGUE]
    assert all(row.fresh for row in first)
    assert until_agreed(admin, prefix, partitions=2, replication=1) == []
    assert not any(row.fresh for row in create(admin, prefix, partitions=2, replication=1))
    assert until_agreed(admin, prefix) == []


@pytest.mark.broker
def test_the_broker_keeps_every_setting_of_the_catalogue(admin: AdminClient, prefix: str) -> None:
    create(admin, prefix, partitions=1, replication=1)
    assert until_agreed(admin, prefix) == []
    found = {row.topic: row for row in describe(admin, prefix)}
    assert set(found) == set(Topic)
    for topic, row in found.items():
        assert row.config == SPECS[topic].config(1)
        assert (row.partitions, row.replication) == (1, 1)


@pytest.mark.broker
def test_missing_topics_other_counts_and_other_settings_are_named(
    admin: AdminClient, prefix: str
) -> None:
    create(admin, prefix, partitions=2, replication=1)
    assert until_agreed(admin, prefix) == []
    plans, intents, ticks = (
        full_name(prefix, topic) for topic in (Topic.PLANS, Topic.INTENTS, Topic.COMMITS_TICKS)
    )
    for future in admin.delete_topics([plans, ticks]).values():
        future.result(PATIENCE_S)
    wait_until_gone(admin, {plans, ticks})
    spec = SPECS[Topic.COMMITS_TICKS]
    (made,) = admin.create_topics([NewTopic(ticks, 3, 1, config=spec.config(1))]).values()
    made.result(PATIENCE_S)
    entry = ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, intents, incremental_configs=[entry])
    (altered,) = admin.incremental_alter_configs([resource]).values()
    altered.result(PATIENCE_S)
    wanted = {
        f"{plans}: topic is missing, expected present",
        f"{ticks}: partitions is 3, expected 2",
        f"{intents}: retention.ms is 60000, expected 2592000000",
    }
    deadline = time.monotonic() + PATIENCE_S
    found: set[str] = set()
    while found != wanted and time.monotonic() < deadline:
        found = {str(row) for row in diff(admin, prefix)}
    assert found == wanted


def wait_until_gone(admin: AdminClient, names: set[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while names & set(admin.list_topics(timeout=5).topics) and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.mark.broker
def test_more_copies_than_brokers_are_refused_by_name(admin: AdminClient, prefix: str) -> None:
    with pytest.raises(TopicMismatch, match="broker does not create it") as caught:
        create(admin, prefix, partitions=1, replication=9)
    assert caught.value.where == full_name(prefix, Topic.PLAN_REQUESTS)


def test_an_impossible_prefix_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(CallerError, match="topic prefix"):
        create(None, "No Prefix")


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_an_absent_broker_is_named() -> None:
    address = f"127.0.0.1:{closed_port()}"
    with pytest.raises(BrokerUnavailable, match="no broker answers within 5 s") as caught:
        open_admin(address)
    assert caught.value.where == address


@pytest.mark.broker
def test_the_command_line_creates_describes_and_compares(broker: BrokerHandle, prefix: str) -> None:
    place = ["--bootstrap", broker.bootstrap, "--prefix", prefix]
    before = run("diff", *place, "--json")
    assert before.exit_code == 1
    assert len(json.loads(before.stdout)["differences"]) == len(CATALOGUE)
    made = run("create", *place, "--partitions", "2", "--replication", "1", "--json")
    assert made.exit_code == 0
    assert len(json.loads(made.stdout)["created"]) == len(CATALOGUE)
    assert until_agreed(open_admin(broker.bootstrap), prefix) == []
    assert "broker and catalogue agree" in run("diff", *place).stdout
    shown = run("describe", *place)
    assert shown.exit_code == 0
    assert full_name(prefix, Topic.READBACK_REQUESTS) in shown.stdout
    again = run("create", *place, "--partitions", "3", "--replication", "1")
    assert again.exit_code == 1
    assert f"created 0 topics, {len(CATALOGUE)} were there" in again.stdout
    assert f"{prefix}plans: partitions is 2, expected 3" in again.stdout


def test_the_command_line_says_in_one_line_that_the_broker_is_away() -> None:
    done = run("describe", "--bootstrap", f"127.0.0.1:{closed_port()}")
    assert done.exit_code == 1
    assert "no broker answers" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_command_line_prints_the_catalogue_without_a_broker() -> None:
    done = run("catalogue")
    assert done.exit_code == 0
    assert done.stdout == as_markdown()


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
