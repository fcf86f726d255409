"""The command line as its users run it: a process, its streams and its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.processes import Piece
from tallystick.topics import Topic
from tests.spine.conftest import CONTRACTS, House

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "ops.cli"]
NOBODY = "127.0.0.1:1"
"""An address where no broker and no target ever answers: port 1 takes root to open."""

LIMIT_S = 60.0


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object that `--json` promises; fails if there is more or less."""
        (line,) = self.out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found

    @property
    def line(self) -> str:
        """The one line on stderr that an error is told in; fails on a traceback."""
        (line,) = self.err.splitlines()
        return line


def environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, without what would steer the command line."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("TALLYSTICK_", "FORCE_"))}
    return {**ours, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **(env or {})}


def run(*words: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Done:
    """`tallystick WORDS` in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *words],
        input=stdin,
        capture_output=True,
        env=environment(env),
        timeout=LIMIT_S,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def run_all(
    commands: Mapping[str, Sequence[str]], env: Mapping[str, str] | None = None
) -> dict[str, Done]:
    """Several commands side by side, by name; most of their time is waiting."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        running = {name: pool.submit(run, *words, env=env) for name, words in commands.items()}
        return {name: future.result() for name, future in running.items()}


def begin(*words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """The same without waiting; Ctrl-C reaches it even where the tests themselves ignore it."""
    return subprocess.Popen(
        [*COMMAND, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(env),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def interrupt(process: subprocess.Popen[str]) -> Done:
    """Press Ctrl-C, which reaches the whole group as from a terminal, and collect what is left."""
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT_S)
    return Done(process.returncode, out, err)


class CliHouse(House):
    """A house whose dispatcher and reader serve several contracts, driven by commands."""

    def begin(self, contracts: Sequence[Path], env: Mapping[str, str]) -> None:
        """Start worker, dispatcher and reader, and wait until they are ready."""
        pieces: list[Piece] = [
            self.pieces.worker().start(),
            self.pieces.dispatcher(contracts, env=dict(env)).start(),
            self.pieces.reader(contracts, env=dict(env)).start(),
        ]
        for piece in pieces:
            piece.wait_ready()

    @property
    def env(self) -> dict[str, str]:
        """Where its ledger is, as the environment says it."""
        return {"TALLYSTICK_BOOTSTRAP": self.bootstrap, "TALLYSTICK_PREFIX": self.prefix}

    def run(self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Done:
        """A command against this house."""
        return run(*words, env={**self.env, **(env or {})}, stdin=stdin)

    def commit(self, plan: Path, *words: str, contract: Path | None = None) -> Done:
        """`tallystick commit` under the keyed contract, or another one."""
        return self.run("commit", str(plan), "--contract", str(contract or KEYED), *words)

    def traces(self) -> tuple[int, int]:
        """How many requests are in the log, and how many effects in the target."""
        return len(self.records(Topic.PLAN_REQUESTS)), len(self.target.ledger())


KEYED = CONTRACTS / "cases-keyed.yaml"
UNREADABLE = CONTRACTS / "cases-unreadable.yaml"


def items(*names: str, title: str = "pays by card") -> list[dict[str, Any]]:
    """Planned cases."""
    return [
        {"identity": name, "payload": {"case_id": name, "title": title, "steps": ["a", "b"]}}
        for name in names
    ]


def document(key: str, *names: str, **fields: Any) -> dict[str, Any]:
    """A plan file's content; each commit key has a module of its own in the shared target."""
    return {
        "commit_key": key,
        "module": key,
        "tool": "create_case",
        "items": items(*names),
        **fields,
    }


def write(folder: Path, content: Any, name: str = "plan.json") -> Path:
    """A file of JSON, or of the text or bytes given."""
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path
