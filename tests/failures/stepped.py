"""A stage's loop in the test's own process, whose turns the test takes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from streams.crashpoints import CrashPoints
from streams.loop import StageLoop
from streams.settings import LoopSettings
from streams.watchdog import Watchdog
from tests.failures.lab import Lab, eventually
from tests.streams.toy import JsonCodec, toy_stage


class SteppedLoop:
    """A stage's loop without its thread: a test takes the turns and looks inside."""

    def __init__(
        self, lab: Lab, slot: str = "a", crash: CrashPoints | None = None, **settings: Any
    ) -> None:
        self.settings = LoopSettings(
            bootstrap=lab.bootstrap,
            prefix=lab.prefix,
            slot=slot,
            state_dir=lab.folder / slot,
            **{**lab.quick, **settings},
        )
        self._watchdog = Watchdog()
        self.loop = StageLoop(
            toy_stage(),
            self.settings,
            JsonCodec(),
            stop=threading.Event(),
            watchdog=self._watchdog,
            crash=crash,
        )
        self.loop._producer.start()
        self.loop._intake.subscribe()
        self.until("it runs its share", lambda: self.loop._joined and self._settled())

    def _settled(self) -> bool:
        return not self.loop._takeover.pending

    def turn(self) -> None:
        """One turn."""
        self.loop._turn()

    def until(self, what: str, held: Callable[[], Any]) -> Any:
        """Take turns until `held()`."""

        def turned() -> Any:
            self.loop._turn()
            return held()

        return eventually(what, turned)

    def staged(self, partition: int = 0) -> dict[bytes, bytes | None]:
        """What the overlay of a partition holds."""
        return dict(self.loop._running[partition].task._overlay.staged)

    def rows(self, partition: int = 0) -> dict[bytes, bytes]:
        """What the store of a partition holds."""
        store = self.loop._running[partition].store
        return {row: value for kind in (b"s", b"t", b"d") for row, value in store.scan(kind, kind)}

    def close(self) -> None:
        """As a clean stop does."""
        self.loop._close()
        self._watchdog.close()
