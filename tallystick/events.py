"""CloudEvents headers of every record (Kafka protocol binding 1.0, binary mode)."""

from __future__ import annotations

from datetime import UTC, datetime

Header = tuple[str, bytes]


def event_headers(topic: str, source: str, event_id: str, at_ms: int | None = None) -> list[Header]:
    """The `ce_*` headers of one event; `at_ms` is log time where the producer has one.

    A client has none before the broker stamps the record, so its events carry no `ce_time`.
    """
    headers = [
        ("ce_specversion", b"1.0"),
        ("ce_id", event_id.encode()),
        ("ce_type", f"tallystick.{topic}".encode()),
        ("ce_source", source.encode()),
        ("content-type", b"application/avro"),
    ]
    if at_ms is not None:
        headers.append(("ce_time", rfc3339(at_ms).encode()))
    return headers


def rfc3339(at_ms: int) -> str:
    """`at_ms` (milliseconds since the epoch) as UTC text with milliseconds."""
    moment = datetime.fromtimestamp(at_ms / 1_000, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
