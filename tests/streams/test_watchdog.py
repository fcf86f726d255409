"""A guarded call that hangs ends the process; one that returns in time does not."""

from __future__ import annotations

import subprocess
import sys
import threading

from streams.watchdog import WATCHDOG_EXIT, Watchdog


def test_a_section_in_time_ends_nothing() -> None:
    told: list[str] = []
    watchdog = Watchdog(told.append)
    with watchdog.guard("a call", 60_000):
        pass
    watchdog.close()
    assert told == []


def test_a_section_that_overruns_is_named() -> None:
    told, ended = [], threading.Event()

    def end(message: str) -> None:
        told.append(message)
        ended.set()

    watchdog = Watchdog(end)
    with watchdog.guard("send_offsets of x", 1):
        assert ended.wait(10)
    watchdog.close()
    assert "stuck in send_offsets of x for 1 ms" in told[0]


def test_19_a_hung_call_ends_the_process_with_the_documented_code() -> None:
    code = (
        "import threading\n"
        "from streams.watchdog import Watchdog\n"
        "with Watchdog().guard('a call', 50): threading.Event().wait()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30
    )
    assert ended.returncode == WATCHDOG_EXIT
    assert "stuck in a call" in ended.stderr
