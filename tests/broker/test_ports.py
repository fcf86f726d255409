"""Ports are free, different, on 127.0.0.1, and below the range of outgoing connections."""

from __future__ import annotations

import socket

import pytest

from ops.broker import ports
from tallystick.errors import OperatorError


def test_ports_are_different_and_outside_the_outgoing_range() -> None:
    found = ports.free_ports(20)

    assert len(set(found)) == 20
    assert all(ports.LOWEST <= port < ports.HIGHEST for port in found)


def test_a_preferred_port_is_taken_when_free_and_passed_over_when_not() -> None:
    (wanted,) = ports.free_ports(1)

    assert ports.free_ports(2, [wanted])[0] == wanted
    with socket.socket() as holder:
        holder.bind((ports.HOST, wanted))
        holder.listen(1)
        assert wanted not in ports.free_ports(2, [wanted])


def test_no_free_port_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as holder:
        holder.bind((ports.HOST, 0))
        holder.listen(1)
        monkeypatch.setattr(ports, "_random_port", lambda: holder.getsockname()[1])

        with pytest.raises(OperatorError, match=r"127\.0\.0\.1: no 1 free ports"):
            ports.free_ports(1)
