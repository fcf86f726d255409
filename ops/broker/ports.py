"""Free ports on 127.0.0.1, found by binding them."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Sequence

from tallystick.errors import OperatorError

HOST = "127.0.0.1"

LOWEST, HIGHEST = 15_000, 32_000
"""Below the range that systems take outgoing ports from (Linux: from 32,768). Inside it, a
client that keeps asking a dead broker's port connects to itself sooner or later, and the
restarted broker finds its own port taken."""

TRIES_MAX = 200
"""Fewer could fail on a busy machine; more would only hide that no port is free at all."""


def free_ports(count: int, preferred: Sequence[int] = ()) -> list[int]:
    """`count` different free ports, the preferred ones first; held together while choosing."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in (*preferred, *(_random_port() for _ in range(TRIES_MAX))):
            if len(found) == count:
                break
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            # As the JVM does: a port whose last connection is still in TIME_WAIT is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
                probe.listen(1)
            except OSError:
                continue
            found.append(port)
    if len(found) < count:
        raise OperatorError(
            f"no {count} free ports between {LOWEST} and {HIGHEST}",
            where=HOST,
            fix="stop what listens there",
        )
    return found


def _random_port() -> int:
    return LOWEST + secrets.randbelow(HIGHEST - LOWEST)
