"""The page for tool owners says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from connectors.contract_file import read_contract
from connectors.targets.classify import STATUS_VERDICTS, WireFault, classify_fault, classify_status
from tallystick.contract_model import ContractDocument, ReadbackRule, Tool
from tallystick.records import KeyStyle

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "contracts.md").read_text()
STATUS_ROWS = re.findall(r"^\| (\d{3}(?:, \d{3})*) \| (\w+) \|", PAGE, re.MULTILINE)
FAULT_ROWS = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| (\w+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("statuses", "outcome"), STATUS_ROWS)
def test_a_documented_status_means_what_is_written(statuses: str, outcome: str) -> None:
    for status in statuses.split(", "):
        assert classify_status(int(status), KeyStyle.NONE, {}).outcome.value == outcome


def test_every_special_status_and_every_wire_fault_is_documented() -> None:
    written = {int(status) for row, _ in STATUS_ROWS for status in row.split(", ")}
    faults = {fault: outcome for row, outcome in FAULT_ROWS for fault in re.findall("[a-z_]+", row)}

    assert set(STATUS_VERDICTS) <= written
    assert faults == {fault.value: classify_fault(fault).outcome.value for fault in WireFault}


@pytest.mark.parametrize("part", [ContractDocument, Tool, ReadbackRule])
def test_every_field_is_documented(part: type[msgspec.Struct]) -> None:
    table_names = set(re.findall(r"`([a-z_]+)`", PAGE))

    assert {field.name for field in msgspec.structs.fields(part)} <= table_names


def test_the_example_is_a_valid_contract() -> None:
    example = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

    assert example is not None
    assert set(read_contract(example.group(1)).tools) == {"create_case", "delete_case"}
