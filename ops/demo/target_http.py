"""The demo target's HTTP face: case management with faults where real services have them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import msgspec
from aiohttp import web

from ops.demo.target_faults import Fault, FaultKind, Faults
from ops.demo.target_store import Answer, Order, Store

PAGE_MAX = 100_000
"""Rows of an unpaged listing. Lower: a large module would silently look smaller than it is."""

HANG_S = 3_600
"""How long a lost answer hangs: longer than any client waits, yet the task ends."""

_REFUSALS = (
    FaultKind.RATE_LIMITED,
    FaultKind.UNAVAILABLE,
    FaultKind.ERROR_500_BEFORE,
    FaultKind.REJECT,
)
_LOSSES = (FaultKind.ACK_LOST, FaultKind.ERROR_500_AFTER_COMMIT)


class Settings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How the service behaves when nothing is wrong.

    `keys`: idempotency keys are honored. `unique`: a second POST of a case is refused with 409.
    `page_size`: listings are paged by links. `token`: bearer token that is asked for.
    """

    keys: bool = True
    unique: bool = False
    page_size: int | None = None
    latency_ms: int = 0
    lag_ms: int = 0
    token: str | None = None


class Service:
    """Routes, faults and the store of one running target."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self.faults = Faults()
        self._late: set[asyncio.Task[None]] = set()
        self._working: set[str] = set()

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application(middlewares=[self._guard])
        cases = "/modules/{module}/cases"
        app.router.add_post(cases, self._post)
        app.router.add_get(cases, self._list)
        app.router.add_put(cases + "/{case_id}", self._put)
        app.router.add_get(cases + "/{case_id}", self._get)
        app.router.add_delete(cases + "/{case_id}", self._delete)
        app.router.add_post("/faults", self._set_faults)
        app.router.add_delete("/faults", self._clear_faults)
        app.router.add_post("/settings", self._set)
        app.router.add_post("/reset", self._reset)
        app.router.add_get("/ledger", self._ledger)
        app.router.add_get("/health", self._health)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Credentials and latency, for the modelled service and not for its switches."""
        if request.path.startswith("/modules/"):
            token = self._settings.token
            if token is not None and request.headers.get("Authorization") != f"Bearer {token}":
                return _json(401, {"error": "wrong or missing bearer token"})
            if self._settings.latency_ms:
                await asyncio.sleep(self._settings.latency_ms / 1_000)
        response: web.StreamResponse = await handler(request)
        return response

    async def _post(self, request: web.Request) -> web.Response:
        body = await _body(request)
        if not isinstance(body, dict) or not isinstance(body.get("case_id"), str):
            return _json(422, {"error": "a case needs a text 'case_id'"})
        key = request.headers.get("Idempotency-Key") or body.pop("idempotency_key", None)
        key = key if self._settings.keys and isinstance(key, str) else None
        module = request.match_info["module"]
        return await self._write(request, Order(module, body["case_id"], body, key))

    async def _put(self, request: web.Request) -> web.Response:
        body = await _body(request)
        if not isinstance(body, dict):
            return _json(422, {"error": "a case is an object"})
        module, case_id = request.match_info["module"], request.match_info["case_id"]
        body = {**body, "case_id": case_id}
        return await self._write(request, Order(module, case_id, body, None, natural=True))

    async def _write(self, request: web.Request, order: Order) -> web.Response:
        module, case_id = order.module, order.case_id
        refusal = self.faults.take(module, case_id, *_REFUSALS)
        if refusal is not None:
            return _refused(refusal)
        slow = self.faults.take(module, case_id, FaultKind.LATENCY)
        if slow is not None:
            await asyncio.sleep(slow.delay_ms / 1_000)
        if order.key in self._working:
            return _json(409, {"error": "a request with this key is still being worked on"})
        known = self._store.replay(order)
        refuses = known is None and self._settings.unique and not order.natural
        if refuses and self._store.exists(module, case_id):
            return _json(409, {"error": f"case {case_id!r} exists"})
        answer = known or await self._commit(order)
        lost = self.faults.take(module, case_id, *_LOSSES)
        if lost is None:
            return _answered(answer)
        if lost.kind is FaultKind.ERROR_500_AFTER_COMMIT:
            return _json(500, {"error": "internal error"})
        return await _vanish(request, lost)

    async def _commit(self, order: Order) -> Answer:
        """Apply the write as the switches want it: late, twice, wrong or invisible for a while."""
        module, case_id = order.module, order.case_id
        stored = dict(order.body)
        wrong = self.faults.take(module, case_id, FaultKind.WRONG_CONTENT)
        if wrong is not None:
            stored["title"] = wrong.title
        unseen = self.faults.take_unseen(module, case_id)
        lag_ms = self._settings.lag_ms if unseen is None else unseen.lag_ms
        order = replace(order, lag_ms=lag_ms)
        twice = self.faults.take(module, case_id, FaultKind.DUPLICATE_DELIVERY) is not None
        late = self.faults.take(module, case_id, FaultKind.LATE_COMMIT)
        if late is not None:
            task = asyncio.create_task(self._commit_late(order, stored, late))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            await asyncio.sleep(HANG_S)
        answer = self._store.write(order, stored)
        if twice:
            # The network delivered the request a second time: with a key nothing more happens.
            self._store.write(order, stored)
        return answer

    async def _commit_late(self, order: Order, stored: dict[str, Any], late: Fault) -> None:
        """Outlives its client: the request was on its way and lands when it lands."""
        if late.conflict and order.key is not None:
            self._working.add(order.key)
        await asyncio.sleep(late.delay_ms / 1_000)
        self._store.write(order, stored)
        self._working.discard(order.key or "")

    async def _get(self, request: web.Request) -> web.Response:
        module, case_id = request.match_info["module"], request.match_info["case_id"]
        await self._slow_read(module, case_id)
        found = self._store.one(module, case_id)
        return _json(404, {"error": "no such case"}) if found is None else _json(200, found)

    async def _list(self, request: web.Request) -> web.Response:
        module = request.match_info["module"]
        await self._slow_read(module, None)
        size = self._settings.page_size or PAGE_MAX
        after = request.query.get("after", "0")
        cases, more = self._store.page(module, int(after) if after.isdigit() else 0, size)
        link = None if more is None else f"{request.path}?after={more}"
        return _json(200, {"cases": cases, "next": link})

    async def _slow_read(self, module: str, case_id: str | None) -> None:
        slow = self.faults.take_slow(module, case_id)
        if slow is not None:
            await asyncio.sleep(slow.delay_ms / 1_000)

    async def _delete(self, request: web.Request) -> web.Response:
        module, case_id = request.match_info["module"], request.match_info["case_id"]
        refusal = self.faults.take(module, case_id, *_REFUSALS)
        if refusal is not None:
            return _refused(refusal)
        if not self._store.delete(module, case_id):
            return _json(404, {"error": "no such case"})
        return web.Response(status=204)

    async def _set_faults(self, request: web.Request) -> web.Response:
        try:
            wanted = msgspec.json.decode(await request.read(), type=Fault | list[Fault])
        except msgspec.MsgspecError as error:
            return _json(400, {"error": str(error)})
        for fault in wanted if isinstance(wanted, list) else [wanted]:
            self.faults.add(fault)
        return _json(200, {})

    async def _clear_faults(self, _: web.Request) -> web.Response:
        self.faults.clear()
        return _json(200, {})

    async def _set(self, request: web.Request) -> web.Response:
        try:
            wanted = {**msgspec.to_builtins(self._settings), **(await _body(request) or {})}
            self._settings = msgspec.convert(wanted, Settings)
        except (msgspec.ValidationError, TypeError) as error:
            return _json(400, {"error": str(error)})
        return _json(200, msgspec.to_builtins(self._settings))

    async def _reset(self, _: web.Request) -> web.Response:
        for task in self._late:
            task.cancel()
        self._working.clear()
        self.faults.clear()
        self._store.reset()
        return _json(200, {})

    async def _ledger(self, _: web.Request) -> web.Response:
        return _json(200, {"effects": self._store.ledger(), "late_pending": len(self._late)})

    async def _health(self, _: web.Request) -> web.Response:
        return _json(200, {"ok": True})


def _json(status: int, body: Any, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status,
        body=msgspec.json.encode(body),
        content_type="application/json",
        headers=headers,
    )


def _answered(answer: Answer) -> web.Response:
    headers = {"Idempotent-Replayed": "true"} if answer.replayed else None
    return _json(answer.status, answer.body, headers)


def _refused(fault: Fault) -> web.Response:
    wait = {"Retry-After": str(fault.retry_after_s)}
    if fault.kind is FaultKind.RATE_LIMITED:
        return _json(429, {"error": "slow down"}, wait)
    if fault.kind is FaultKind.UNAVAILABLE:
        return _json(503, {"error": "down for maintenance"}, wait)
    if fault.kind is FaultKind.REJECT:
        return _json(422, {"error": "a business rule forbids this case"})
    return _json(500, {"error": "internal error"})


async def _vanish(request: web.Request, fault: Fault) -> web.Response:
    """Committed, but the client never learns of it."""
    if fault.hang:
        await asyncio.sleep(HANG_S)
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _body(request: web.Request) -> Any:
    try:
        # Not msgspec: integers of any size keep every digit here.
        return json.loads(await request.read())
    except ValueError:
        raise web.HTTPBadRequest(
            text='{"error": "the body is not JSON"}', content_type="application/json"
        ) from None
