"""The rules of STYLE.md as functions: a path and a source in, complaints out.

They know nothing of the file system, so that each can be shown to fail on a made-up source.
A complaint names the place, what is wrong and what to write instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath

Rule = Callable[[str, str], list[str]]

COLUMNS = 100
FUNCTION_LINES = 60
FILE_LINES = 400
DOCSTRING_LINES = 10

OUR_ROOMS = ("tallystick", "processors", "streams", "connectors", "ops")

# What a fold must not touch, and where the value comes from instead.
FOLD_BANS = {
    "time": "take `at_ms`, the log's own time",
    "datetime": "take `at_ms`, the log's own time",
    "random": "derive it from the record with SHA-256",
    "secrets": "derive it from the record with SHA-256",
    "uuid": "derive ids from the record with SHA-256",
    "os": "take it as an argument",
    "sys": "take it as an argument",
    "pathlib": "take the content as an argument",
    "io": "take the content as an argument",
    "open": "take the content as an argument",
    "logging": "emit a record",
    "print": "emit a record",
    "input": "take it as an argument",
}


def room(path: str) -> str:
    """The first folder of a path; empty for a file in the root."""
    parts = PurePosixPath(path).parts
    return parts[0] if len(parts) > 1 else ""


def narrow_lines(path: str, source: str) -> list[str]:
    """No line is wider than 100 columns."""
    return [
        f"{path}:{number}: {len(line)} columns; break the line at {COLUMNS}"
        for number, line in enumerate(source.splitlines(), 1)
        if len(line) > COLUMNS
    ]


def short_functions(path: str, source: str) -> list[str]:
    """No function is longer than 60 lines, its decorators not counted."""
    return [
        f"{path}:{name}: {lines} lines; split it, {FUNCTION_LINES} is the limit"
        for name, lines in function_lengths(source)
        if lines > FUNCTION_LINES
    ]


def function_lengths(source: str) -> list[tuple[str, int]]:
    """Each function's name and length in lines."""
    return [
        (node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def short_files(path: str, source: str) -> list[str]:
    """No file is longer than 400 lines."""
    lines = len(source.splitlines())
    if lines <= FILE_LINES:
        return []
    return [f"{path}: {lines} lines; a file has one idea, {FILE_LINES} is the limit"]


def pure_folds(path: str, source: str) -> list[str]:
    """Processors call no clock, randomness, environment, file or output."""
    if room(path) != "processors":
        return []
    found: dict[tuple[int, str], str] = {}
    for line, name in _calls_and_reads(source):
        place = line, name.split(".")[0]  # `os.environ` is seen as `os`, too: keep the longer
        found[place] = max(found.get(place, ""), name, key=len)
    return [
        f"{path}:{line}: `{name}` in a fold; {FOLD_BANS[head]}"
        for (line, head), name in found.items()
        if head in FOLD_BANS
    ]


def _calls_and_reads(source: str) -> Iterator[tuple[int, str]]:
    """Dotted names that are read or called, with what they were imported as undone."""
    tree = ast.parse(source)
    imported = dict(_imported_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            name = _dotted(node)
            head, _, rest = name.partition(".")
            full = imported.get(head, head)
            if head in imported or (isinstance(node, ast.Name) and _is_builtin(head)):
                yield node.lineno, f"{full}.{rest}" if rest else full


def _imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0], alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _is_builtin(name: str) -> bool:
    return name in {"open", "print", "input"}


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def no_bare_assert(path: str, source: str) -> list[str]:
    """Product code states its invariants so that they hold under `python -O`."""
    if room(path) not in OUR_ROOMS:
        return []
    return [
        f"{path}:{node.lineno}: bare assert; call invariant(held, rule) of tallystick.errors"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assert)
    ]


def no_print(path: str, source: str) -> list[str]:
    """Only the command line prints."""
    if room(path) not in OUR_ROOMS or room(path) == "ops":
        return []
    return [
        f"{path}:{node.lineno}: print outside ops; return a value or raise an error"
        for node in _calls(source)
        if isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def no_consumer_commit(path: str, source: str) -> list[str]:
    """Offsets go into the transaction (engine rule 1)."""
    if room(path) not in OUR_ROOMS or room(path) == "connectors":
        return []
    return [
        f"{path}:{node.lineno}: consumer.commit; send the offsets in the transaction (rule 1)"
        for node in _calls(source)
        if isinstance(node.func, ast.Attribute)
        and node.func.attr == "commit"
        and "consumer" in _dotted(node.func.value).lower()
    ]


def _calls(source: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))


def no_silent_except(path: str, source: str) -> list[str]:
    """A broad `except` does something about the error."""
    return [
        f"{path}:{node.lineno}: error swallowed; name the exception, or let it go up"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ExceptHandler) and _is_broad(node) and _is_empty(node.body)
    ]


def _is_broad(node: ast.ExceptHandler) -> bool:
    return node.type is None or _dotted(node.type) in {"Exception", "BaseException"}


def _is_empty(body: list[ast.stmt]) -> bool:
    return all(
        isinstance(each, ast.Pass)
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in body
    )


def reasoned_ignores(path: str, source: str) -> list[str]:
    """An exception from a check names the check and its reason on the same line."""
    good = re.compile(r"#\s*type:\s*ignore\[[a-z-, ]+\]\s+#\s*\S+")
    return [
        f"{path}:{number}: write `# type: ignore[code]  # reason`"
        for number, line in enumerate(source.splitlines(), 1)
        if re.search(r"#\s*type:\s*ignore", line) and not good.search(line)
    ]


def module_docstring(path: str, source: str) -> list[str]:
    """Each module says in at most ten lines what it is for; an empty `__init__.py` need not."""
    if path.endswith("__init__.py") and not source.strip():
        return []
    text = ast.get_docstring(ast.parse(source))
    if text is None:
        return [f"{path}: no module docstring; say what it is for and what it must not know"]
    lines = len(text.splitlines())
    if lines > DOCSTRING_LINES:
        return [f"{path}: module docstring of {lines} lines; {DOCSTRING_LINES} is the limit"]
    return []


# Written in two halves so that this file does not complain about itself.
_LEFTOVERS = re.compile(r"\b(?:" + "TO" + "DO|FIX" + "ME|XX" + r"X)\b")
_MACHINE = re.compile(
    r"(?<![\w.])/(?:ro" + r"ot|wo" + r"rk|home/\w+|Us" + r"ers/\w+|tmp/l" + r"ab)(?=/|\b)"
)
_HOSTS = re.compile(
    r"(?:py" + r"pi\.org|pythonho" + r"sted\.org|repo1?\.maven|maven\.org|registry\.np"
    r"mjs|proxy\.gol" + r"ang|crat" + r"es\.io|ghc" + r"r\.io|qu" + r"ay\.io"
    r"|registry-1\.docker|index\.docker|deb\.deb" + r"ian\.org)"
)


def no_leftovers(path: str, source: str) -> list[str]:
    """What is not done is in an issue, not in a comment."""
    return _matches(path, source, _LEFTOVERS, "file an issue instead of leaving")


def no_machine_paths(path: str, source: str) -> list[str]:
    """Nothing names a folder of one machine."""
    return _matches(path, source, _MACHINE, "take the path from a setting, not")


def no_registry_hosts(path: str, source: str) -> list[str]:
    """Which index packages come from is the machine's setting."""
    return _matches(path, source, _HOSTS, "leave the address to the machine's settings, not")


def _matches(path: str, source: str, pattern: re.Pattern[str], advice: str) -> list[str]:
    return [
        f"{path}:{number}: {advice} `{found[0]}`"
        for number, line in enumerate(source.splitlines(), 1)
        if (found := pattern.search(line))
    ]


def one_first_heading(path: str, source: str) -> list[str]:
    """A Markdown file has one first-level heading; code blocks do not count."""
    prose = re.sub(r"^(```|~~~).*?^\1", "", source, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^# ", prose, flags=re.MULTILINE)
    if len(headings) == 1:
        return []
    return [f"{path}: {len(headings)} first-level headings; a document has one"]


def dead_modules(sources: dict[str, str], entry_points: Iterable[str]) -> list[str]:
    """Product modules that no product module imports and nobody can start."""
    used = set(entry_points)
    for path, source in sources.items():
        if room(path) in OUR_ROOMS:
            used |= _uses(path, source)
    return [
        f"{path}: nothing imports it; delete it, or import it where it is needed"
        for path, source in sources.items()
        if room(path) in OUR_ROOMS
        and not path.endswith(("__init__.py", "__main__.py"))
        and module_name(path) not in used
        and '__name__ == "__main__"' not in source
    ]


def module_name(path: str) -> str:
    """The dotted name of a module's path."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _uses(path: str, source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found - {module_name(path)}
