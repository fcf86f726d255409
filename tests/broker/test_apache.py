"""Apache Kafka, one node and three: start, transactions, crashes, port clashes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from ops.broker import apache
from ops.broker.kinds import BrokerKind
from ops.broker.ports import HOST, free_ports
from ops.broker.probe import brokers_at
from ops.broker.processes import is_alive
from tallystick.errors import CallerError, OperatorError
from tests.broker.clients import Writer, make_topic, read_all, transaction

# `start_apache` also for tests that call apache.start: it skips them where Java is missing.
pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("start_apache")]


def test_one_node_takes_transactions_and_leaves_nothing_behind(
    private_broker: apache.ApacheBroker,
) -> None:
    state = private_broker.state
    make_topic(private_broker.bootstrap, "numbers")
    transaction(private_broker.bootstrap, "numbers", commit=False, value=b"1")
    transaction(private_broker.bootstrap, "numbers", commit=True, value=b"2")

    assert state.kind is BrokerKind.APACHE
    assert state.version == "4.4.0"
    assert read_all(private_broker.bootstrap, "numbers", 1) == [2]

    private_broker.stop()
    assert not is_alive(state.nodes[0].process)
    assert not Path(state.state_dir).exists()
    private_broker.stop()


def test_records_outlast_a_killed_and_a_paused_broker(private_broker: apache.ApacheBroker) -> None:
    bootstrap = private_broker.bootstrap
    make_topic(bootstrap, "numbers")
    writer = Writer(bootstrap, "numbers")
    writer.write(1)
    assert writer.flush() == 0

    private_broker.kill_node()
    assert brokers_at(bootstrap, 0.5) == 0
    private_broker.restart_node()
    assert private_broker.bootstrap == bootstrap
    assert read_all(bootstrap, "numbers", 1) == [1]

    private_broker.pause_node()
    assert brokers_at(bootstrap, 0.5) == 0
    private_broker.resume_node()
    assert brokers_at(bootstrap, 10) == 1


def test_a_node_killed_under_load_loses_no_acknowledged_record(
    private_cluster: apache.ApacheBroker,
) -> None:
    """Replication 3, two in sync: one SIGKILL costs nothing that was acknowledged."""
    bootstrap = private_cluster.bootstrap
    make_topic(bootstrap, "numbers", replicas=3)
    writer = Writer(bootstrap, "numbers")
    killer = threading.Thread(target=private_cluster.kill_node, args=(1,))
    for number in range(20_000):
        if number == 5_000:
            killer.start()
        writer.write(number)
    killer.join()

    assert writer.flush() == 0
    assert writer.refused == []
    assert writer.acknowledged == set(range(20_000))
    assert read_all(bootstrap, "numbers", 20_000) == list(range(20_000))

    private_cluster.restart_node(1)
    assert brokers_at(bootstrap, 10) == 3


def test_a_taken_port_is_exchanged_for_another() -> None:
    """Between our choice of a port and the node's bind, somebody else is quicker."""
    said: list[str] = []
    with socket.socket() as stranger:
        stranger.bind((HOST, 0))
        stranger.listen(1)
        taken = stranger.getsockname()[1]
        offers = iter([[taken, *free_ports(1)], free_ports(2)])

        def pick(_count: int, _preferred: Sequence[int]) -> list[int]:
            return next(offers)

        with apache.start(pick_ports=pick, say=said.append) as broker:
            assert broker.state.nodes[0].port != taken
            assert brokers_at(broker.bootstrap) == 1
    assert "another process took one of the ports; trying others" in said


def test_data_in_a_named_folder_survives_a_stop(tmp_path: Path) -> None:
    with apache.start(state_dir=tmp_path) as first:
        make_topic(first.bootstrap, "numbers")
        transaction(first.bootstrap, "numbers", commit=True, value=b"7")

    with apache.start(state_dir=tmp_path) as second:
        assert read_all(second.bootstrap, "numbers", 1) == [7]

    with pytest.raises(OperatorError, match="holds the data of 1 node, not of 3 nodes"):
        apache.start(3, state_dir=tmp_path)


def test_a_node_that_ends_says_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYSTICK_KAFKA_JVM", "-XX:NoSuchOption")

    with pytest.raises(OperatorError, match=r"node 1 ended while starting: .*NoSuchOption"):
        apache.start(state_dir=tmp_path)


def test_impossible_sizes_and_nodes_are_refused(
    private_broker: apache.ApacheBroker,
) -> None:
    with pytest.raises(CallerError, match="2 nodes make no quorum"):
        apache.start(2)
    with pytest.raises(CallerError, match="there is no node 9"):
        private_broker.kill_node(9)
