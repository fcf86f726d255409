"""Which room may import what: the arrows of the house, as a function over one source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from tests.support.tidy import room

ROOMS = ("ops", "connectors", "streams", "processors", "tallystick")
"""Each may import itself and those to its right."""

CLIENT_LIBRARIES = frozenset({"confluent_kafka", "fastavro", "msgspec", "rfc8785"})
"""All that an agent process has to install."""

FOLD_LIBRARIES = frozenset({"msgspec"})
"""Frozen records and their copies; it touches nothing outside the process."""

FOLD_STDLIB = frozenset(
    {
        "__future__",
        "abc",
        "bisect",
        "collections",
        "dataclasses",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "hashlib",
        "heapq",
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "string",
        "struct",
        "types",
        "typing",
    }
)
"""What cannot tell the time, roll dice, or see the machine. Everything else is refused."""


GUARDED = frozenset({("ops/cli/sim.py", "tests.simulation.explore")})
"""Imports that would be refused, of what their place looks for first and can do without: a
development command says in one line that it needs a checkout."""


def complaints(path: str, source: str) -> list[str]:
    """Imports of this file that its room may not have, each with the reason."""
    here = room(path)
    if here not in ROOMS:
        return []
    return [
        f"{path}:{line}: {here} imports {module}; {reason}"
        for line, module in imports(path, source)
        if (path, module) not in GUARDED and (reason := _refusal(here, module))
    ]


def imports(path: str, source: str) -> Iterator[tuple[int, str]]:
    """Line and full name of every imported module, also inside functions and TYPE_CHECKING."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, _absolute(path, node)
        elif isinstance(node, ast.Call) and node.args:
            name = node.args[0]
            if _is_import_call(node.func) and isinstance(name, ast.Constant):
                yield node.lineno, str(name.value)


def _absolute(path: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = path.split("/")[: -node.level]
    return ".".join([*package, *filter(None, [node.module])])


def _is_import_call(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in {"__import__", "import_module"}
    return isinstance(function, ast.Attribute) and function.attr == "import_module"


def _refusal(here: str, module: str) -> str:
    top = module.split(".")[0]
    if top in ROOMS:
        if ROOMS.index(top) < ROOMS.index(here):
            return "arrows run ops > connectors > streams > processors > tallystick"
        return ""
    if top in ("tests", "schemas"):
        return f"`{top}` is not there where the package is installed"
    if here == "tallystick" and top not in CLIENT_LIBRARIES | sys.stdlib_module_names:
        return f"the client needs only {', '.join(sorted(CLIENT_LIBRARIES))}"
    if here == "processors" and top not in FOLD_LIBRARIES | FOLD_STDLIB:
        return "a fold has no clock, randomness, environment, files or Kafka"
    return ""
