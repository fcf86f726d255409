"""What a valid contract leaves open is said, in the library and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from connectors.contract_file import load_contract
from ops.cli.contracts import app
from tallystick.contract_advice import advise

SAMPLES = Path(__file__).resolve().parents[2] / "ops" / "demo" / "contracts"
ADVICE = {
    "cases-keyed": ["$.tools.delete_case"],
    "cases-natural": [],
    "cases-lagging": [],
    "cases-unkeyed": [],
    "cases-unbounded": ["$.tools.create_case.in_flight_ms"],
    "cases-unreadable": ["$.tools.create_case.key"],
}


@pytest.mark.parametrize(("name", "places"), ADVICE.items())
def test_every_gap_of_a_contract_is_named(name: str, places: list[str]) -> None:
    assert [each.path for each in advise(load_contract(SAMPLES / f"{name}.yaml"))] == places


def test_an_unkeyed_tool_that_is_read_one_by_one_hides_its_duplicates(tmp_path: Path) -> None:
    text = (SAMPLES / "cases-natural.yaml").read_text().replace("natural}", "none}")
    (tmp_path / "c.yaml").write_text(text)

    (advice,) = advise(load_contract(tmp_path / "c.yaml"))

    assert str(advice).startswith("$.tools.put_case.readback.by: a read of one object cannot")


def test_check_prints_the_hash_that_plans_freeze() -> None:
    path = SAMPLES / "cases-unbounded.yaml"

    result = CliRunner().invoke(app, ["check", str(path), "--json"])

    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["hash"]) == (0, load_contract(path).hash)
    assert len(answer["advice"]) == 1
    assert set(answer["policies"]) == {"create_case"}


def test_check_says_in_one_line_what_is_wrong_and_ends_with_usage(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("name: x\n")

    result = CliRunner().invoke(app, ["check", str(path)])

    assert result.exit_code == 2
    assert f"{path}: $.tools: no tools" in result.stderr


def test_schema_prints_json() -> None:
    result = CliRunner().invoke(app, ["schema"])

    assert result.exit_code == 0
    assert "ContractDocument" in json.loads(result.stdout)["$defs"]
