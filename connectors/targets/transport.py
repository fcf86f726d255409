"""HTTP over aiohttp, exactly one request a call: no resend, no redirect, no proxy, no cookies.

aiohttp resends idempotent methods once when a reused connection turns out closed. That is a
second dispatch which no ledger knows of, so it is switched off, and the start is refused if the
switch is gone. What a failure means is decided in `classify.py`; this file only names it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from yarl import URL

from connectors.targets.classify import WireFault
from tallystick.errors import OperatorError

READ_CHUNK_BYTES = 65_536
"""How much of a body is taken at once. Lower: more steps for a large listing. Higher: a body
overshoots its bound by that much before it is noticed."""

_RESEND_SWITCH = "_retry_connection"


class CallFailed(Exception):
    """The call ended without a status."""

    def __init__(self, fault: WireFault, detail: str) -> None:
        super().__init__(detail)
        self.fault, self.detail = fault, detail


@dataclass(frozen=True, slots=True)
class Reply:
    """A final status with what could be read of its body; `flaw` says what could not."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    flaw: str = ""


class Transport:
    """A pool of connections to one target; made inside a running event loop."""

    def __init__(self, *, connections_max: int, keepalive_ms: int) -> None:
        # An idle connection that the target has closed is found out only by writing into it,
        # and then the write's outcome is unknown: reuse ends before the target's own patience.
        connector = (
            aiohttp.TCPConnector(limit=connections_max, keepalive_timeout=keepalive_ms / 1_000)
            if keepalive_ms
            else aiohttp.TCPConnector(limit=connections_max, force_close=True)
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            headers={"User-Agent": "tallystick", "Accept": "application/json"},
        )
        _switch_off_resend(self._session)

    async def send(
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        timeout_ms: int,
        connect_ms: int,
        body_bytes_max: int,
    ) -> Reply:
        """One request, one reply; raises CallFailed where there is no status.

        `timeout_ms` covers everything; `connect_ms` covers the wait for the pool and the handshake.
        """
        # A connect that ends with the whole call could not be told from one that was sent.
        connect_ms = min(connect_ms, timeout_ms - timeout_ms // 8)
        limits = aiohttp.ClientTimeout(
            total=timeout_ms / 1_000,
            connect=max(connect_ms, 1) / 1_000,
            ceil_threshold=timeout_ms,  # never rounded up: the ledger counts on these bounds
        )
        try:
            response = await self._session.request(
                method, url, headers=headers, data=body, timeout=limits, allow_redirects=False
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise CallFailed(name_fault(error), _words(error)) from error
        async with response:
            return await _received(response, body_bytes_max)

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()


async def _received(response: aiohttp.ClientResponse, body_bytes_max: int) -> Reply:
    """The body up to its bound; a body that breaks off leaves the status valid."""
    taken = bytearray()
    flaw = ""
    try:
        while len(taken) <= body_bytes_max:
            chunk = await response.content.read(READ_CHUNK_BYTES)
            if not chunk:
                break
            taken += chunk
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        flaw = name_fault(error).value
    if len(taken) > body_bytes_max:
        flaw = "body_too_large"
        response.close()
    return Reply(response.status, response.headers, bytes(taken[:body_bytes_max]), flaw)


def name_fault(error: BaseException) -> WireFault:
    """Which wire fault an exception is; whatever is not surely before the send is after it."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return WireFault.CONNECT_TIMEOUT
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return WireFault.UNRESOLVED
    if isinstance(error, (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch)):
        # All children of the connector's errors: raised while connecting, before any request.
        return WireFault.TLS
    if isinstance(error, aiohttp.ClientConnectorError):
        refused = isinstance(error.os_error, ConnectionRefusedError)
        tls = isinstance(error.os_error, ssl.SSLError)
        return WireFault.REFUSED if refused else WireFault.TLS if tls else WireFault.UNREACHABLE
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return WireFault.TIMEOUT
    if isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError)):
        return WireFault.DISCONNECTED
    return WireFault.RESET if isinstance(error, OSError) else WireFault.GARBLED


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _switch_off_resend(session: aiohttp.ClientSession) -> None:
    if not hasattr(session, _RESEND_SWITCH):
        session.detach()
        raise OperatorError(
            f"aiohttp {aiohttp.__version__} has no {_RESEND_SWITCH} any more, so it might send a "
            "write twice",
            where="HTTP target",
            fix="install the aiohttp version that the lock file names",
        )
    session._retry_connection = False  # noqa: SLF001 - the only switch there is
