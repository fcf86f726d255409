"""Test 32: the same log gives the same bytes, live or offline, whatever the batch sizes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from ops.broker.kinds import BrokerHandle
from streams.outputs import Output
from streams.replay import Replayed, in_log_time, main, read_inputs, replay
from streams.settings import LoopSettings
from streams.topics_admin import create, open_admin
from tallystick.topics import Topic
from tests.failures.lab import Lab, eventually
from tests.streams.toy import ECHOES, LETTERS, MORE_NOTES, NOTES, TICKS, JsonCodec, toy_stage

pytestmark = pytest.mark.broker

Bytes = tuple[bytes, bytes | None, tuple[tuple[str, bytes], ...], int | None]


def _settings(lab: Lab, **sizes: Any) -> LoopSettings:
    return LoopSettings(
        bootstrap=lab.bootstrap,
        prefix=lab.prefix,
        slot="replay",
        state_dir=lab.folder,
        **{**lab.quick, **sizes},
    )


def _logged(message: Message) -> Bytes:
    headers = tuple((name, bytes(value)) for name, value in message.headers() or ())
    return message.key() or b"", message.value(), headers, message.partition()


def _replayed(output: Output) -> Bytes:
    return output.key, output.value, tuple(output.headers), output.partition


def _by_partition(found: list[Bytes]) -> dict[int | None, list[Bytes]]:
    sorted_out: dict[int | None, list[Bytes]] = {}
    for each in found:
        sorted_out.setdefault(each[3], []).append(each)
    return sorted_out


def test_32_one_log_in_two_runs_with_other_batch_sizes_gives_equal_rows_and_outputs(
    make_lab: Callable[..., Lab],
) -> None:
    lab = make_lab(partitions=2)
    trace = [("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]
    for number in range(30):
        lab.send("a", "b", key=f"key-{number % 7}", headers=trace)
    lab.send("timer:100", "poison", key="key-1")
    lab.send("wake-poison:100", key="key-2")
    lab.send_raw(b"key-3", b"not json")
    app = lab.ready_app(settings={"batch_records_max": 3, "wakes_max": 1})
    eventually("the timer goes off", lambda: [e for e in lab.echoes() if e.text == "woke"])
    eventually("all is folded", lambda: len(lab.letters()) == 3)
    lab.send("forget", "c", key="key-4")
    lab.wait_echoes(65)
    app.stop()

    stage, codec = toy_stage(), JsonCodec()
    records = in_log_time(stage, read_inputs(stage, _settings(lab), codec))
    runs = [
        replay(stage, _settings(lab, batch_records_max=size, wakes_max=size), codec, records)
        for size in (1, 4, 500)
    ]
    assert runs[0] == runs[1] == runs[2]
    for partition in range(2):
        assert dict(runs[0].rows[partition]) == dict(sorted(lab.logged_rows(partition).items()))
        assert lab.local_rows("a", partition) == dict(runs[0].rows[partition])
    live = _by_partition([_logged(message) for message in lab.read(ECHOES)])
    assert live == _by_partition([_replayed(output) for output in runs[0].to(ECHOES)])
    letters = sorted((key, value or b"") for key, value, *_ in map(_logged, lab.read(LETTERS)))
    assert letters == sorted((o.key, o.value or b"") for o in runs[0].to(LETTERS))


def test_32_two_topics_replayed_in_the_order_of_consumption_give_equal_bytes(lab: Lab) -> None:
    for number in range(10):
        lab.send(f"one {number}", topic=NOTES)
        lab.send(f"two {number}", topic=MORE_NOTES)
    stage, codec = toy_stage(two_inputs=True), JsonCodec()
    found = read_inputs(stage, _settings(lab), codec)
    by_topic = [
        record for topic in reversed(stage.sources) for record in found if record.topic == topic
    ]
    by_time = in_log_time(stage, found)
    assert {record.cause for record in by_time} == {record.cause for record in by_topic}
    for order in (by_topic, by_time):
        runs: list[Replayed] = [
            replay(stage, _settings(lab, batch_records_max=size), codec, order)
            for size in (1, 3, 500)
        ]
        assert runs[0] == runs[1] == runs[2]
    # Between topics the log fixes no order, and this fold's counts depend on it.
    one, other = (replay(stage, _settings(lab), codec, order) for order in (by_topic, by_time))
    assert one.outputs != other.outputs
    assert not [record for record in found if record.topic == TICKS]


def test_the_replay_command_tells_the_same_digest_for_the_same_log(
    broker: BrokerHandle, prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create(open_admin(broker.bootstrap), prefix, partitions=1)
    lab = Lab(broker.bootstrap, prefix, tmp_path)
    lab.send_raw(b"k", b"no plan request", topic=Topic.PLAN_REQUESTS)
    told = []
    for _ in range(2):
        main(["--bootstrap", broker.bootstrap, "--prefix", prefix])
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    assert (told[0]["records"], told[0]["rows"], told[0]["outputs"]) == (1, 0, 1)
