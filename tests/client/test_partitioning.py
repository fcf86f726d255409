"""Keys land where Kafka's own default partitioner puts them."""

from __future__ import annotations

import pytest

from tallystick.partitioning import murmur2, partition_for

# Values of org.apache.kafka.common.utils.Utils.murmur2, from Apache Kafka's own UtilsTest.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("data", JAVA)
def test_the_hash_equals_javas(data: bytes) -> None:
    signed = murmur2(data)
    signed = signed - (1 << 32) if signed >= 1 << 31 else signed
    assert signed == JAVA[data]


def test_a_partition_is_in_range() -> None:
    assert {partition_for(f"key-{n}", 12) for n in range(500)} == set(range(12))
