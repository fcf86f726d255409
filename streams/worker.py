"""A worker process: any set of stages, one loop a thread, signals, exit codes.

Exit codes: 0 stopped on request; 1 something must be put right first (the line says what);
70 the watchdog ended a hung call; 71 fenced: the slot is used twice, or a batch outlived its
transaction. A supervisor may start it again after any of them.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from enum import IntEnum

from streams.crashpoints import CrashPoints
from streams.intake import SlotTaken
from streams.loop import StageLoop
from streams.metrics import LoopMetrics
from streams.settings import LoopSettings
from streams.topology import Stage
from streams.transaction import TransactionFatal
from streams.watchdog import WATCHDOG_EXIT, Watchdog
from tallystick.codec import Codec
from tallystick.errors import TallyError

_log = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.2
"""How often the main thread looks up, so that signals are handled. Higher: slower to stop."""


class WorkerExit(IntEnum):
    """Exit codes of a worker process, beyond those of the command line."""

    STOPPED = 0
    FAILED = 1
    WATCHDOG = WATCHDOG_EXIT
    FENCED = 71


class Worker:
    """Runs stages until a signal, `stop()` or the first failure, which ends all of them."""

    def __init__(
        self,
        stages: Sequence[Stage],
        settings: LoopSettings,
        codec: Codec,
        *,
        metrics: LoopMetrics | None = None,
        crash: CrashPoints | None = None,
    ) -> None:
        self._stages = stages
        self._settings = settings
        self._codec = codec
        self._metrics = metrics
        self._crash = crash
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._ready_left = len(stages)
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Ask every loop to end after its current batch."""
        self._stop.set()

    def run(
        self, on_ready: Callable[[], None] | None = None, *, handle_signals: bool = True
    ) -> WorkerExit:
        """Run to the end; a failure is told in one line on standard error.

        `on_ready` is called once, from a loop's thread, when every stage runs its share.
        """
        if handle_signals:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda _number, _frame: self.stop())
        watchdog = Watchdog()
        threads = [
            threading.Thread(
                target=self._run_stage, args=(stage, watchdog, on_ready), name=stage.name
            )
            for stage in self._stages
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(_LOOK_EVERY_S)
        watchdog.close()
        return self._tell()

    def _run_stage(
        self, stage: Stage, watchdog: Watchdog, on_ready: Callable[[], None] | None
    ) -> None:
        def ready() -> None:
            with self._lock:
                self._ready_left -= 1
                last = self._ready_left == 0
            if last and on_ready is not None:
                on_ready()

        try:
            StageLoop(
                stage,
                self._settings,
                self._codec,
                stop=self._stop,
                watchdog=watchdog,
                metrics=self._metrics,
                crash=self._crash,
                on_ready=ready,
            ).run()
        except BaseException as failure:  # noqa: BLE001 - a thread's failure ends the process
            if self._failure is None:
                self._failure = failure
        finally:
            self._stop.set()

    def _tell(self) -> WorkerExit:
        failure = self._failure
        if failure is None:
            return WorkerExit.STOPPED
        if not isinstance(failure, TallyError):
            _log.error("the worker failed", exc_info=failure)
        sys.stderr.write(f"tallystick: worker {self._settings.slot}: {failure}\n")
        fenced = isinstance(failure, SlotTaken) or (
            isinstance(failure, TransactionFatal) and failure.fenced
        )
        return WorkerExit.FENCED if fenced else WorkerExit.FAILED
