"""`tallystick broker up|down|status`: exit codes, streams, stale state, another process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ops.broker import embedded, service, state
from ops.broker.kinds import BrokerKind, BrokerState, Node
from ops.broker.processes import ProcessRef, is_alive
from ops.cli.broker import app
from tallystick.errors import StateLocked
from tests.broker.clients import make_topic, read_all, transaction

needs_embedded = pytest.mark.skipif(embedded.missing() != "", reason=embedded.missing())


def run(*words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `tallystick broker …` in this process."""
    done = CliRunner().invoke(app, list(words), env={"TALLYSTICK_BOOTSTRAP": ""})
    return done.exit_code, done.stdout, done.stderr


def run_process(*words: str) -> tuple[int, str, str]:
    """The same in a process of its own, which has ended when this returns."""
    done = subprocess.run(
        [sys.executable, "-c", "from ops.cli.broker import app; app(prog_name='broker')", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    return done.returncode, done.stdout, done.stderr


@needs_embedded
def test_a_broker_outlives_its_command_and_another_one_ends_it(tmp_path: Path) -> None:
    here = ("--state-dir", str(tmp_path))
    code, out, err = run_process("up", "--kind", "embedded", *here)
    assert code == 0
    assert "starting the embedded broker" in err
    bootstrap = out.strip().removeprefix("export TALLYSTICK_BOOTSTRAP=")

    make_topic(bootstrap, "numbers")
    transaction(bootstrap, "numbers", commit=True, value=b"5")
    code, out, _ = run_process("status", "--json", *here)
    found = json.loads(out)
    assert code == 0
    assert (found["kind"], found["bootstrap"], found["answers"]) == ("embedded", bootstrap, True)

    assert run_process("up", "--kind", "embedded", *here)[1].strip().endswith(bootstrap)
    code, _, err = run_process("up", "--kind", "apache", *here)
    assert code == 1
    assert "another broker runs here: embedded" in err

    process = state.load(tmp_path).nodes[0].process  # type: ignore[union-attr]  # it was saved
    assert run_process("down", *here)[0] == 0
    assert not is_alive(process)
    assert run_process("status", *here)[0] == 1

    assert run_process("up", "--kind", "embedded", *here)[1].strip().endswith(bootstrap)
    assert read_all(bootstrap, "numbers", 1) == [5]
    assert run_process("down", "--wipe", *here)[0] == 0
    assert not (tmp_path / "data").exists()


@pytest.mark.usefixtures("start_apache")  # skips where Java or Maven is missing
@pytest.mark.broker
def test_apache_by_command_line(tmp_path: Path) -> None:
    here = ("--state-dir", str(tmp_path))
    code, out, err = run_process("up", "--kind", "auto", "--json", *here)
    up = json.loads(out)
    assert code == 0, err
    assert (up["kind"], up["version"], up["started"]) == ("apache", "4.4.0", True)

    code, out, _ = run("status", *here)
    assert code == 0
    assert f"bootstrap  {up['bootstrap']}" in out
    assert "version    4.4.0" in out

    code, out, _ = run("down", "--wipe", "--json", *here)
    assert code == 0
    assert json.loads(out)["stopped"] is True


def test_nothing_started_is_said_and_is_exit_code_1(tmp_path: Path) -> None:
    code, out, err = run("status", "--state-dir", str(tmp_path))

    assert code == 1
    assert "kind       none" in out
    assert "no broker was started here" in err
    assert run("down", "--state-dir", str(tmp_path)) == (0, "no broker was running here\n", "")


def stale(tmp_path: Path, process: ProcessRef) -> None:
    """Leave the state file of a broker that is gone."""
    node = Node(node_id=1, port=1, controller_port=0, process=process)
    state.save(
        tmp_path,
        BrokerState(kind=BrokerKind.EMBEDDED, bootstrap="b:1", version="1", nodes=(node,)),
    )


def test_a_stale_state_file_kills_nobody(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    stale(tmp_path, ProcessRef(pid=stranger.pid, started="long ago"))

    code, _, err = run("status", "--state-dir", str(tmp_path))
    assert code == 1
    assert "the state is stale" in err
    code, out, err = run("down", "--state-dir", str(tmp_path))
    assert (code, out) == (0, "no broker was running here\n")
    assert "gone already" in err
    assert stranger.poll() is None
    assert state.load(tmp_path) is None
    stranger.kill()
    stranger.wait()


def test_a_damaged_state_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / state.STATE_FILE).write_text("{")

    code, _, err = run("status", "--state-dir", str(tmp_path))

    assert code == 1
    assert "the state file cannot be read" in err
    assert "then delete the file" in err


def test_two_commands_at_once_do_not_both_start(tmp_path: Path) -> None:
    with state.locked(tmp_path), pytest.raises(StateLocked, match="another command"):
        service.up(BrokerKind.EMBEDDED, tmp_path)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("up", "--kind", "embedded", "--nodes", "3"), 2, "embedded has one node"),
        (("up", "--kind", "apache", "--nodes", "2"), 2, "2 nodes make no quorum"),
        (("up", "--kind", "rabbit"), 2, "rabbit"),
        (("up", "--kind", "external"), 2, "needs an address"),
        (("up", "--bootstrap", "127.0.0.1:9"), 1, "127.0.0.1:9: no broker answers"),
    ],
    ids=["three embedded", "two nodes", "unknown kind", "no address", "nobody there"],
)
def test_mistakes_have_one_line_and_an_exit_code(
    tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    found, out, err = run(*words, "--state-dir", str(tmp_path))

    assert (found, out) == (code, "")
    assert message in err


def test_an_error_as_json_names_what_to_do(tmp_path: Path) -> None:
    code, out, _ = run("up", "--kind", "external", "--json", "--state-dir", str(tmp_path))
    error: dict[str, Any] = json.loads(out)["error"]

    assert code == 2
    assert error["code"] == "bad_input"
    assert "TALLYSTICK_BOOTSTRAP" in error["fix"]
