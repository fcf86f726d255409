"""A thread that ends the process when a guarded call hangs (engine rule 12).

`send_offsets_to_transaction` ignores its timeout while the group coordinator is down
(librdkafka #5456), and no Python code can interrupt it. Ending the process is safe: the open
transaction is aborted by the next start of the same slot.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WATCHDOG_EXIT = 70
"""Exit code of a process that the watchdog ended (EX_SOFTWARE); a supervisor restarts it."""

_LOOK_EVERY_S = 0.1
"""How often deadlines are looked at. Higher: a hang is noticed that much later."""


def _end(message: str) -> None:
    sys.stderr.write(message)
    sys.stderr.flush()
    os._exit(WATCHDOG_EXIT)  # nothing is cleaned up: a hung client cannot be closed


class Watchdog:
    """Holds deadlines of guarded sections; `end` is called with a message once one is missed."""

    def __init__(self, end: Callable[[str], None] = _end) -> None:
        self._end = end
        self._sections: dict[int, tuple[float, str]] = {}
        self._next = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watchdog", daemon=True)
        self._thread.start()

    @contextmanager
    def guard(self, what: str, limit_ms: int) -> Iterator[None]:
        """Run the body; if it takes longer than `limit_ms` the process ends, saying `what`."""
        with self._lock:
            self._next += 1
            ticket = self._next
        self._sections[ticket] = (time.monotonic() + limit_ms / 1_000, f"{what} for {limit_ms} ms")
        try:
            yield
        finally:
            del self._sections[ticket]

    def close(self) -> None:
        """Stop looking."""
        self._closed.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._closed.wait(_LOOK_EVERY_S):
            now = time.monotonic()
            for deadline, what in list(self._sections.values()):
                if now > deadline:
                    self._end(
                        f"tallystick: watchdog: stuck in {what}; the process ends with code "
                        f"{WATCHDOG_EXIT} (check the brokers, then start it again)\n"
                    )
