"""Start, steer and stop a demo target from tests, the demo and the benchmark; synchronous."""

from __future__ import annotations

import http.client
import json
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any

from ops.demo.target_faults import FaultKind
from tallystick.errors import OperatorError, invariant

START_S_MAX = 30.0
"""How long a start may take. Lower: a loaded machine fails. Higher: a broken one is noticed
late."""

CALL_S_MAX = 10.0
"""How long a switch may take to answer."""


class DemoTarget:
    """One demo target in its own process; a context manager that stops it.

    `options` are those of `python -m ops.demo.target`, such as `--no-keys` or `--lag-ms 500`.
    """

    def __init__(self, *options: str, port: int = 0, db: str | Path = ":memory:") -> None:
        # The process works in another folder, so a relative file is made absolute here.
        file = str(db) if str(db) == ":memory:" else str(Path(db).resolve())
        self._options = ["--port", str(port), "--db", file, *options]
        self._process: subprocess.Popen[str] | None = None
        self.port = port

    def __enter__(self) -> DemoTarget:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id, for a test that kills it."""
        invariant(self._process is not None, "the demo target was started")
        return self._process.pid if self._process else 0

    def start(self) -> DemoTarget:
        """Start it and wait until it listens; raises OperatorError if it does not."""
        root = Path(__file__).resolve().parents[2]
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "ops.demo.target",
                "--print-port",
                "--until-stdin-closes",
                *self._options,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # `-m` finds `ops` from the working directory, installed or not.
            cwd=root,
            process_group=0,  # a terminal's Ctrl-C is for its parent, which still asks it things
        )
        line = self._first_line()
        if not line.strip().isdigit():
            self.stop()
            raise OperatorError(
                f"the demo target did not start: {line.strip() or 'no port within the time'}",
                where="demo target",
                fix="run `python -m ops.demo.target` to see why",
            )
        self.port = int(line)
        return self

    def _first_line(self) -> str:
        process = self._process
        if process is None or process.stdout is None:
            return ""
        ready, _, _ = select.select([process.stdout], [], [], START_S_MAX)
        return process.stdout.readline() if ready else ""

    def stop(self) -> None:
        """Stop it, kindly first."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def kill(self) -> None:
        """SIGKILL, as a crash; `start` brings it back (on the same file, if it had one)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self.stop()

    def fault(self, kind: FaultKind | str, **fields: Any) -> None:
        """Switch a fault on; the fields are those of `Fault`."""
        self.call("POST", "/faults", {"kind": str(kind), **fields})

    def clear_faults(self) -> None:
        """Switch all faults off."""
        self.call("DELETE", "/faults")

    def set(self, **settings: Any) -> None:
        """Change settings, such as keys, unique, page_size, latency_ms, lag_ms or token."""
        self.call("POST", "/settings", settings)

    def reset(self) -> None:
        """Forget all cases, keys, faults and the ledger."""
        self.call("POST", "/reset")

    def ledger(self) -> list[dict[str, Any]]:
        """Every committed effect in its order: the truth."""
        effects: list[dict[str, Any]] = self.call("GET", "/ledger")["effects"]
        return effects

    def copies(self, module: str | None = None) -> Counter[str]:
        """How many rows were ever inserted for each case."""
        return Counter(
            effect["case_id"]
            for effect in self.ledger()
            if effect["op"] == "insert" and module in (None, effect["module"])
        )

    def duplicates(self, module: str | None = None) -> int:
        """How many inserts were one too many."""
        return sum(count - 1 for count in self.copies(module).values())

    def wait_for_late(self, within_s: float = 30.0) -> None:
        """Wait until every late commit has landed."""
        deadline = time.monotonic() + within_s
        while self.call("GET", "/ledger")["late_pending"]:
            if time.monotonic() > deadline:
                raise OperatorError("a late commit is still pending", where="demo target")
            time.sleep(0.02)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the target; the parsed answer. Raises OperatorError for an error."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_S_MAX)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            raw = response.read()
        except OSError as error:
            raise OperatorError(f"does not answer: {error}", where=self.url) from error
        finally:
            connection.close()
        if response.status >= 400:
            raise OperatorError(
                f"{method} {path} gave {response.status}: {raw.decode(errors='replace')}",
                where="demo target",
            )
        return json.loads(raw) if raw else None
