"""Test 8: of live, pre-join and lost group metadata only the live one passes."""

from __future__ import annotations

import struct

import pytest
from confluent_kafka import Consumer

from streams.fence import FenceLost, GroupFence, parse_fence, require_fence
from tallystick.errors import InvariantBroken


def _metadata(generation: int, member: str, group: str = "tally.commits") -> bytes:
    tail = f"{group}\0{member}\0".encode()
    return b"CGMDv2:" + struct.pack("=i", generation) + tail + b"\x01"


def test_08_a_live_membership_passes_unchanged() -> None:
    live = _metadata(7, "worker-0-3f2a")
    assert require_fence(live) is live
    assert parse_fence(live) == GroupFence("tally.commits", "worker-0-3f2a", 7)


@pytest.mark.parametrize(
    ("generation", "member"),
    [
        (-1, ""),  # before the join, and after a failed sync
        (1, ""),  # a session that timed out: librdkafka empties the member alone
        (-1, "worker-0-3f2a"),
    ],
)
def test_08_a_membership_that_is_none_is_refused(generation: int, member: str) -> None:
    with pytest.raises(FenceLost, match="no live membership"):
        require_fence(_metadata(generation, member))


def test_08_what_librdkafka_returns_before_a_join_is_refused() -> None:
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    with pytest.raises(FenceLost):
        require_fence(consumer.consumer_group_metadata())
    consumer.close()


@pytest.mark.parametrize("unknown", [b"", b"CGMDv2:", b"CGMDv9:" + b"\0" * 16, b"CGMDv2:\0\0\0\0g"])
def test_metadata_of_an_unknown_form_is_our_fault(unknown: bytes) -> None:
    with pytest.raises(InvariantBroken, match="unknown form"):
        parse_fence(unknown)
