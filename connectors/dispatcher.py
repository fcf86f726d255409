"""The dispatcher: `intents` to a target to `attempts`, each claimed before it is called.

One thread claims, in transactions, as much as may be in flight; the event loop calls. A process
that dies can lose outcomes, never repeat calls: what it claimed is not delivered again.
"""

from __future__ import annotations

import asyncio
import logging

from connectors.capacity import Capacity
from connectors.claiming import SOURCE, Claiming
from connectors.claims import (
    Claim,
    boot_ms,
    not_called,
    refusal,
    send_window_left_ms,
    settled,
)
from connectors.contract_book import ContractBook
from connectors.intake import Intake
from connectors.outbound import Outbound
from connectors.points import Point, Reach, pass_by
from connectors.settings import ConnectorSettings
from connectors.station import drain, take_until
from connectors.targets import Target
from streams.watchdog import Watchdog
from tallystick.codec import Codec
from tallystick.records import Attempt, AttemptOutcome, ErrorClass
from tallystick.topics import Topic

CLAIM_AHEAD_MS = 300
"""Claims may wait this long for their turn at the target. Lower: the target idles while the next
claims are logged. Higher: claims come near their send window, and slow targets lose attempts."""

AHEAD_MAX = 3
"""Most batches claimed ahead of those being called. Higher: a crash loses more outcomes."""

SMOOTHING = 0.1
"""Weight of the newest call in the mean call time. Higher: one slow call stops claiming ahead."""

_log = logging.getLogger(__name__)


class Dispatcher:
    """One dispatcher process."""

    def __init__(
        self,
        settings: ConnectorSettings,
        book: ContractBook,
        codec: Codec,
        reach: Reach = pass_by,
    ) -> None:
        self._settings = settings
        self._book = book
        self._reach = reach
        self._at_once = min(settings.in_flight_max, book.concurrency_max)
        self._capacity = Capacity(self._at_once)
        self._call_ms = 0.0
        self._outbound = Outbound(settings.client_config, settings.prefix, codec, SOURCE)
        self._calls: set[asyncio.Task[None]] = set()
        self._watchdog = Watchdog()
        self.intake = Intake(settings, Topic.INTENTS, "dispatcher")
        self._claiming = Claiming(settings, self.intake, codec, self._watchdog)

    async def run(self, stop: asyncio.Event) -> None:
        """Dispatch until `stop` is set; raises what ended the claiming."""
        try:
            await take_until(stop, self.intake, self._claim_forever)
        finally:
            await drain(self._calls, self._settings.drain_s)
            left = await asyncio.to_thread(self._outbound.close, self._settings.drain_s)
            if left:
                _log.error("%d outcomes were left behind; their claims expire", left)
            await asyncio.to_thread(self.intake.close)
            await self._book.close()
            self._watchdog.close()

    def _claim_forever(self, loop: asyncio.AbstractEventLoop) -> None:
        self._claiming.start()
        for messages in self.intake.batches(self._capacity):
            if not messages:
                continue
            claims = self._claiming.claim(messages)
            self._capacity.take(len(claims))
            self._reach(Point.AFTER_CLAIM)
            loop.call_soon_threadsafe(self._begin, claims)

    def _begin(self, claims: list[Claim]) -> None:
        for claim in claims:
            task = asyncio.ensure_future(self._follow(claim))
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)

    async def _follow(self, claim: Claim) -> None:
        """Call once and log what came of it; whatever happens, the claim gets an outcome."""
        try:
            try:
                fact = await self._call(claim)
            except Exception as error:  # noqa: BLE001 - a claim never stays without an outcome
                _log.exception("a call broke off")
                fact = self._broken(claim, error)
            event_id = f"{fact.intent_id}/{fact.attempt}/settled"
            self._outbound.send(Topic.ATTEMPTS, fact.commit_key, claim.partition, fact, event_id)
            self._reach(Point.AFTER_OUTCOME)
        finally:
            self._capacity.release()

    async def _call(self, claim: Claim) -> Attempt:
        intent, slot = claim.intent, self._settings.slot
        target = self._book.target(intent.contract_hash)
        if target is None:
            served = ", ".join(self._book.names)
            detail = f"contract {intent.contract_name} {intent.contract_hash[:12]}: have {served}"
            return not_called(intent, slot, "contract_unavailable", detail)
        if self._book.policy_hash(intent.contract_hash, intent.tool) != intent.policy_hash:
            return self._forged(claim)
        now = boot_ms()
        why_not = refusal(claim, now)
        if why_not:
            return not_called(intent, slot, why_not, "the call would have come too late")
        return await self._write(claim, target, send_window_left_ms(claim, now))

    async def _write(self, claim: Claim, target: Target, window_ms: int) -> Attempt:
        self._reach(Point.BEFORE_CALL)
        result = await target.write(claim.intent, send_within_ms=window_ms)
        self._reach(Point.AFTER_CALL)
        self._claim_ahead(result.elapsed_ms)
        return settled(
            claim.intent,
            self._settings.slot,
            result.outcome,
            error_class=result.error_class,
            code=result.code,
            detail=result.detail,
            retry_after_ms=result.retry_after_ms,
            target_ref=result.target_ref,
            elapsed_ms=result.elapsed_ms,
        )

    def _claim_ahead(self, elapsed_ms: int) -> None:
        """A quick target may be claimed for ahead of its calls; a slow one must not, because
        claims that wait too long for their turn are refused."""
        known = self._call_ms or elapsed_ms
        self._call_ms = known + SMOOTHING * (elapsed_ms - known)
        ahead = min(AHEAD_MAX, int(CLAIM_AHEAD_MS / max(self._call_ms, 1.0)))
        self._capacity.limit(self._at_once * (1 + ahead))

    def _forged(self, claim: Claim) -> Attempt:
        """The plan froze a policy that the contract does not state: nobody may choose their own."""
        return self._settled(
            claim,
            AttemptOutcome.REJECTED,
            ErrorClass.SETUP,
            "policy_differs",
            "the plan's policy is not the contract's",
        )

    def _broken(self, claim: Claim, error: Exception) -> Attempt:
        """Our own fault after the claim: it may have happened after the call went out."""
        return self._settled(
            claim, AttemptOutcome.UNKNOWN, ErrorClass.UNKNOWN, "dispatcher_fault", repr(error)[:200]
        )

    def _settled(
        self,
        claim: Claim,
        outcome: AttemptOutcome,
        error_class: ErrorClass,
        code: str,
        detail: str,
    ) -> Attempt:
        return settled(
            claim.intent,
            self._settings.slot,
            outcome,
            error_class=error_class,
            code=code,
            detail=detail,
            retry_after_ms=None,
            target_ref=None,
            elapsed_ms=0,
        )
