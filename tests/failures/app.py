"""The toy stage as a process of its own that can die, or stop, at a named crash point.

python -m tests.failures.app --bootstrap B --prefix P --slot S --state-dir D
    [--at after_produce[:NTH]] [--act kill|stop] [--settings JSON]
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from ops.processes import READY_WORD
from streams.crashpoints import CrashPoint
from streams.settings import LoopSettings
from streams.transaction import TransactionalProducer
from streams.worker import Worker
from tests.streams.toy import JsonCodec, toy_stage


class Fate:
    """Ends or stops the process the nth time that a point is passed."""

    def __init__(self, at: str, act: str) -> None:
        point, _, nth = at.partition(":")
        self._point = CrashPoint(point) if point else None
        self._left = int(nth or 1)
        self._act = act

    def reach(self, point: CrashPoint) -> None:
        """See CrashPoints."""
        if point is not self._point:
            return
        self._left -= 1
        if self._left == 0:
            sys.stderr.write(f"reached {point}\n")
            sys.stderr.flush()
            time.sleep(0.3)  # what was produced is in the log by now, not only in this process
            os.kill(os.getpid(), signal.SIGKILL if self._act == "kill" else signal.SIGSTOP)
            if self._act == "stop-and-rest":
                # Long enough for librdkafka to learn that the membership is gone. In short naps,
                # since one long sleep may begin before the stop and end during it.
                for _ in range(20):
                    time.sleep(0.1)


def main() -> None:
    """Run until a signal."""
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "prefix", "slot", "state-dir"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--at", default="")
    parser.add_argument("--act", default="kill")
    parser.add_argument("--settings", default="{}")
    parser.add_argument("--transactional-id", default="")
    parser.add_argument("--two-inputs", action="store_true")
    asked = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    if asked.transactional_id:
        _share_transactional_id(asked.transactional_id)
    settings = LoopSettings(
        bootstrap=asked.bootstrap,
        prefix=asked.prefix,
        slot=asked.slot,
        state_dir=Path(asked.state_dir),
        **json.loads(asked.settings),
    )
    worker = Worker(
        [toy_stage(two_inputs=asked.two_inputs)],
        settings,
        JsonCodec(),
        crash=Fate(asked.at, asked.act),
    )
    raise SystemExit(worker.run(_say_ready))


def _say_ready() -> None:
    sys.stdout.write(f"{READY_WORD}\n")
    sys.stdout.flush()


def _share_transactional_id(name: str) -> None:
    """A mistake that slots rule out: two workers whose producers have one name (test 09)."""
    build: Any = TransactionalProducer.__init__

    def init(self: TransactionalProducer, _id: str, *rest: Any, **more: Any) -> None:
        build(self, name, *rest, **more)

    TransactionalProducer.__init__ = init  # type: ignore[method-assign]  # the point of the test


if __name__ == "__main__":
    main()
