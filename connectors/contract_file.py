"""Read contract files, YAML or JSON; what a contract means is known by `tallystick.contracts`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tallystick.contracts import Contract, parse_contract
from tallystick.errors import ContractError

CONTRACT_BYTES_MAX = 1_000_000
"""Largest contract file. Lower: a system of many tools is refused. Higher: a wrong path (a
database, a log) is read whole before anyone notices."""


def load_contract(path: Path | str) -> Contract:
    """The contract in a file; raises ContractError naming the file, the place and what to do."""
    file = Path(path)
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise ContractError(
            f"cannot be read: {error.strerror}", where=str(file), fix="check the path"
        ) from error
    return read_contract(raw, source=str(file))


def read_contract(raw: bytes | str, *, source: str = "contract") -> Contract:
    """The contract in `raw`, one YAML document (JSON is YAML); raises ContractError."""
    if len(raw) > CONTRACT_BYTES_MAX:
        raise ContractError(
            f"has more than {CONTRACT_BYTES_MAX} bytes", where=source, fix="is it a contract?"
        )
    try:
        # _Loader is SafeLoader with duplicate keys refused.
        document = yaml.load(raw, Loader=_Loader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ContractError(
            f"not valid YAML: {error.problem}", where=source + place, fix="correct that line"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ContractError(
            f"not valid YAML: {reason}", where=source, fix="save it as UTF-8 text"
        ) from None
    return parse_contract(document, source=source)


class _Loader(yaml.SafeLoader):
    """Plain values only. A repeated key would silently drop the first, and an alias could grow
    a small file without bound, so both are refused."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call] # PyYAML's stub lacks it
            raise yaml.constructor.ConstructorError(
                None, None, f"alias *{event.anchor} is not allowed", event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, (str, int, float, bool, type(None))):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key is not plain text", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)
