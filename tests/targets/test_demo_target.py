"""The demo target, in its own process: every fault switch, seen by the client and by its ledger."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from connectors.contract_file import load_contract
from connectors.targets import CallResult, open_target
from ops.demo.target_process import DemoTarget
from tallystick.errors import OperatorError
from tallystick.records import Intent, Readback
from tests.targets.wire import asked, intent, run

CONTRACTS = Path(__file__).resolve().parents[2] / "ops" / "demo" / "contracts"
TOOLS = {"cases-natural": "put_case"}


@pytest.fixture(scope="module")
def process() -> Iterator[DemoTarget]:
    with DemoTarget() as running:
        yield running


@pytest.fixture
def demo(process: DemoTarget) -> DemoTarget:
    process.reset()
    process.set(keys=True, unique=False, page_size=None, lag_ms=0, latency_ms=0, token=None)
    return process


def case(name: str = "c1", title: str = "one", contract: str = "cases-keyed") -> Intent:
    """An intent to write one case."""
    payload = f'{{"case_id":"{name}","steps":["a","b"],"title":"{title}"}}'
    tool = TOOLS.get(contract, "create_case")
    return replace_intent(intent(name, payload, tool), intent_id=f"key-{name}")


def replace_intent(record: Intent, **fields: Any) -> Intent:
    """The intent with other fields."""
    return msgspec.structs.replace(record, **fields)


def write(demo: DemoTarget, *intents: Intent, contract: str = "cases-keyed") -> list[CallResult]:
    """Write these, one after the other."""

    async def story() -> list[CallResult]:
        target = open_target(load_contract(CONTRACTS / f"{contract}.yaml"), {"CASES_URL": demo.url})
        results = [await target.write(each) for each in intents]
        await target.close()
        return results

    return run(story())


def look(demo: DemoTarget, *intents: Intent, contract: str = "cases-keyed") -> Readback:
    """Read these back."""

    async def story() -> Readback:
        target = open_target(load_contract(CONTRACTS / f"{contract}.yaml"), {"CASES_URL": demo.url})
        wanted = [(each.identity, each.payload) for each in intents]
        answer = await target.read(asked(*wanted, tool=intents[0].tool))
        await target.close()
        return answer

    return run(story())


def outcomes(results: list[CallResult]) -> list[tuple[str, str]]:
    return [(result.outcome.value, result.code) for result in results]


ONCE = {"case_id": "c1", "count": 1}
FAULTS: list[tuple[str, dict[str, Any], list[tuple[str, str]], int]] = [
    # fault, its fields, outcomes of two attempts under one key, rows in the ledger
    ("ack_lost", {}, [("unknown", "disconnected"), ("applied", "http_201")], 1),
    ("ack_lost", {"hang": True}, [("unknown", "timeout"), ("applied", "http_201")], 1),
    ("error_500_after_commit", {}, [("unknown", "http_500"), ("applied", "http_201")], 1),
    ("error_500_before", {}, [("unknown", "http_500"), ("applied", "http_201")], 1),
    ("rate_limited", {}, [("not_executed", "http_429"), ("applied", "http_201")], 1),
    ("unavailable", {}, [("not_executed", "http_503"), ("applied", "http_201")], 1),
    ("reject", {}, [("rejected", "http_422"), ("applied", "http_201")], 1),
    ("duplicate_delivery", {}, [("applied", "http_201"), ("applied", "http_201")], 1),
    ("late_commit", {"delay_ms": 1_200}, [("unknown", "timeout"), ("applied", "http_201")], 1),
    ("late_commit", {"delay_ms": 4_000, "conflict": True},
     [("unknown", "timeout"), ("unknown", "http_409")], 1),
    ("latency", {"delay_ms": 5}, [("applied", "http_201"), ("applied", "http_201")], 1),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fields", "expected", "rows"), FAULTS)
def test_under_a_key_two_attempts_leave_one_effect(
    demo: DemoTarget, kind: str, fields: dict[str, Any], expected: list[Any], rows: int
) -> None:
    demo.fault(kind, **ONCE, **fields)

    results = write(demo, case(), case())
    demo.wait_for_late()

    assert outcomes(results) == expected
    assert (demo.copies()["c1"], demo.duplicates()) == (rows, 0)


UNKEYED: list[tuple[str, dict[str, Any], int]] = [
    ("ack_lost", {}, 2),
    ("error_500_after_commit", {}, 2),
    ("error_500_before", {}, 1),
    ("rate_limited", {}, 1),
    ("duplicate_delivery", {}, 3),
    ("late_commit", {"delay_ms": 1_200}, 2),
]


@pytest.mark.parametrize(("kind", "fields", "rows"), UNKEYED)
def test_without_a_key_a_blind_second_attempt_is_a_second_effect(
    demo: DemoTarget, kind: str, fields: dict[str, Any], rows: int
) -> None:
    """Why the ledger never retries an unknown outcome blindly."""
    demo.fault(kind, **ONCE, **fields)

    write(demo, case(), case(), contract="cases-unkeyed")
    demo.wait_for_late()

    assert demo.copies()["c1"] == rows


def test_a_natural_write_twice_is_one_row(demo: DemoTarget) -> None:
    demo.fault("ack_lost", **ONCE)
    put = case(contract="cases-natural")

    results = write(demo, put, put, contract="cases-natural")

    assert outcomes(results) == [("unknown", "disconnected"), ("applied", "http_200")]
    assert [effect["op"] for effect in demo.ledger()] == ["insert", "same"]
    assert look(demo, put, contract="cases-natural").found[0].copies == 1


def test_keys_that_are_switched_off_are_ignored(demo: DemoTarget) -> None:
    demo.set(keys=False)

    write(demo, case(), case())

    assert demo.duplicates() == 1


def test_a_key_reused_for_something_else_is_refused(demo: DemoTarget) -> None:
    other = replace_intent(case(title="two"), intent_id="key-c1")

    results = write(demo, case(), other)

    assert outcomes(results) == [("applied", "http_201"), ("rejected", "http_422")]
    assert "different request" in results[1].detail
    assert demo.copies()["c1"] == 1


def test_the_ledger_names_every_effect_with_its_key(demo: DemoTarget) -> None:
    write(demo, case("c1"), case("c2"))

    ledger = demo.ledger()
    assert [effect["key"] for effect in ledger] == ["key-c1", "key-c2"]
    assert [effect["seq"] for effect in ledger] == sorted(effect["seq"] for effect in ledger)


def test_a_read_back_finds_what_was_written_and_what_nobody_planned(demo: DemoTarget) -> None:
    write(demo, case("c1"), case("c2"), case("x"))

    answer = look(demo, case("c1"), case("c2", title="other"), case("c3"))

    found = {item.identity: (item.copies, item.differing) for item in answer.found}
    assert found == {"c1": (1, ()), "c2": (1, ("title",)), "c3": (0, ())}
    assert [item.identity for item in answer.unplanned] == ["x"]
    assert answer.found[0].target_refs == (f"c-{demo.ledger()[0]['row']}",)


def test_wrong_content_is_seen_as_different(demo: DemoTarget) -> None:
    demo.fault("wrong_content", **ONCE)

    assert outcomes(write(demo, case())) == [("applied", "http_201")]
    assert look(demo, case()).found[0].differing == ("title",)


def test_a_lagging_row_is_read_only_after_its_lag(demo: DemoTarget) -> None:
    demo.fault("slow_readback", case_id="c1", lag_ms=60_000, count=1)

    write(demo, case("c1"), case("c2"))

    answer = look(demo, case("c1"), case("c2"), contract="cases-lagging")
    assert [item.copies for item in answer.found] == [0, 1]
    assert demo.copies()["c1"] == 1


def test_a_slow_read_ends_in_an_error_and_not_in_an_absence(demo: DemoTarget) -> None:
    write(demo, case())
    demo.fault("slow_readback", delay_ms=5_000, count=1)

    slow, quick = look(demo, case()), look(demo, case())

    assert (slow.error, slow.found) == ("timeout", ())
    assert quick.found[0].copies == 1


def test_a_paged_listing_is_read_to_its_end(demo: DemoTarget) -> None:
    demo.set(page_size=2)
    cases = [case(f"c{n}") for n in range(1, 8)]
    write(demo, *cases)

    answer = look(demo, *cases)

    assert [item.copies for item in answer.found] == [1] * 7


def test_a_target_with_unique_names_says_that_the_case_exists(demo: DemoTarget) -> None:
    demo.set(unique=True)

    results = write(demo, case(), case(), contract="cases-unkeyed")

    assert outcomes(results) == [("applied", "http_201"), ("exists", "http_409")]


def test_wrong_credentials_are_refused_and_nothing_is_written(demo: DemoTarget) -> None:
    demo.set(token="right")

    (result,) = write(demo, case())

    assert (result.outcome, result.error_class) == ("rejected", "permission")
    assert look(demo, case()).error == "http_401"
    assert demo.ledger() == []


def test_an_unreadable_target_acknowledges_with_its_own_id(demo: DemoTarget) -> None:
    (result,) = write(demo, case(), contract="cases-unreadable")

    assert (result.outcome, result.target_ref) == ("applied", f"c-{demo.ledger()[0]['row']}")


def test_a_compensation_removes_every_copy(demo: DemoTarget) -> None:
    write(demo, case(), case(), contract="cases-unkeyed")
    undo = replace_intent(case(), tool="delete_case")

    results = write(demo, undo, undo)

    assert outcomes(results) == [("applied", "http_204"), ("rejected", "http_404")]
    assert look(demo, case()).found[0].copies == 0


def test_a_pattern_bites_where_it_matches_and_as_often_as_it_says(demo: DemoTarget) -> None:
    demo.fault("reject", pattern="a*", count=2)

    results = write(demo, case("a1"), case("b1"), case("a2"), case("a3"))

    assert [result.outcome for result in results] == ["rejected", "applied", "rejected", "applied"]


@pytest.mark.parametrize("fault", [{"kind": "magic"}, {"kind": "reject", "cout": 1}])
def test_a_switch_that_does_not_exist_is_refused(demo: DemoTarget, fault: dict[str, Any]) -> None:
    with pytest.raises(OperatorError, match="400"):
        demo.call("POST", "/faults", fault)


def test_a_killed_target_comes_back_on_its_file_with_what_it_had_committed(tmp_path: Path) -> None:
    demo = DemoTarget(db=tmp_path / "cases.db").start()
    try:
        write(demo, case())
        demo.kill()
        away = DemoTarget(port=demo.port)
        assert outcomes(write(away, case("c2"))) == [("not_executed", "connection_refused")]
        demo.start()
        replayed = write(demo, case())

        assert outcomes(replayed) == [("applied", "http_201")]
        assert demo.copies()["c1"] == 1
    finally:
        demo.stop()


def test_switches_can_be_set_from_the_start() -> None:
    with DemoTarget("--fault", '{"kind":"unavailable","count":1}', "--latency-ms", "1") as demo:
        assert outcomes(write(demo, case())) == [("not_executed", "http_503")]


def test_a_start_that_fails_says_so() -> None:
    with pytest.raises(OperatorError, match="the demo target did not start: error: --fault"):
        DemoTarget("--fault", "nonsense").start()


def test_the_target_ends_when_told() -> None:
    demo = DemoTarget().start()
    pid = demo.pid
    os.kill(pid, signal.SIGTERM)
    demo.stop()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
