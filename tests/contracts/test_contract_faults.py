"""Every way to write a contract wrongly: one line that says where, what, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from tallystick.contracts import parse_contract
from tallystick.errors import ContractError, ExitCode
from tests.contracts.samples import CONTRACT, REMOVED, broken

T = "tools.create"
FAULTS: list[tuple[str, Any, str, str]] = [
    # place, value, JSON path in the message, words in the message
    ("nam", "x", "$:", "unknown field 'nam' (did you mean 'name'?)"),
    ("name", "", "$.name:", "length >= 1"),
    ("name", REMOVED, "$:", "lacks the required field 'name'"),
    ("version", 1.0, "$.version:", "expected 'str', got 'float' (put the value in quotes)"),
    ("format", 2, "$.format:", "invalid enum value 2"),
    ("base_url", "ftp://x", "$.base_url:", "no http address"),
    ("base_url", "https://${1x}/", "$.base_url:", "'1x' is no variable name"),
    ("base_url", "https://u:p@host", "$.base_url:", "credentials stand in the address"),
    ("auth.kind", "magic", "$.auth.kind:", "use none, bearer, header, basic"),
    ("auth.kind", "basic", "$.auth.env:", "kind basic has no use for it"),
    ("auth.env", REMOVED, "$.auth:", "kind bearer needs 'env'"),
    ("auth.env", "sk-live-123", "$.auth.env:", "is not the name of an environment variable"),
    ("concurrency_max", 0, "$.concurrency_max:", ">= 1"),
    ("tools", {}, "$.tools:", "no tools"),
    ("tools", [], "$.tools:", "no tools"),
    (f"{T}.write", REMOVED, "$.tools.create:", "lacks the required field 'write'"),
    (f"{T}.write.metod", "PUT", "$.tools.create.write:", "did you mean 'method'?"),
    (f"{T}.write.method", "GET", "$.tools.create.write.method:", "use POST, PUT, PATCH, DELETE"),
    (f"{T}.write.path", "cases", "$.tools.create.write.path:", "no path under base_url"),
    (f"{T}.write.path", "//evil/x", "$.tools.create.write.path:", "no path under base_url"),
    (f"{T}.write.path", "/a b", "$.tools.create.write.path:", "percent-encode"),
    (f"{T}.write.path", "/{modul}", "$.tools.create.write.path:", "placeholder {modul} (use {id"),
    (f"{T}.write.path", "/{payload}", "$.tools.create.write.path:", "placeholder {payload}"),
    (f"{T}.write.path", "/{x", "$.tools.create.write.path:", "lone '{'"),
    (f"{T}.write.path", "/{}", "$.tools.create.write.path:", "empty placeholder"),
    (f"{T}.write.path", "/{/a~2}", "$.tools.create.write.path:", "'~'"),
    (f"{T}.write.body", {"a": ["{what}"]}, "$.tools.create.write.body.a[0]:", "{what}"),
    (f"{T}.write.body", {"a": float("nan")}, "$.tools.create.write.body.a:", "nan"),
    (f"{T}.write.body", {"a": {1: 2}}, "$.tools.create.write.body.a:", "1 is no text"),
    (f"{T}.write.headers", {"Bad Name": "x"}, "$.tools.create.write.headers:", "no header name"),
    (f"{T}.write.headers", {"authorization": "x"}, ".headers.authorization:", "is set by"),
    (f"{T}.write.headers", {"idempotency-key": "x"}, ".headers.idempotency-key:", "is set by"),
    (f"{T}.key.style", "cookie", "$.tools.create.key.style:", "use none, header, field, natural"),
    (f"{T}.key.name", REMOVED, "$.tools.create.key:", "style header needs a 'name'"),
    (f"{T}.key.name", "Content-Type", "$.tools.create.key.name:", "its own meaning"),
    (f"{T}.key", {"style": "none", "name": "K"}, "$.tools.create.key.name:", "sends no key"),
    (f"{T}.key", {"style": "natural"}, "$.tools.create.key.style:", "needs PUT or DELETE"),
    ("tools.remove.write.path", "/m/{module}", "$.tools.remove.key.style:", "{identity} in the pa"),
    ("tools.remove.write.body", {"a": 1}, "$.tools.remove.write.body:", "DELETE sends no body"),
    ("tools.remove.key", {"style": "field", "name": "k"}, "$.tools.remove.key.style:", "no body"),
    (f"{T}.response.ref", "id", "$.tools.create.response.ref:", "must start with '/'"),
    (f"{T}.response.ref", REMOVED, "$.tools.create.response:", "only with the target's own id"),
    (f"{T}.readback.kind", "eventual", "$.tools.create.readback.kind:", "none, lagging, strong"),
    (f"{T}.readback.kind", "none", "$.tools.create.readback:", "no use for other fields"),
    (f"{T}.readback.kind", "strong", "readback.visibility_lag_ms:", "a strong read has no lag"),
    (f"{T}.readback.visibility_lag_ms", 0, "readback.visibility_lag_ms:", "needs a lag above 0"),
    (f"{T}.readback.visibility_lag_ms", -1, "readback.visibility_lag_ms:", ">= 0"),
    (f"{T}.readback.by", "magic", "$.tools.create.readback.by:", "use identity, list"),
    (f"{T}.readback.by", "identity", "readback.path:", "does not name the item"),
    (f"{T}.readback.path", REMOVED, "$.tools.create.readback:", "needs a 'path'"),
    (f"{T}.readback.path", "/c/{identity}", "readback.path:", "unknown placeholder {identity}"),
    (f"{T}.readback.path", "/c/{/title}", "readback.path:", "reads a payload"),
    (f"{T}.readback.identity", REMOVED, "$.tools.create.readback:", "a listing needs 'identity'"),
    (f"{T}.readback.compare", [], "readback.compare:", "is empty, so nothing would be verified"),
    (f"{T}.readback.compare", ["a", "a"], "readback.compare:", "names a planned field twice"),
    (f"{T}.readback.compare", [""], "readback.compare[0]:", "names no field"),
    (f"{T}.readback.compare", [7], "readback.compare[0]:", "got 'int'"),
    (f"{T}.readback.compare", [{"planned": "/a"}], "readback.compare[0]:", "'found'"),
    (f"{T}.readback.compare", [{"planned": "a", "found": "/a"}], "compare[0].planned:", "'/'"),
    (f"{T}.readback.pages_max", 0, "readback.pages_max:", ">= 1"),
    (f"{T}.call_timeout_ms", "1s", "$.tools.create.call_timeout_ms:", "got 'str'"),
    (f"{T}.call_timeout_ms", 0, "$.tools.create.call_timeout_ms:", ">= 1"),
    (f"{T}.attempts_max", True, "$.tools.create.attempts_max:", "got 'bool'"),
    (f"{T}.backoff_ms", 500, "$.tools.create.backoff_ms:", "is above backoff_ms_max"),
    (f"{T}.errors", {409: "exist"}, "$.tools.create.errors.409:", "'exist' is no outcome"),
    (f"{T}.errors", {"teapot": "exists"}, "$.tools.create.errors.teapot:", "no status"),
    (f"{T}.errors", {"100": "exists"}, "$.tools.create.errors.100:", "no status"),
    (f"{T}.compensation", "undo", "$.tools.create.compensation:", "this contract lacks"),
    ("tools.remove.read_first", True, "$.tools.remove.read_first:", "nothing can be read"),
]


@pytest.mark.parametrize(("place", "value", "path", "words"), FAULTS)
def test_a_fault_is_named_with_its_place_and_a_way_out(
    place: str, value: Any, path: str, words: str
) -> None:
    with pytest.raises(ContractError) as caught:
        parse_contract(broken(place, value), source="cases.yaml")

    line = str(caught.value)
    assert line.startswith("cases.yaml: $")
    assert path in line
    assert words in line
    assert caught.value.fix
    assert "\n" not in line
    assert caught.value.exit_code is ExitCode.USAGE


def test_the_sample_that_every_row_breaks_is_valid() -> None:
    assert parse_contract(CONTRACT).name == "cases"


@pytest.mark.parametrize("document", [None, [], "text", 7])
def test_something_that_is_no_map_is_refused(document: Any) -> None:
    with pytest.raises(ContractError, match="a contract is a map of fields"):
        parse_contract(document)


def test_a_compensation_in_words_needs_no_tool() -> None:
    document = broken("tools.create.compensation", "ask the owner to remove the case")

    policy = parse_contract(document).policy("create")

    assert policy.compensation == "ask the owner to remove the case"


def test_a_tool_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ContractError, match=r"no tool 'crate' \(use one of: create, remove\)"):
        parse_contract(CONTRACT).policy("crate")
