"""`AsyncTally`: the same client for asyncio; waiting never blocks the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType

from tallystick.client.sync import Tally, wait_or_deadline_s
from tallystick.client.waiting import Ending, Progress
from tallystick.codec import Codec
from tallystick.protocol import COMMIT_WITHIN_MS
from tallystick.records import Plan, Resolution
from tallystick.topics import DEFAULT_PREFIX


class AsyncTally:
    """An asyncio face of `Tally`; use it with `async with await AsyncTally.connect(...)`."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    @classmethod
    async def connect(
        cls,
        bootstrap: str = "127.0.0.1:9092",
        *,
        prefix: str = DEFAULT_PREFIX,
        codec: Codec | None = None,
        config: Mapping[str, str | int | bool] | None = None,
    ) -> AsyncTally:
        """Connect as `Tally.connect` does, with the same errors."""
        tally = await asyncio.to_thread(
            Tally.connect, bootstrap, prefix=prefix, codec=codec, config=config
        )
        return cls(tally)

    async def commit(
        self,
        plan: Plan,
        *,
        wait_s: float | None = None,
        commit_within_ms: int = COMMIT_WITHIN_MS,
        supersedes: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Ending:
        """As `Tally.commit`; cancelling the task stops the wait, never the commit."""
        pending = await asyncio.to_thread(
            self._tally.submit,
            plan,
            commit_within_ms=commit_within_ms,
            supersedes=supersedes,
            session_id=session_id,
            run_id=run_id,
            on_progress=on_progress,
        )
        limit_s = wait_or_deadline_s(wait_s, commit_within_ms)
        try:
            return await asyncio.wait_for(
                asyncio.shield(asyncio.wrap_future(pending.future)), limit_s
            )
        except TimeoutError:
            raise pending.timed_out(limit_s) from None

    async def resolve(
        self,
        intent_id: str,
        *,
        commit_key: str,
        applied: bool,
        evidence: str,
        resolved_by: str,
    ) -> Resolution:
        """As `Tally.resolve`."""
        return await asyncio.to_thread(
            self._tally.resolve,
            intent_id,
            commit_key=commit_key,
            applied=applied,
            evidence=evidence,
            resolved_by=resolved_by,
        )

    async def close(self) -> None:
        """As `Tally.close`."""
        await asyncio.to_thread(self._tally.close)

    async def __aenter__(self) -> AsyncTally:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
