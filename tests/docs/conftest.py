"""A pipeline for what the pages print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.broker.kinds import BrokerHandle
from ops.demo.target_process import DemoTarget
from streams.topics_admin import create, open_admin
from tests.spine.conftest import House


@pytest.fixture
def house(broker: BrokerHandle, prefix: str, tmp_path: Path) -> Iterator[House]:
    """Worker, dispatcher, reader and a demo target, under a prefix of its own."""
    create(open_admin(broker.bootstrap), prefix, partitions=2)
    with DemoTarget() as target:
        house = House(broker.bootstrap, prefix, target, tmp_path / "state", "cases-keyed")
        try:
            house.start()
            yield house
        finally:
            house.close()
