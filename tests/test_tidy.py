"""STYLE.md held by a test: every rule over every tracked file, and every rule shown to fail."""

from __future__ import annotations

import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.support import tidy
from tests.support.tidy import Rule

ROOT = Path(__file__).parents[1]

RATCHET: dict[str, int] = {}
"""`path` or `path:function` with its present length, for what is over a limit. Only shrinks."""

PYTHON_RULES: list[Rule] = [
    tidy.narrow_lines,
    tidy.short_functions,
    tidy.short_files,
    tidy.pure_folds,
    tidy.no_bare_assert,
    tidy.no_print,
    tidy.no_consumer_commit,
    tidy.no_silent_except,
    tidy.reasoned_ignores,
    tidy.module_docstring,
]
TEXT_RULES: list[Rule] = [
    tidy.no_leftovers,
    tidy.no_machine_paths,
    tidy.no_registry_hosts,
]

GENERATED = ("requirements.lock", "LICENSE")
"""Written by others: our rules on words and width are not theirs."""


@cache
def files() -> dict[str, str]:
    """Every text file that git tracks or would track, by its path; deleted ones left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    found: dict[str, str] = {}
    for path in filter(None, listed.split("\0")):
        try:
            found[path] = (ROOT / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # recorded bytes, or removed since
    return found


def python_files() -> dict[str, str]:
    """The Python files among them."""
    return {path: text for path, text in files().items() if path.endswith(".py")}


@pytest.mark.parametrize("rule", PYTHON_RULES, ids=lambda rule: rule.__name__)
def test_python_files_keep_the_rule(rule: Rule) -> None:
    complaints = [
        complaint
        for path, source in python_files().items()
        for complaint in rule(path, source)
        if not allowed(complaint)
    ]

    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("rule", TEXT_RULES, ids=lambda rule: rule.__name__)
def test_all_files_keep_the_rule(rule: Rule) -> None:
    complaints = [
        complaint
        for path, source in files().items()
        if path not in GENERATED
        for complaint in rule(path, source)
    ]

    assert not complaints, "\n".join(complaints)


def test_the_lock_file_names_no_address() -> None:
    lock = files()["requirements.lock"]

    assert "://" not in lock
    assert "--index-url" not in lock
    assert "--find-links" not in lock
    assert tidy.no_registry_hosts("requirements.lock", lock) == []


def test_markdown_files_have_one_first_heading() -> None:
    complaints = [
        complaint
        for path, source in files().items()
        if path.endswith(".md")
        for complaint in tidy.one_first_heading(path, source)
    ]

    assert not complaints, "\n".join(complaints)


def test_no_module_is_dead() -> None:
    scripts = tomllib.loads(files()["pyproject.toml"])["project"]["scripts"]
    entry_points = [target.partition(":")[0] for target in scripts.values()]

    complaints = tidy.dead_modules(python_files(), entry_points)

    assert not complaints, "\n".join(complaints)


def test_the_ratchet_only_names_what_is_still_too_long() -> None:
    sources = python_files()
    present: dict[str, int] = {}
    for entry in RATCHET:
        path, _, function = entry.partition(":")
        lengths = dict(tidy.function_lengths(sources[path]))
        present[entry] = lengths[function] if function else len(sources[path].splitlines())

    assert present == RATCHET


def allowed(complaint: str) -> bool:
    """Whether the ratchet lists this place with at least this length."""
    return any(complaint.startswith(f"{entry}: {lines} lines;") for entry, lines in RATCHET.items())


MARK = "TO" + "DO"

BAD: list[tuple[Rule, str, str]] = [
    (tidy.narrow_lines, "ops/a.py", "x = '" + "a" * 100 + "'"),
    (tidy.short_functions, "ops/a.py", "def f():\n" + "    x = 1\n" * 60),
    (tidy.short_files, "ops/a.py", "x = 1\n" * 401),
    (tidy.pure_folds, "processors/a.py", "import time\nx = time.time()"),
    (tidy.pure_folds, "processors/a.py", "from time import time as now\nx = now()"),
    (tidy.pure_folds, "processors/a.py", "from datetime import datetime\nx = datetime.now()"),
    (tidy.pure_folds, "processors/a.py", "import random as r\nx = r.random()"),
    (tidy.pure_folds, "processors/a.py", "import uuid\nx = uuid.uuid4()"),
    (tidy.pure_folds, "processors/a.py", "import os\nx = os.environ['A']"),
    (tidy.pure_folds, "processors/a.py", "from os import environ\nx = environ['A']"),
    (tidy.pure_folds, "processors/a.py", "x = open('a')"),
    (tidy.pure_folds, "processors/a.py", "print('a')"),
    (tidy.no_bare_assert, "streams/a.py", "assert True"),
    (tidy.no_print, "streams/a.py", "print('a')"),
    (tidy.no_consumer_commit, "streams/a.py", "self._consumer.commit()"),
    (tidy.no_silent_except, "ops/a.py", "try:\n    f()\nexcept Exception:\n    pass"),
    (tidy.no_silent_except, "ops/a.py", "try:\n    f()\nexcept:\n    ..."),
    (tidy.reasoned_ignores, "ops/a.py", "x = f()  # type: " + "ignore"),
    (tidy.reasoned_ignores, "ops/a.py", "x = f()  # type: " + "ignore[misc]"),
    (tidy.module_docstring, "ops/a.py", "x = 1"),
    (tidy.module_docstring, "ops/a.py", '"""a' + "\n" * 11 + 'b"""'),
    (tidy.no_leftovers, "docs/a.md", f"<!-- {MARK}: later -->"),
    (tidy.no_machine_paths, "docs/a.md", "see /ro" + "ot/x"),
    (tidy.no_machine_paths, "docs/a.md", "see /ho" + "me/me/x"),
    (tidy.no_registry_hosts, "docs/a.md", "https://py" + "pi.org/simple"),
    (tidy.one_first_heading, "docs/a.md", "# A\n\n# B\n"),
    (tidy.one_first_heading, "docs/a.md", "text\n"),
]

GOOD: list[tuple[Rule, str, str]] = [
    (tidy.narrow_lines, "ops/a.py", "x = '" + "a" * 94 + "'"),
    (tidy.short_functions, "ops/a.py", "def f():\n" + "    x = 1\n" * 59),
    (tidy.short_files, "ops/a.py", "x = 1\n" * 400),
    (tidy.pure_folds, "processors/a.py", "def f(time):\n    return time.start"),
    (tidy.pure_folds, "streams/a.py", "import time\nx = time.time()"),
    (tidy.no_bare_assert, "tests/a.py", "assert True"),
    (tidy.no_print, "ops/a.py", "print('a')"),
    (tidy.no_consumer_commit, "connectors/a.py", "consumer.commit()"),
    (tidy.no_consumer_commit, "streams/a.py", "tally.commit(plan)"),
    (tidy.no_silent_except, "ops/a.py", "try:\n    f()\nexcept KeyError:\n    pass"),
    (tidy.no_silent_except, "ops/a.py", "try:\n    f()\nexcept Exception:\n    raise"),
    (tidy.reasoned_ignores, "ops/a.py", "x = f()  # type: " + "ignore[misc]  # untyped there"),
    (tidy.module_docstring, "ops/a.py", '"""One line."""'),
    (tidy.module_docstring, "tests/__init__.py", ""),
    (tidy.one_first_heading, "docs/a.md", "# A\n\n```\n# not a heading\n```\n"),
]


@pytest.mark.parametrize(("rule", "path", "source"), BAD)
def test_each_rule_can_fail(rule: Rule, path: str, source: str) -> None:
    (complaint,) = rule(path, source)

    assert complaint.startswith(f"{path}:")


@pytest.mark.parametrize(("rule", "path", "source"), GOOD)
def test_each_rule_lets_good_code_pass(rule: Rule, path: str, source: str) -> None:
    assert rule(path, source) == []


def test_a_dead_module_is_found() -> None:
    sources = {
        "ops/cli/__init__.py": "from ops.used import thing",
        "ops/used.py": "thing = 1",
        "ops/dead.py": "import ops.dead",
        "ops/script.py": 'if __name__ == "__main__":\n    pass',
        "tests/test_dead.py": "import ops.dead",
    }

    (complaint,) = tidy.dead_modules(sources, ["ops.cli"])

    assert complaint.startswith("ops/dead.py: nothing imports it")
