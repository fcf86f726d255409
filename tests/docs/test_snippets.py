"""README.md and docs/: what they print works, what they name exists, what they link is there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from ops.cli.app import app
from tallystick.records import Receipt
from tests.spine.conftest import House

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "STYLE.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/*.md")]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ADDRESS = '"127.0.0.1:9092"'
"""What the pages call the broker; a test puts its own in its place."""


def name_of(page: Path) -> str:
    """The page as a reader knows it."""
    return str(page.relative_to(ROOT))


def snippets(language: str) -> Iterator[Any]:
    """Every fenced block of a language, with its page."""
    for page in PAGES:
        blocks = [body for kind, body in FENCE.findall(page.read_text()) if kind == language]
        for number, body in enumerate(blocks, 1):
            yield pytest.param(body, id=f"{name_of(page)}:{number}")


def commands() -> Iterator[Any]:
    """Every call of `tallystick` or `make` in a shell block, without its comment."""
    for page in PAGES:
        blocks = [body for kind, body in FENCE.findall(page.read_text()) if kind in ("sh", "")]
        for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|[|&;]|\$\(", line.partition(" #")[0]):
                text = part.strip().removesuffix(')"').strip()
                if text.startswith(("tallystick ", "make ")):
                    yield pytest.param(text, id=f"{name_of(page)}: {text}")


@pytest.mark.broker
@pytest.mark.parametrize("source", [*snippets("python")])
def test_a_python_snippet_runs_as_printed(
    source: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the address is another one. A snippet that is itself a test is compiled: it asks for
    fixtures."""
    code = compile(source, "snippet", "exec")
    if source.startswith("def test_"):
        assert code.co_names
        return
    house: House = request.getfixturevalue("house")
    assert ADDRESS in source
    source = source.replace(ADDRESS, f'"{house.bootstrap}", prefix="{house.prefix}"')
    monkeypatch.chdir(ROOT)
    namespace: dict[str, Any] = {}

    exec(compile(source, "snippet", "exec"), namespace)

    assert isinstance(namespace["ending"], Receipt)
    assert house.target.copies() == {"TC-1": 1}


@pytest.mark.parametrize("line", [*commands()])
def test_a_command_in_a_page_exists_and_its_options_parse(line: str) -> None:
    program, *words = shlex.split(line)
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[0] in targets
    else:
        command = typer.main.get_command(app)
        while children := getattr(command, "commands", None):
            assert words[:1], f"{line} names no command"
            assert words[0] in children
            name = words.pop(0)
            command = children[name]
        # Parsing alone: it checks names, values and what is required, and runs nothing.
        context = command.make_context(line, words)
        context.close()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    targets = [
        link.partition("#")[0]
        for link in LINK.findall(FENCE.sub("", page.read_text()))
        if "://" not in link
    ]
    missing = [link for link in targets if link and not (page.parent / link).exists()]

    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_in_code_marks_exist(page: Path) -> None:
    """`docs/keys.md`, `ops/demo/contracts/` and the like, as far as they are of this tree."""
    rooms = "tallystick|schemas|processors|streams|connectors|ops|tests|docs"
    named = re.findall(rf"`((?:{rooms})/[\w./-]+)`", page.read_text())
    missing = [path for path in named if not (ROOT / path).exists()]

    assert missing == []


def test_there_is_something_to_check() -> None:
    assert len(list(snippets("python"))) >= 2
    assert len(list(commands())) >= 10
