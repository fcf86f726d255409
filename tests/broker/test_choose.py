"""The first kind that works is taken, and every one passed over is said with its reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ops.broker import choose
from ops.broker.external import AttachedBroker, attach
from ops.broker.kinds import BrokerHandle, BrokerKind, BrokerState
from ops.broker.ports import HOST, free_ports
from tallystick.errors import BrokerUnavailable, CallerError, OperatorError


def works(kind: BrokerKind) -> BrokerHandle:
    """A broker that is there at once."""
    return AttachedBroker(BrokerState(kind=kind, bootstrap="127.0.0.1:1", version="1"))


def starter(*broken: BrokerKind) -> Callable[..., BrokerHandle]:
    """A `start` under which these kinds cannot run."""

    def start(kind: BrokerKind, **_options: object) -> BrokerHandle:
        if kind in broken:
            raise OperatorError(f"no {kind}", where=kind)
        return works(kind)

    return start


@pytest.mark.parametrize(
    ("bootstrap", "broken", "expected"),
    [
        ("b:1", (), BrokerKind.EXTERNAL),
        ("", (), BrokerKind.APACHE),
        ("b:1", (BrokerKind.EXTERNAL,), BrokerKind.APACHE),
        ("", (BrokerKind.APACHE,), BrokerKind.DOCKER),
        ("", (BrokerKind.APACHE, BrokerKind.DOCKER), BrokerKind.EMBEDDED),
    ],
)
def test_the_order_is_external_apache_docker_embedded(
    monkeypatch: pytest.MonkeyPatch,
    bootstrap: str,
    broken: tuple[BrokerKind, ...],
    expected: BrokerKind,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(choose, "start", starter(*broken))

    assert choose.start_first(bootstrap=bootstrap, say=said.append).kind is expected
    assert [line.partition(":")[0] for line in said] == [f"not {kind}" for kind in broken]


def test_three_nodes_pass_over_what_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "start", starter(BrokerKind.APACHE))

    with pytest.raises(OperatorError, match=r"no broker can run here \(apache: no apache\)"):
        choose.start_first(nodes=3)


@pytest.mark.parametrize("kind", [BrokerKind.EMBEDDED, BrokerKind.DOCKER])
def test_three_nodes_of_a_single_kind_are_a_usage_error(kind: BrokerKind) -> None:
    with pytest.raises(CallerError, match="has one node"):
        choose.start(kind, nodes=3)


def test_an_unknown_kind_is_a_usage_error() -> None:
    with pytest.raises(CallerError, match="'rabbit' is no kind of broker"):
        choose.start("rabbit")


def test_an_external_broker_that_is_away_is_one_clear_line() -> None:
    address = f"{HOST}:{free_ports(1)[0]}"

    with pytest.raises(BrokerUnavailable, match=f"{address}: no broker answers"):
        attach(address, within_s=0.5)
    with pytest.raises(CallerError, match="needs an address"):
        choose.start(BrokerKind.EXTERNAL)
