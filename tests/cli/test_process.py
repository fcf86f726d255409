"""What every command shares: help, usage errors, JSON, colors, and the unexpected."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from functools import partial

import pytest
import typer
from typer.testing import CliRunner

from ops.cli.app import app
from ops.cli.common import connection, guarded
from ops.cli.process import outcome
from tallystick.codec import FingerprintCodec
from tallystick.codec_registry import RegistryCodec
from tallystick.errors import CallerError
from tests.cli.house import COMMAND, KEYED, environment, run


def leaves(command: object, *path: str) -> Iterator[tuple[str, ...]]:
    """Every command that does something, as the words that name it."""
    children = getattr(command, "commands", {})
    for name, child in children.items():
        yield from leaves(child, *path, name)
    if not children:
        yield path


LEAVES = sorted(" ".join(path) for path in leaves(typer.main.get_command(app)))


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """The help of every command."""
    env = {"COLUMNS": "200", "FORCE_COLOR": None}
    answers = {
        name: CliRunner().invoke(app, [*name.split(), "--help"], prog_name="tallystick", env=env)
        for name in LEAVES
    }
    assert {answer.exit_code for answer in answers.values()} == {0}
    return {name: answer.stdout for name, answer in answers.items()}


@pytest.mark.parametrize("name", LEAVES)
def test_help_has_a_usage_examples_and_exit_codes(helps: dict[str, str], name: str) -> None:
    text = helps[name]

    assert f"Usage: tallystick {name}" in text
    examples = [line for line in text.splitlines() if f"tallystick {name}" in line]
    assert len(examples) >= 2, "the usage and an example"
    assert "Exit codes: 0 success, 1 failed, 2 usage, 3 partial, 4 unknown" in text
    assert "\x1b" not in text


def test_help_keeps_its_brackets(helps: dict[str, str]) -> None:
    assert "jq .endings[-1].kind" in helps["inspect commit"]
    assert "[env: TALLYSTICK_BOOTSTRAP]" in helps["commit"]


def test_the_version_is_said() -> None:
    done = run("--version")

    assert done.code == 0
    assert re.fullmatch(r"tallystick \d+\.\d+\.\d+\n", done.out)


@pytest.mark.parametrize(
    ("words", "said", "see"),
    [
        (("comit",), "No such command 'comit'. Did you mean 'commit'?", "tallystick --help"),
        (("commit",), "Missing argument 'PLAN.json'.", "tallystick commit --help"),
        (("commit", "p.json"), "Missing option '--contract'.", "tallystick commit --help"),
        (("topics", "diff", "--foo"), "No such option: --foo", "tallystick topics diff --help"),
        (("receipts", "tail", "-n", "0"), "--count", "tallystick receipts tail --help"),
        (("broker", "up", "--kind", "rabbit"), "'rabbit' is not one of", "broker up --help"),
    ],
)
def test_a_usage_error_is_one_line_with_a_hint(words: tuple[str, ...], said: str, see: str) -> None:
    done = run(*words)

    assert (done.code, done.out) == (2, "")
    assert done.line.startswith("error [usage] tallystick")
    assert said in done.line
    assert see in done.line


def test_a_usage_error_is_a_json_object_where_json_was_asked_for() -> None:
    done = run("commit", "--json")

    assert (done.code, done.err) == (2, "")
    assert done.json["error"]["code"] == "usage"
    assert done.json["error"]["where"] == "tallystick commit"
    assert "--help" in done.json["error"]["fix"]


def test_without_a_command_the_help_is_shown() -> None:
    done = run()

    assert done.code == 2
    assert "Usage: tallystick" in done.out
    assert done.err == ""


def on_a_terminal(*words: str, **env: str) -> str:
    """What a command writes to a terminal."""
    master, slave = pty.openpty()
    settings = {**environment(env), "TERM": "xterm-256color"}
    process = subprocess.Popen([*COMMAND, *words], stdout=slave, stderr=slave, env=settings)
    os.close(slave)
    process.wait(timeout=60)
    text = os.read(master, 65_536).decode()
    os.close(master)
    return text


def test_colors_are_for_terminals_that_want_them() -> None:
    words = ("contracts", "check", str(KEYED))
    color = re.compile(r"\x1b\[(?:\d+;)*3\d")

    assert color.search(on_a_terminal(*words))
    assert not color.search(on_a_terminal(*words, NO_COLOR="1"))
    assert "\x1b" not in run(*words).out


def raising(error: BaseException) -> int:
    """The exit code of a command that ends with `error`."""

    def action() -> None:
        raise error

    return outcome(action, as_json=False)


def test_the_unexpected_is_one_line_and_a_traceback_only_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TALLYSTICK_LOG", raising=False)
    assert raising(RuntimeError("odd\nthing")) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(r"error [unexpected] RuntimeError: odd\nthing (report this")

    monkeypatch.setenv("TALLYSTICK_LOG", "debug")
    assert raising(RuntimeError("odd")) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_error_while_cleaning_up_after_ctrl_c_is_not_the_news(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for error in (CallerError("target is gone"), OSError("folder is gone")):

        def action(error: Exception = error) -> None:
            try:
                raise KeyboardInterrupt
            finally:
                raise error

        assert outcome(partial(guarded, action), as_json=False) == 130
        assert capsys.readouterr().err == "error [interrupted] interrupted\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (typer.Abort(), 130),
        (typer.Exit(7), 7),
        (CallerError("wrong"), 2),
        (typer.BadParameter("wrong"), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_end_has_its_exit_code(error: BaseException, code: int) -> None:
    assert raising(error) == code


def test_the_registry_is_an_option_and_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TALLYSTICK_REGISTRY", raising=False)
    assert isinstance(connection("a:1", "t.").codec(), FingerprintCodec)
    assert isinstance(connection("a:1", "t.", "http://127.0.0.1:1").codec(), RegistryCodec)

    monkeypatch.setenv("TALLYSTICK_REGISTRY", "http://127.0.0.1:1")
    assert isinstance(connection("a:1", "t.").codec(), RegistryCodec)
