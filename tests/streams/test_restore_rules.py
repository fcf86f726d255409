"""Engine rule 18: when a store may go on from where it is, and when it is rebuilt."""

from __future__ import annotations

import pytest

from streams.lookups import ChangelogFacts
from streams.restore import start_of
from streams.store import StoreMark

HOUR_MS = 3_600_000
FACTS = ChangelogFacts("id", 24 * HOUR_MS)
NOW_MS = 1_000 * HOUR_MS


def _start(
    *, at: int = 50, stamp_ms: int = NOW_MS, topic_id: str = "id", start: int = 10, end: int = 100
) -> tuple[int | None, str]:
    return start_of(
        StoreMark(at, {}, stamp_ms, topic_id),
        log_start=start,
        log_end=end,
        facts=FACTS,
        now_ms=NOW_MS,
        slack_ms=60_000,
    )


def test_a_store_within_its_log_goes_on() -> None:
    assert _start() == (50, "")
    assert _start(at=10) == (10, "")
    assert _start(at=100) == (100, "")
    assert _start(topic_id="") == (50, "")


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ({"at": 101}, "beyond the changelog's end"),
        ({"at": 9}, "below the changelog's start"),
        ({"topic_id": "other"}, "created anew"),
        ({"stamp_ms": NOW_MS - 24 * HOUR_MS}, "tombstones"),
        ({"stamp_ms": NOW_MS + HOUR_MS}, "tombstones"),  # a clock that went back proves nothing
    ],
)
def test_a_store_outside_its_log_or_too_old_is_rebuilt(case: dict[str, int], why: str) -> None:
    start, told = _start(**case)  # type: ignore[arg-type]  # one keyword of several types
    assert start is None
    assert why in told


def test_a_new_store_is_built() -> None:
    start, _ = start_of(None, log_start=0, log_end=0, facts=FACTS, now_ms=NOW_MS, slack_ms=0)
    assert start is None
