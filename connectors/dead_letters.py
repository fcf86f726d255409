"""A record that a connector cannot read, kept whole with the reason."""

from __future__ import annotations

from confluent_kafka import Message

from streams.outputs import Output
from tallystick.codec import Codec
from tallystick.errors import UndecodableRecord
from tallystick.events import event_headers
from tallystick.records import DeadLetter
from tallystick.topics import Topic


def dead_letter(
    codec: Codec, role: str, topic: Topic, message: Message, error: UndecodableRecord
) -> Output:
    """The record for `dead-letters`; it is spread by the source's key."""
    key = message.key()
    raw_key = key.encode() if isinstance(key, str) else key
    value = message.value()
    letter = DeadLetter(
        stage=role,
        source_topic=topic,
        source_partition=message.partition() or 0,
        source_offset=message.offset() or 0,
        key=raw_key,
        value=value.encode() if isinstance(value, str) else value,
        code=error.code,
        reason=str(error),
    )
    encoded, headers = codec.encode(Topic.DEAD_LETTERS, letter)
    event_id = f"{role}/{topic}/{letter.source_partition}/{letter.source_offset}"
    return Output(
        topic=Topic.DEAD_LETTERS,
        key=raw_key or b"",
        value=encoded,
        headers=[*event_headers(Topic.DEAD_LETTERS, f"tallystick/{role}", event_id), *headers],
    )
