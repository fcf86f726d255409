"""Headers of every record that the loop writes: the same input always gives the same bytes.

The id of an output is derived from where its cause stands in the log, so a consumer that sees a
record twice (a mirror, a restore) can tell, and replay gives it again (engine rule 24).
"""

from __future__ import annotations

from hashlib import sha256

from streams.source import Cause, Header
from tallystick.events import event_headers

_ID_HEX_DIGITS = 32
"""128 bits of SHA-256. Lower: two ids may meet by chance."""


def output_id(cause: Cause, kind: str, index: int) -> str:
    """The id of output `index` of `cause`; `kind` keeps folds, ticks and dead letters apart."""
    woken = "" if cause.woken is None else cause.woken
    place = f"{kind}/{cause.topic}/{cause.partition}/{cause.offset}/{index}/{woken}"
    return sha256(place.encode()).hexdigest()[:_ID_HEX_DIGITS]


def output_headers(
    *,
    topic: str,
    stage: str,
    event_id: str,
    at_ms: int,
    codec_headers: list[Header],
    traceparent: bytes | None,
) -> list[Header]:
    """CloudEvents headers, the codec's own, and the cause's trace context where it has one."""
    headers = event_headers(topic, f"tallystick/{stage}", event_id, at_ms)
    headers.extend(codec_headers)
    if traceparent is not None:
        headers.append(("traceparent", traceparent))
    return headers
