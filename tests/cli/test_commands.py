"""The good paths of every command, each in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ops.broker.kinds import BrokerHandle
from ops.processes import Piece, Pieces
from tallystick.records import Receipt
from tallystick.topics import Topic
from tests.cli.house import (
    KEYED,
    UNREADABLE,
    CliHouse,
    begin,
    document,
    interrupt,
    run,
    write,
)

pytestmark = pytest.mark.broker


def test_a_commit_shows_its_receipt_and_the_same_one_again(house: CliHouse, tmp_path: Path) -> None:
    plan = write(tmp_path, document("good", "TC-1", "TC-2"))
    text = house.commit(plan)
    first, second = house.commit(plan, "--json"), house.commit(plan, "--json")

    assert text.code == 0, text
    assert text.out.startswith("receipt ")
    assert "2 of 2 verified" in text.out
    assert "TC-1" in text.out
    assert text.err == ""
    assert (first.code, second.code) == (0, 0)
    assert first.json["kind"] == "Receipt"
    assert first.json["verified_count"] == 2
    assert first.json == second.json
    assert house.target.copies("good") == {"TC-1": 1, "TC-2": 1}


def test_a_plan_comes_from_standard_input_too(house: CliHouse) -> None:
    stdin = json.dumps(document("piped", "TC-1")).encode()
    done = house.run("commit", "-", "--contract", str(KEYED), "--json", stdin=stdin)

    assert (done.code, done.json["commit_key"]) == (0, "piped")


def test_drift_is_refused_and_says_which_plan_stands(house: CliHouse, tmp_path: Path) -> None:
    frozen = house.commit(write(tmp_path, document("drift", "TC-1")), "--json").json
    changed = write(tmp_path, document("drift", "TC-1", "TC-2"))
    done = house.commit(changed, "--json")
    text = house.commit(changed)

    assert (done.code, text.code) == (2, 2)
    assert done.json["error"]["code"] == "plan_drift"
    assert done.json["error"]["frozen"] == frozen["plan_hash"]
    assert frozen["plan_hash"][:12] in text.line
    assert house.target.copies("drift") == {"TC-1": 1}


def test_a_partial_names_the_items_and_exits_3(house: CliHouse, tmp_path: Path) -> None:
    house.target.fault("reject", module="partial", case_id="TC-2")
    plan = write(tmp_path, document("partial", "TC-1", "TC-2"))
    text = house.commit(plan, "--within", "5")
    inspected = house.run("inspect", "commit", "partial")

    assert text.code == 3, text
    assert text.out.startswith("partial ")
    assert "1 of 2 verified" in text.out
    assert "rejected" in next(line for line in text.out.splitlines() if line.startswith("TC-2"))
    assert inspected.code == 3


def test_brackets_and_escapes_in_names_are_shown_as_they_are(
    house: CliHouse, tmp_path: Path
) -> None:
    house.target.fault("reject", module="names", case_id="[bold]x[/]\x1b[31m")
    plan = write(tmp_path, document("names", "[bold]x[/]\x1b[31m"))
    done = house.commit(plan, "--within", "5")

    assert done.code == 3, done
    assert r"[bold]x[/]\x1b[31m" in done.out
    assert "\x1b" not in done.out


def test_an_unknown_effect_exits_4_and_a_person_turns_it_into_a_receipt(
    house: CliHouse, tmp_path: Path
) -> None:
    house.target.fault("ack_lost", module="unknown", case_id="TC-1")
    plan = write(tmp_path, document("unknown", "TC-1"))
    done = house.commit(plan, "--within", "4", "--json", contract=UNREADABLE)
    assert done.code == 4, done
    (item,) = done.json["items"]
    assert item["status"] == "unknown"
    house.target.clear_faults()

    words = ("resolve", item["intent_id"][:12], "--applied", "--evidence", "seen by the owner")
    resolved = house.run(*words, "--by", "maria", "--json")

    assert resolved.code == 0, resolved
    assert resolved.json["intent_id"] == item["intent_id"]
    assert resolved.json["resolved_by"] == "maria"
    receipt = house.wait_for(
        lambda: [r for r in house.records(Topic.RECEIPTS) if r.commit_key == "unknown"]
    )[0]
    assert isinstance(receipt, Receipt)
    assert house.commit(plan, "--json", contract=UNREADABLE).code == 0
    assert house.run("inspect", "commit", "unknown").code == 0


def test_who_stops_waiting_is_told_that_the_commit_goes_on(
    broker: BrokerHandle, ledger: str, tmp_path: Path
) -> None:
    words = ("commit", str(write(tmp_path, document("slow", "TC-1"))), "--contract", str(KEYED))
    place = ("--bootstrap", broker.bootstrap, "--prefix", ledger)
    done = run(*words, *place, "--wait", "0.1")

    assert done.code == 4
    assert done.out == ""
    assert "wait_timeout" in done.line
    assert "waited 0.1 s: no worker of the commits stage has answered" in done.line
    assert "ask again with the same plan" in done.line


def test_inspect_shows_planned_beside_found(house: CliHouse, tmp_path: Path) -> None:
    house.commit(write(tmp_path, document("seen", "TC-1", "TC-2")))
    text = house.run("inspect", "commit", "seen")
    found = house.run("inspect", "commit", "seen", "--json")

    assert (text.code, found.code) == (0, 0)
    assert text.out.startswith("seen: frozen")
    for name, planned in zip(("TC-1", "TC-2"), found.json["plan"]["items"], strict=True):
        row = next(line for line in text.out.splitlines() if line.startswith(name)).split()
        assert row[:3] == [name, planned["payload_hash"][:12], "1"]
        assert row[3] == "applied"
        assert "applied" in row[4:]
    assert [ending["kind"] for ending in found.json["endings"]] == ["Receipt"]
    assert len(found.json["attempts"]) == 4


def test_receipts_are_followed_one_object_a_line_until_ctrl_c(
    house: CliHouse, tmp_path: Path
) -> None:
    house.commit(write(tmp_path, document("tail-1", "TC-1")))
    house.commit(write(tmp_path, document("tail-2", "TC-1")))
    one = house.run("receipts", "tail", "-n", "1", "--from-beginning", "--json")
    text = house.run("receipts", "tail", "-n", "2", "--from-beginning")
    following = begin("receipts", "tail", "--from-beginning", "--json", env=house.env)
    assert following.stdout is not None
    line = following.stdout.readline()
    ended = interrupt(following)

    assert (one.code, text.code) == (0, 0)
    assert one.json["kind"] == "Receipt"
    assert text.out.count("receipt ") == 2
    assert ended.code == 130
    for each in (line, *ended.out.splitlines()):
        assert json.loads(each)["kind"] == "Receipt"
    assert ended.err == ""


def test_partials_are_followed_too(house: CliHouse, away: Path, tmp_path: Path) -> None:
    house.commit(write(tmp_path, document("gone", "TC-1")), "--within", "2", contract=away)
    words = ("receipts", "tail", "--partials", "-n", "1", "--from-beginning", "--json")
    done = house.run(*words)

    assert (done.code, done.json["kind"]) == (0, "PartialSuccess")


def test_a_reader_that_leaves_is_no_error(house: CliHouse, tmp_path: Path) -> None:
    house.commit(write(tmp_path, document("pipe", "TC-1")))
    for words in (("--json",), ()):
        process = begin("receipts", "tail", "--from-beginning", "-n", "1", *words, env=house.env)
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")


def test_ctrl_c_while_waiting_exits_130_and_the_request_stays(
    broker: BrokerHandle, house: CliHouse, ledger: str, tmp_path: Path
) -> None:
    plan = write(tmp_path, document("interrupted", "TC-1"))
    place = ("--bootstrap", broker.bootstrap, "--prefix", ledger)
    process = begin("commit", str(plan), "--contract", str(KEYED), *place)
    quiet = CliHouse(broker.bootstrap, ledger, house.target, tmp_path, KEYED.stem)
    house.wait_for(
        lambda: "interrupted" in [r.plan.commit_key for r in quiet.records(Topic.PLAN_REQUESTS)]
    )
    done = interrupt(process)

    assert done.code == 130
    assert done.out == ""
    assert "interrupted" in done.line
    assert "the commit goes on" in done.line


def test_topics_are_created_once(broker: BrokerHandle, prefix: str) -> None:
    place = ("--bootstrap", broker.bootstrap, "--prefix", prefix)
    words = ("topics", "create", "--partitions", "1", *place)
    first, second = run(*words, "--json"), run(*words, "--json")
    diff = run("topics", "diff", "--partitions", "1", *place)
    other = run("topics", "diff", "--partitions", "3", *place, "--json")

    assert (first.code, second.code, diff.code, other.code) == (0, 0, 0, 1), (first, second, diff)
    assert len(first.json["created"]) == len(second.json["existing"]) >= 12
    assert second.json["created"] == first.json["existing"] == []
    assert diff.out == "broker and catalogue agree\n"
    assert {row["what"] for row in other.json["differences"]} == {"partitions"}


ROLES: dict[str, Callable[[Pieces], Piece]] = {
    "worker": lambda pieces: pieces.worker("w-term"),
    "dispatch": lambda pieces: pieces.dispatcher([KEYED], "d-term"),
    "read": lambda pieces: pieces.reader([KEYED], "r-term"),
}


def test_long_running_commands_say_ready_and_stop_cleanly_on_sigterm(
    broker: BrokerHandle, ledger: str, tmp_path: Path
) -> None:
    env = {"CASES_URL": "http://127.0.0.1:1"}
    place = {"bootstrap": broker.bootstrap, "prefix": ledger}
    pieces = Pieces(**place, state_dir=tmp_path / "state", env=env)
    running = {name: make(pieces).start() for name, make in ROLES.items()}
    for piece in running.values():
        piece.wait_ready()

    assert {name: piece.stop() for name, piece in running.items()} == dict.fromkeys(ROLES, 0)


def test_the_demo_counts_what_it_did(broker: BrokerHandle) -> None:
    done = run("demo", "--kind", "external", "--bootstrap", broker.bootstrap, "--json")

    assert done.code == 0, done
    assert done.json.pop("seconds") > 0
    assert (
        done.json.items()
        >= {
            "planned": 20,
            "verified": 20,
            "duplicates": 0,
            "receipts": 2,
            "partials": 1,
            "broker": "external",
        }.items()
    )
    assert set(done.json) == {
        *("planned", "verified", "duplicates", "receipts", "partials", "broker", "seconds")
    }


def test_ctrl_c_ends_the_demo_with_130_and_no_traceback(broker: BrokerHandle) -> None:
    process = begin("demo", "--kind", "external", "--bootstrap", broker.bootstrap)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("1. "):
            break
    done = interrupt(process)

    assert done.code == 130
    assert done.line == "error [interrupted] interrupted"
