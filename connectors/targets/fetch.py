"""One fresh GET of a JSON document. A read may be asked twice, which a write never is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from yarl import URL

from connectors.targets.classify import WireFault
from connectors.targets.details import bounded, explain
from connectors.targets.transport import CallFailed, Reply, Transport
from tallystick.canonical import parse_json
from tallystick.contract_pointers import MISSING
from tallystick.errors import CanonicalError

READ_BODY_BYTES_MAX = 32 * 1024 * 1024
"""Largest page of a read-back. Lower: a large module cannot be verified. Higher: one read can
take the worker's memory."""

FRESH = {"Cache-Control": "no-cache", "Pragma": "no-cache"}
"""Passes every cache on the way (RFC 9111, 5.2.1.4); a stale copy is no evidence."""

_STALE_CONNECTION = frozenset({WireFault.RESET, WireFault.DISCONNECTED})


class ReadFailed(Exception):
    """This read established nothing."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


class Fetcher:
    """Reads JSON with the contract's credentials."""

    def __init__(
        self, transport: Transport, headers: Mapping[str, str], hide: Callable[[str], str]
    ) -> None:
        self._transport = transport
        self._headers = {**headers, **FRESH}
        self._hide = hide

    async def get(self, url: URL, timeout_ms: int, *, absent_ok: bool) -> Any:
        """The document, or MISSING for 404 and 410 where `absent_ok`; raises ReadFailed."""
        reply = await self._reply(url, timeout_ms)
        if absent_ok and reply.status in (404, 410):
            return MISSING
        if reply.status != 200:
            raise ReadFailed(f"http_{reply.status}", explain(reply.body, self._hide))
        if reply.flaw:
            raise ReadFailed(reply.flaw, "the answer could not be read to its end")
        try:
            return parse_json(reply.body)
        except CanonicalError as error:
            raise ReadFailed("not_json", bounded(self._hide(str(error)))) from error

    async def _reply(self, url: URL, timeout_ms: int) -> Reply:
        try:
            return await self._once(url, timeout_ms)
        except CallFailed as failure:
            if failure.fault not in _STALE_CONNECTION:
                raise self._failed(failure) from failure
        # An idle connection was closed under us. Reading again harms nobody.
        try:
            return await self._once(url, timeout_ms)
        except CallFailed as failure:
            raise self._failed(failure) from failure

    async def _once(self, url: URL, timeout_ms: int) -> Reply:
        return await self._transport.send(
            "GET",
            url,
            self._headers,
            None,
            timeout_ms=timeout_ms,
            connect_ms=timeout_ms,
            body_bytes_max=READ_BODY_BYTES_MAX,
        )

    def _failed(self, failure: CallFailed) -> ReadFailed:
        return ReadFailed(failure.fault.value, bounded(self._hide(failure.detail)))
