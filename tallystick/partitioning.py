"""Which partition a key belongs to: murmur2, as Kafka's own Java client places it.

Every producer of ours names its partition or uses librdkafka's `murmur2_random`, so a client in
any language with Kafka's default partitioner meets the same partition.
"""

from __future__ import annotations

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit MurmurHash2 of `data` with Kafka's seed, unsigned."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    whole = length - length % 4
    for offset in range(0, whole, 4):
        k = int.from_bytes(data[offset : offset + 4], "little")
        k = k * _M & _MASK
        k ^= k >> 24
        k = k * _M & _MASK
        h = (h * _M & _MASK) ^ k
    tail = data[whole:]
    if tail:
        h ^= int.from_bytes(tail, "little")
        h = h * _M & _MASK
    h ^= h >> 13
    h = h * _M & _MASK
    return h ^ (h >> 15)


def partition_for(key: str, partitions: int) -> int:
    """The partition of `key` (as UTF-8) among `partitions`."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions
