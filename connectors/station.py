"""What dispatcher and reader are: a thread that takes work, an event loop that does it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from connectors.intake import Intake

TakeForever = Callable[[asyncio.AbstractEventLoop], None]


async def take_until(stop: asyncio.Event, intake: Intake, take_forever: TakeForever) -> None:
    """Run `take_forever` in a thread until `stop` is set or it fails; raises its failure."""
    loop = asyncio.get_running_loop()
    taking = asyncio.create_task(asyncio.to_thread(take_forever, loop))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({taking, stopping}, return_when=asyncio.FIRST_COMPLETED)
    intake.stop()
    stopping.cancel()
    await taking


async def drain(tasks: set[asyncio.Task[None]], drain_s: float) -> None:
    """Give the work in flight a bounded time to end."""
    if tasks:
        await asyncio.wait(tasks, timeout=drain_s)
