"""A contract's hash and policies: stable over spelling, moved by every word that has a meaning."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from connectors.contract_file import load_contract, read_contract
from tallystick.contracts import contract_schema, parse_contract
from tallystick.keys import policy_hash
from tallystick.records import KeyStyle, ReadbackKind, ToolPolicy
from tests.contracts.samples import CONTRACT, REMOVED, broken

SAMPLES = Path(__file__).resolve().parents[2] / "ops" / "demo" / "contracts"
VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


@pytest.mark.parametrize("name", sorted(VECTORS))
def test_a_released_contract_keeps_its_hash(name: str) -> None:
    """A moved hash would orphan every plan that is frozen under the old one."""
    assert parse_contract(VECTORS[name]["document"]).hash == VECTORS[name]["hash"]


def test_defaults_and_their_absence_are_one_contract() -> None:
    spelled = broken("concurrency_max", 16)
    spelled["tools"]["remove"]["attempts_max"] = 8
    spelled["scope"] = None

    assert parse_contract(spelled).ref == parse_contract(CONTRACT).ref


def test_a_plain_field_name_is_short_for_two_pointers() -> None:
    pairs = [
        {"planned": "/title", "found": "/title"},
        {"planned": "/steps", "found": "/body/steps"},
    ]

    spelled = parse_contract(broken("tools.create.readback.compare", pairs))

    assert spelled.hash == parse_contract(CONTRACT).hash


def test_the_order_of_fields_is_no_part_of_the_hash() -> None:
    turned = dict(reversed(copy.deepcopy(CONTRACT).items()))

    assert parse_contract(turned).hash == parse_contract(CONTRACT).hash


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("version", "2"),
        ("base_url", "${OTHER_URL}"),
        ("auth.env", "OTHER_TOKEN"),
        ("tools.create.write.path", "/n/{module}/cases"),
        ("tools.create.key.name", "X-Key"),
        ("tools.create.readback.compare", ["title"]),
        ("tools.create.in_flight_ms", None),
        ("tools.create.errors", {}),
        ("tools.remove.attempts_max", 9),
    ],
)
def test_every_change_of_meaning_moves_the_hash(place: str, value: Any) -> None:
    assert parse_contract(broken(place, value)).hash != parse_contract(CONTRACT).hash


def test_a_policy_is_what_the_ledger_decides_by() -> None:
    policy = parse_contract(CONTRACT).policy("create")

    assert policy == ToolPolicy(
        tool="create",
        scope="cases",
        key_style=KeyStyle.HEADER,
        readback=ReadbackKind.LAGGING,
        acknowledgement=True,
        read_first=True,
        visibility_lag_ms=500,
        in_flight_ms=2_000,
        call_timeout_ms=1_000,
        attempts_max=4,
        backoff_ms=50,
        backoff_ms_max=400,
        compensation="remove",
    )
    assert policy_hash(policy) != policy_hash(msgspec.structs.replace(policy, attempts_max=5))


@pytest.mark.parametrize(
    ("own", "common", "scope"),
    [("crm", "all", "crm"), (REMOVED, "all", "all"), (REMOVED, REMOVED, "cases")],
)
def test_the_scope_is_the_tools_own_then_the_contracts_then_its_name(
    own: Any, common: Any, scope: str
) -> None:
    document = copy.deepcopy(CONTRACT)
    if own is not REMOVED:
        document["tools"]["create"]["scope"] = own
    if common is not REMOVED:
        document["scope"] = common

    assert parse_contract(document).policy("create").scope == scope


def test_the_schema_of_the_format_is_json_and_names_every_part() -> None:
    schema = json.loads(json.dumps(contract_schema()))

    assert {"Tool", "Write", "Key", "ReadbackRule", "Auth"} <= set(schema["$defs"])


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_sample_contract_is_valid_and_has_a_name_of_its_own(path: Path) -> None:
    contract = load_contract(path)

    names = [load_contract(other).name for other in SAMPLES.glob("*.yaml")]
    assert names.count(contract.name) == 1
    assert contract.policies()


def test_json_is_read_as_well_as_yaml() -> None:
    assert read_contract(json.dumps(CONTRACT)).hash == parse_contract(CONTRACT).hash


def test_a_bare_status_number_in_yaml_means_the_status() -> None:
    text = json.dumps(broken("tools.create.errors", {})).replace(
        '"errors": {}', "errors: {409: exists}"
    )

    assert read_contract(text).hash == parse_contract(CONTRACT).hash
