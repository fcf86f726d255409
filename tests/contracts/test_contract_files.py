"""Files that are no contract at all, each refused in one line that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.contract_file import CONTRACT_BYTES_MAX, load_contract
from tallystick.errors import ContractError

FILES = [
    (b"name: a\nname: b\n", "line 2, column 1: not valid YAML: key 'name' stands twice"),
    (b"tools: {a: {x: 1, x: 2}}\n", "key 'x' stands twice"),
    (b"a: &x [1]\nb: *x\n", "alias *x is not allowed"),
    (b"a: [1\n", "not valid YAML"),
    (b"a: !!python/object:os.system x\n", "not valid YAML"),
    (b"? [1, 2]\n: x\n", "a key is not plain text"),
    (b"\xff\xfe\x00", "not valid YAML"),
    (b"a: \x07", "not valid YAML"),
    (b"", "a contract is a map of fields"),
    (b"- 1\n", "a contract is a map of fields"),
    (b"name: a\n---\nname: b\n", "not valid YAML"),
    (b"a: 2024-13-45\n", "not valid YAML"),
    (b"x" * (CONTRACT_BYTES_MAX + 1), "has more than"),
    (b"[" * 5_000, "not valid YAML"),
]


@pytest.mark.parametrize(("raw", "words"), FILES)
def test_a_broken_file_is_named_in_one_line(raw: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(raw)

    with pytest.raises(ContractError) as caught:
        load_contract(path)

    line = str(caught.value)
    assert line.startswith(str(path))
    assert words in line
    assert "\n" not in line


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"c\.yaml: cannot be read: No such file"):
        load_contract(tmp_path / "c.yaml")
