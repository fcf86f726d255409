"""The embedded broker: its life, a taken port, and the message when it is not installed."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from ops.broker import embedded
from ops.broker.kinds import BrokerKind
from ops.broker.ports import HOST, free_ports
from ops.broker.processes import is_alive
from tallystick.errors import OperatorError
from tests.broker.clients import make_topic, read_all, transaction

needs_embedded = pytest.mark.skipif(embedded.missing() != "", reason=embedded.missing())


@needs_embedded
def test_it_takes_transactions_and_leaves_nothing_behind() -> None:
    with embedded.start() as broker:
        state = broker.state
        make_topic(broker.bootstrap, "numbers")
        transaction(broker.bootstrap, "numbers", commit=False, value=b"1")
        transaction(broker.bootstrap, "numbers", commit=True, value=b"2")

        assert broker.kind is BrokerKind.EMBEDDED
        assert not broker.kind.fences_generations
        assert read_all(broker.bootstrap, "numbers", 1) == [2]

    assert not is_alive(state.nodes[0].process)
    assert not Path(state.state_dir).exists()


@needs_embedded
def test_a_taken_port_is_exchanged_for_another() -> None:
    with socket.socket() as stranger:
        stranger.bind((HOST, 0))
        stranger.listen(1)
        taken = stranger.getsockname()[1]
        offers = iter([[taken], free_ports(1)])

        def pick(_count: int, _preferred: Sequence[int]) -> list[int]:
            return next(offers)

        with embedded.start(pick_ports=pick) as broker:
            assert broker.state.nodes[0].port != taken


@needs_embedded
def test_data_in_a_named_folder_survives_a_stop(tmp_path: Path) -> None:
    with embedded.start(state_dir=tmp_path) as first:
        make_topic(first.bootstrap, "numbers")
        transaction(first.bootstrap, "numbers", commit=True, value=b"7")

    with embedded.start(state_dir=tmp_path) as second:
        assert read_all(second.bootstrap, "numbers", 1) == [7]


def test_a_missing_extra_is_one_line_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "_program", lambda: None)

    with pytest.raises(OperatorError) as caught:
        embedded.start()

    assert str(caught.value) == (
        "embedded: noida-db is not installed (pip install 'tallystick[embedded]', "
        "or use another kind)"
    )
