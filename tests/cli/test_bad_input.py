"""Bad input of every kind: one line says what, where and what to do; nothing is half-written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ops.broker.kinds import BrokerHandle
from tests.cli.house import KEYED, NOBODY, CliHouse, Done, document, items, run, run_all, write

pytestmark = pytest.mark.broker

BAD_PLANS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "not_json": ("{ commit_key: 1 }", ("plan.json", "JSON")),
    "empty_file": ("", ("plan.json", "JSON")),
    "array": ([], ("plan.json", "an array is not an object", "commit_key, module, items")),
    "no_items": (document("k"), ("$.items", "no items", "plan at least one item")),
    "repeated_identity": (
        document("k", "TC-1", "TC-2", "TC-1"),
        ("$.items[2].identity", "planned twice, first as $.items[0]", "its own identity"),
    ),
    "unknown_field": (
        document("k", "TC-1", evidance={"v": 7}),
        ("plan.json", "unknown field 'evidance'", "did you mean 'evidence'?"),
    ),
    "nan": (
        '{"commit_key": "k", "module": "m", "tool": "create_case",'
        ' "items": [{"identity": "TC-1", "payload": {"title": NaN}}]}',
        ("plan.json", "NaN"),
    ),
    "lone_surrogate": (
        document("k", "TC-1", evidence={"title": "\ud800"}),
        ("plan.json", "$.evidence.title", "surrogate"),
    ),
    "not_utf8": (b'{"commit_key": "\xff"}', ("plan.json", "UTF-8")),
    "tool_that_the_contract_lacks": (
        document("k", "TC-1", tool="create_suite"),
        ("$.items[0].tool", "contract 'cases' has no tool 'create_suite'", "create_case"),
    ),
    "no_tool_named": (
        {"commit_key": "k", "module": "m", "items": items("TC-1")},
        ("$.items[0]", "names no tool", "name one of: create_case, delete_case"),
    ),
}

BAD_CONTRACTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "yaml_broken": ("name: [cases", ("cases.yaml, line 1", "not valid YAML")),
    "duplicate_key": (
        KEYED.read_text() + 'version: "2"\n',
        ("cases.yaml, line", "key 'version' stands twice"),
    ),
    "names_a_missing_tool": (
        KEYED.read_text().replace("  delete_case:", "  remove_case:"),
        ("cases.yaml", "delete_case"),
    ),
    "unknown_field": (
        KEYED.read_text().replace("readback:", "readbck:"),
        ("cases.yaml", "readbck", "did you mean 'readback'?"),
    ),
    "no_tools": ('name: a\nversion: "1"\nbase_url: http://a\n', ("cases.yaml", "tools")),
}


BAD_DEADLINES = ("0.5", "604801", "nan", "-1")


def refused(done: Done, code: int, *words: str) -> None:
    """Ended with `code`, one line on stderr that has all the words, and nothing on stdout."""
    assert done.code == code, done
    assert done.out == ""
    for word in words:
        assert word in done.line


@dataclass(frozen=True)
class Refusals:
    """Every bad file sent at once, and what the ledger and the target held around that."""

    done: dict[str, Done]
    before: tuple[int, int]
    after: tuple[int, int]


@pytest.fixture(scope="module")
def refusals(house: CliHouse, tmp_path_factory: pytest.TempPathFactory) -> Refusals:
    """Plans and contracts, and deadlines that no commit can have."""
    folder = tmp_path_factory.mktemp("bad")
    good = write(folder, document("k", "TC-1"), "good.json")
    files = {name: (folder / name).absolute() for name in (*BAD_PLANS, *BAD_CONTRACTS)}
    for each in files.values():
        each.mkdir(exist_ok=True)
    commands: dict[str, tuple[str, ...]] = {
        name: (str(write(files[name], content)), "--contract", str(KEYED))
        for name, (content, _) in BAD_PLANS.items()
    }
    commands |= {
        f"contract_{name}": (str(good), "--contract", str(write(files[name], text, "cases.yaml")))
        for name, (text, _) in BAD_CONTRACTS.items()
    }
    commands |= {
        f"within_{value}": (str(good), "--contract", str(KEYED), "--within", value)
        for value in BAD_DEADLINES
    }
    before = house.traces()
    done = run_all({name: ("commit", *words) for name, words in commands.items()}, house.env)
    return Refusals(done, before, house.traces())


@pytest.mark.parametrize("name", BAD_PLANS)
def test_a_bad_plan_is_refused(refusals: Refusals, name: str) -> None:
    refused(refusals.done[name], 2, *BAD_PLANS[name][1])


@pytest.mark.parametrize("name", BAD_CONTRACTS)
def test_a_bad_contract_is_refused(refusals: Refusals, name: str) -> None:
    refused(refusals.done[f"contract_{name}"], 2, *BAD_CONTRACTS[name][1])


@pytest.mark.parametrize("within", BAD_DEADLINES)
def test_a_deadline_out_of_range_is_refused(refusals: Refusals, within: str) -> None:
    said = ("--within", "out of range", "give 1 to 604800 seconds")

    refused(refusals.done[f"within_{within}"], 2, *said)


def test_what_is_refused_leaves_no_request_and_no_effect(refusals: Refusals) -> None:
    assert len(refusals.done) == len(BAD_PLANS) + len(BAD_CONTRACTS) + len(BAD_DEADLINES)
    assert refusals.after == refusals.before


def test_a_plan_file_that_is_missing_is_named(house: CliHouse, tmp_path: Path) -> None:
    done = house.commit(tmp_path / "none.json")

    refused(done, 2, "none.json: cannot be read: No such file or directory (check the path)")


def test_a_contract_file_that_is_missing_is_named(house: CliHouse, tmp_path: Path) -> None:
    plan = write(tmp_path, document("k", "TC-1"))
    done = house.commit(plan, contract=tmp_path / "none.yaml")

    refused(done, 2, "none.yaml: cannot be read: No such file or directory (check the path)")


@pytest.mark.parametrize("wait", ["inf", "nan", "soon"])
def test_a_wait_that_is_no_time_is_a_usage_error(tmp_path: Path, wait: str) -> None:
    plan = write(tmp_path, document("k", "TC-1"))

    refused(run("commit", str(plan), "--contract", str(KEYED), "--wait", wait), 2, "--wait")


def every_command(folder: Path) -> dict[str, tuple[str, ...]]:
    """One valid call of each command that talks to a broker."""
    plan = write(folder, document("k", "TC-1"))
    return {
        "commit": ("commit", str(plan), "--contract", str(KEYED)),
        "inspect": ("inspect", "commit", "k"),
        "receipts": ("receipts", "tail"),
        "resolve": ("resolve", "0123456789", "--absent", "--evidence", "seen"),
        "worker": ("worker", "--state-dir", str(folder / "state")),
        "dispatch": ("dispatch", "--contract", str(KEYED)),
        "read": ("read", "--contract", str(KEYED)),
    }


WORKING = ("commit", "inspect", "receipts", "resolve", "worker", "dispatch", "read")
TARGET = {"CASES_URL": f"http://{NOBODY}"}


@pytest.fixture(scope="module")
def without_broker(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """Each command sent to an address where nobody listens."""
    commands = every_command(tmp_path_factory.mktemp("away")) | {"topics": ("topics", "create")}
    return run_all(
        {name: (*words, "--bootstrap", NOBODY) for name, words in commands.items()}, TARGET
    )


@pytest.mark.parametrize("name", [*WORKING, "topics"])
def test_a_broker_that_is_away_is_said(without_broker: dict[str, Done], name: str) -> None:
    said = ("broker_unavailable", NOBODY, "start one with `tallystick broker up`")

    refused(without_broker[name], 1, *said)


@pytest.fixture(scope="module")
def without_topics(
    broker: BrokerHandle, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Done]:
    """Each command under a prefix that has no topics."""
    commands = every_command(tmp_path_factory.mktemp("topics"))
    place = ("--bootstrap", broker.bootstrap, "--prefix", "nobody.")
    return run_all({name: (*words, *place) for name, words in commands.items()}, TARGET)


@pytest.mark.parametrize("name", WORKING)
def test_topics_that_are_missing_are_named(without_topics: dict[str, Done], name: str) -> None:
    said = ("topic_mismatch", "topic nobody.", "run `tallystick topics create`, or correct --pref")

    refused(without_topics[name], 1, *said)


@pytest.fixture(scope="module")
def malformed_prefix(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """Each command with a prefix that Kafka might take and the catalogue does not."""
    commands = every_command(tmp_path_factory.mktemp("prefix")) | {"topics": ("topics", "diff")}
    return run_all({name: (*words, "--prefix", "Acme") for name, words in commands.items()})


@pytest.mark.parametrize("name", [*WORKING, "topics"])
def test_a_malformed_prefix_is_refused(malformed_prefix: dict[str, Done], name: str) -> None:
    refused(malformed_prefix[name], 2, "topic prefix 'Acme'", "use something like 'tally.'")


def test_a_target_that_is_away_ends_partial_without_doubt(
    house: CliHouse, away: Path, tmp_path: Path
) -> None:
    plan = write(tmp_path, document("away", "TC-1"))
    done = house.commit(plan, "--within", "3", "--json", contract=away)

    assert done.code == 3, done
    assert done.json["kind"] == "PartialSuccess"
    assert [(i["status"], i["code"]) for i in done.json["items"]] == [
        ("missing", "connection_refused")
    ]


def test_wrong_credentials_end_partial_and_leave_no_effect(
    house: CliHouse, locked: Path, tmp_path: Path
) -> None:
    plan = write(tmp_path, document("locked", "TC-1"))
    house.target.set(token="right")
    try:
        done = house.commit(plan, "--within", "4", "--json", contract=locked)
    finally:
        house.target.set(token=None)

    assert done.code == 3, done
    assert [(i["status"], i["code"]) for i in done.json["items"]] == [("rejected", "http_401")]
    assert house.target.copies("locked") == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("0123456789", "--absent"), "--evidence is missing or empty"),
        (("0123456789", "--absent", "--evidence", " "), "--evidence is missing or empty"),
        (("0123456789", "--evidence", "seen"), "the verdict is missing or doubled"),
        (("0123456789", "--absent", "--applied", "--evidence", "seen"), "missing or doubled"),
        (("0123", "--absent", "--evidence", "seen"), "'0123' is too short"),
        (("0123456789", "--absent", "--evidence", "seen"), "no intent begins with this id"),
    ],
    ids=["no evidence", "blank evidence", "no verdict", "both", "short", "unknown intent"],
)
def test_resolve_asks_for_all_that_it_needs(
    house: CliHouse, words: tuple[str, ...], said: str
) -> None:
    refused(house.run("resolve", *words), 2, said, "give" if "seen" in words else "say")


def test_inspecting_an_unknown_key_is_said(house: CliHouse) -> None:
    done = house.run("inspect", "commit", "never")

    refused(done, 2, "commit never", "no plan was ever asked for", "check the key and --prefix")


def test_a_worker_names_the_stages_that_there_are() -> None:
    refused(run("worker", "--stage", "magic"), 2, "--stage", "no stage 'magic'", "use one of: comm")


def test_dispatch_names_the_secret_that_is_unset(house: CliHouse, locked: Path) -> None:
    done = house.run("dispatch", "--contract", str(locked), env={"CASES_URL": house.target.url})

    assert done.code in (1, 2)
    assert "CASES_TOKEN" in done.line
    assert "locked" in done.line


def test_an_argument_that_is_not_text_is_refused() -> None:
    refused(run("inspect", "commit", "\udcff"), 2, "argument 3", "is not UTF-8")


def test_settings_of_the_environment_are_checked_too() -> None:
    done = run("topics", "diff", env={"TALLYSTICK_KAFKA": "{"})

    refused(done, 2, "environment TALLYSTICK_*", "kafka", "TALLYSTICK_KAFKA is a JSON object")
