"""Settings that cannot work are refused at start, in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams.intake import consumer_config
from streams.settings import LoopSettings
from tallystick.errors import CallerError
from tests.streams.toy import toy_stage


def _settings(**more: Any) -> LoopSettings:
    place: dict[str, Any] = {"bootstrap": "b:9092", "slot": "w-0", "state_dir": Path("s")}
    return LoopSettings(**{**place, **more})


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"slot": ""}, "slot is empty"),
        ({"prefix": "Bad"}, "topic prefix"),
        ({"message_timeout_ms": 12_000}, "lower than transaction_timeout_ms"),
        ({"session_timeout_ms": 90_000}, "must not exceed poll_gap_ms_max"),
        ({"batch_records_max": 0}, "batch sizes must be positive"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(CallerError, match=told):
        _settings(**wrong)


def test_extra_client_settings_never_undo_the_loops_own() -> None:
    settings = _settings(
        kafka={"security.protocol": "SSL", "enable.auto.commit": True, "group.id": "x"}
    )
    config = consumer_config(toy_stage(), settings)
    assert config["security.protocol"] == "SSL"
    assert config["enable.auto.commit"] is False
    assert config["group.id"] == "tally.toy"


def test_two_heartbeats_may_be_lost_even_with_a_short_session() -> None:
    config = consumer_config(toy_stage(), _settings(session_timeout_ms=1_000))
    assert config["heartbeat.interval.ms"] == 333
