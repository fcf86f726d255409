"""Records that cannot be processed: kept whole in dead-letters, once, and never in the way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.failures.lab import KILLED, Lab, wait_exit
from tests.streams.toy import LETTERS

pytestmark = pytest.mark.broker


def test_23_an_output_that_the_broker_refuses_buries_its_source_and_nothing_else(
    make_lab: Callable[..., Lab],
) -> None:
    lab = make_lab(echo_bytes_max=2_000)
    ids = lab.send("a", "big:5000", "b", "c")
    lab.ready_app()
    assert [echo.text for echo in lab.wait_echoes(3)] == ["a", "b", "c"]
    (letter,) = lab.letters()
    assert letter.code == "output_refused"
    assert ids[1].encode() in (letter.value or b"")
    assert [echo.count for echo in lab.echoes()] == [1, 2, 3]


def test_23_an_output_too_large_to_be_sent_at_all_buries_its_source(lab: Lab) -> None:
    lab.send("a", "big:6000000", "b")
    lab.ready_app()
    assert [echo.text for echo in lab.wait_echoes(2)] == ["a", "b"]
    assert [(letter.code, letter.source_offset) for letter in lab.letters()] == [
        ("output_refused", 1)
    ]


def test_23_two_refused_outputs_in_one_batch_are_found_one_by_one(
    make_lab: Callable[..., Lab],
) -> None:
    lab = make_lab(echo_bytes_max=2_000)
    lab.send("a", "big:5000", "b", "big:6000", "c")
    lab.ready_app()
    assert [echo.count for echo in lab.wait_echoes(3)] == [1, 2, 3]
    assert [letter.source_offset for letter in lab.letters()] == [1, 3]


def test_24_an_undecodable_record_is_buried_once_though_the_worker_is_killed_between(
    lab: Lab,
) -> None:
    lab.send("a")
    lab.send_raw(b"k", b"\xff not json")
    lab.send_raw(None, b"{}")
    lab.send_raw(b"\xff", b"{}")
    lab.send("b")
    for at in ("before_send_offsets", "after_send_offsets"):
        assert wait_exit(lab.app(at=at)) == KILLED
    lab.ready_app()
    assert [echo.count for echo in lab.wait_echoes(2)] == [1, 2]
    letters = lab.letters()
    assert [letter.source_offset for letter in letters] == [1, 2, 3]
    assert {letter.code for letter in letters} == {"undecodable"}
    assert letters[0].value == b"\xff not json"
    assert letters[1].key is None


def test_24_a_letter_carries_its_causes_trace_context(lab: Lab) -> None:
    trace = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    lab.send("poison", "a", headers=[("traceparent", trace)])
    lab.ready_app()
    lab.wait_echoes(1)
    headers = dict(lab.read(LETTERS)[0].headers() or ())
    assert headers["traceparent"] == trace
    assert headers["ce_type"] == b"tallystick.dead-letters"
    assert headers["ce_source"] == b"tallystick/toy"


def test_25_a_full_producer_queue_holds_back_without_loss_or_reordering(lab: Lab) -> None:
    lab.send(*(str(number) for number in range(200)))
    lab.ready_app(settings={"kafka": {"queue.buffering.max.messages": 5}})
    echoes = lab.wait_echoes(200)
    assert [echo.text for echo in echoes] == [str(number) for number in range(200)]
    assert [echo.count for echo in echoes] == list(range(1, 201))
