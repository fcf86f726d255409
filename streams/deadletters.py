"""What becomes of a record that no fold can take: it is kept whole, with the reason, elsewhere.

The letter and the record's offset are in one transaction, so there is one letter for it.
"""

from __future__ import annotations

from hashlib import sha256

from streams.headers import output_headers, output_id
from streams.outputs import Output
from streams.source import Cause, Flaw, LogRecord
from streams.topology import Stage
from tallystick.codec import Codec
from tallystick.records import DeadLetter

REASON_CHARS_MAX = 2_000
"""Longest reason. Lower: an exception's point may be cut off. Higher: a letter may grow past the
broker's limit by its reason alone."""


class DeadLetters:
    """Makes the letters of one stage."""

    def __init__(self, stage: Stage, codec: Codec) -> None:
        self._stage = stage
        self._codec = codec

    def letter(self, record: LogRecord, cause: Cause, flaw: Flaw, *, whole: bool) -> Output:
        """The letter for `cause`; `whole=False` leaves out a value too large to be sent again,
        and names its digest (it stays readable at its place in the log)."""
        reason, value = flaw.reason[:REASON_CHARS_MAX], record.value
        if not whole and value is not None:
            digest = sha256(value).hexdigest()
            reason = f"{reason} [value left out: {len(value)} bytes, SHA-256 {digest}]"
            value = None
        key = cause.woken.encode() if cause.woken is not None else record.raw_key
        letter = DeadLetter(
            stage=self._stage.name,
            source_topic=record.topic,
            source_partition=record.partition,
            source_offset=record.offset,
            key=key,
            value=value,
            code=flaw.code,
            reason=reason,
        )
        topic = self._stage.dead_letters
        encoded, codec_headers = self._codec.encode(topic, letter)
        headers = output_headers(
            topic=topic,
            stage=self._stage.name,
            event_id=output_id(cause, "dead-letter", 0),
            at_ms=record.at_ms,
            codec_headers=codec_headers,
            traceparent=record.traceparent,
        )
        return Output(topic, key or b"", encoded, headers, None)
