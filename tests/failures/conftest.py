"""A lab on the session's broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ops.broker.kinds import BrokerHandle
from tests.failures.lab import Lab


@pytest.fixture
def make_lab(broker: BrokerHandle, prefix: str, tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    """Labs of this test, closed with it: `make_lab(partitions=4, delete_retention_ms="0")`."""
    labs: list[Lab] = []

    def make(partitions: int = 1, **topics: Any) -> Lab:
        fenced = broker.kind.fences_generations
        # The embedded broker refuses a session timeout below Kafka's default minimum.
        session = {} if fenced else {"session_timeout_ms": 6_000}
        lab = Lab(broker.bootstrap, prefix, tmp_path, partitions, **session)
        labs.append(lab.create(**topics))
        return lab

    yield make
    for lab in labs:
        lab.close()


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    """A lab with one partition."""
    return make_lab()
