"""The HTTP target: one attempt a call, classified; fresh reads; nothing decided, nothing kept."""

from __future__ import annotations

import time
from collections.abc import Mapping

from yarl import URL

from connectors.targets.base import CallResult
from connectors.targets.classify import Verdict, classify_fault, classify_status
from connectors.targets.compare import text_at
from connectors.targets.details import bounded, explain
from connectors.targets.fetch import Fetcher
from connectors.targets.mapping import Unsendable, WriteMapping, WriteRequest
from connectors.targets.readback import Reader
from connectors.targets.retry_after import retry_after_ms
from connectors.targets.secrets import Credentials, credentials, expand
from connectors.targets.transport import CallFailed, Reply, Transport
from tallystick.canonical import parse_json
from tallystick.contract_pointers import parse_pointer
from tallystick.contracts import Contract, Tool
from tallystick.errors import CanonicalError, OperatorError
from tallystick.protocol import SEND_WINDOW_MS
from tallystick.records import (
    AttemptOutcome,
    ErrorClass,
    Intent,
    Readback,
    ReadbackRequest,
)

WRITE_BODY_BYTES_MAX = 1_048_576
"""Largest answer to a write that is read. Lower: ids at the end of large answers are lost.
Higher: a target that echoes everything slows each write."""

_ACKNOWLEDGED = (AttemptOutcome.APPLIED, AttemptOutcome.EXISTS)


class HttpTarget:
    """One target system behind one contract; made inside a running event loop."""

    def __init__(self, contract: Contract, env: Mapping[str, str], *, reader: str = "") -> None:
        document = contract.document
        secrets = credentials(document.auth, env, contract.name)
        base = _base_url(document.base_url, env, contract.name)
        self._reader_name = reader
        self._tools = contract.tools
        self._secrets = secrets
        self._writes = {name: WriteMapping(base, tool) for name, tool in contract.tools.items()}
        self._transport = Transport(
            connections_max=document.concurrency_max, keepalive_ms=document.keepalive_ms
        )
        fetcher = Fetcher(self._transport, secrets.headers, secrets.hide)
        self._reader = Reader(base, contract.tools, fetcher, document.concurrency_max)

    async def write(self, intent: Intent, *, send_within_ms: int | None = None) -> CallResult:
        """Make exactly one attempt under the pinned key."""
        started = time.monotonic()
        mapping = self._writes.get(intent.tool)
        if mapping is None:
            return _unsent(Unsendable("unknown_tool", f"no tool {intent.tool!r} in the contract"))
        try:
            request = mapping.request(intent)
        except Unsendable as fault:
            return _unsent(fault)
        tool = self._tools[intent.tool]
        connect_ms = SEND_WINDOW_MS if send_within_ms is None else send_within_ms
        try:
            reply = await self._send(request, tool, connect_ms)
        except CallFailed as failure:
            return _result(
                classify_fault(failure.fault),
                failure.fault.value,
                bounded(self._secrets.hide(failure.detail)),
                _since(started),
            )
        return _judge_reply(reply, tool, self._secrets, _since(started))

    async def _send(self, request: WriteRequest, tool: Tool, connect_ms: int) -> Reply:
        return await self._transport.send(
            request.method,
            request.url,
            {**request.headers, **self._secrets.headers},
            request.body,
            timeout_ms=tool.call_timeout_ms,
            connect_ms=connect_ms,
            body_bytes_max=WRITE_BODY_BYTES_MAX,
        )

    async def read(self, request: ReadbackRequest) -> Readback:
        """Look freshly at every wanted item."""
        started = time.monotonic()
        seen = await self._reader.read(request)
        return Readback(
            request_id=request.request_id,
            commit_key=request.commit_key,
            plan_hash=request.plan_hash,
            found=seen.found,
            unplanned=seen.unplanned,
            error=seen.error,
            detail=seen.detail,
            reader=self._reader_name,
            elapsed_ms=_since(started),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()


def open_target(contract: Contract, env: Mapping[str, str], *, reader: str = "") -> HttpTarget:
    """The contract's target, its credentials read from `env`; call it inside the event loop.

    Raises OperatorError naming a variable that is not set or an address that is none.
    """
    return HttpTarget(contract, env, reader=reader)


def _base_url(text: str, env: Mapping[str, str], contract: str) -> str:
    where = f"contract {contract!r}: base_url"
    try:
        url = URL(expand(text, env, where))
        # Name resolution would raise on a label that is empty or too long: it is found out here.
        named = bool((url.host or "").encode("idna"))
        usable = named and url.scheme in ("http", "https") and not url.query_string
    except ValueError:
        usable = False
    if not usable or url.user is not None or url.fragment:
        # The value may hold a secret by mistake, so it is not shown.
        raise OperatorError(
            f"{text!r} does not stand for an http address without credentials, query or fragment",
            where=where,
            fix="set it to something like https://host/path",
        )
    return str(url).rstrip("/")


def _judge_reply(reply: Reply, tool: Tool, secrets: Credentials, elapsed_ms: int) -> CallResult:
    """The status decides; only a missing acknowledgement can take a success back."""
    verdict = classify_status(reply.status, tool.key.style, tool.errors)
    code = f"http_{reply.status}"
    if verdict.outcome is AttemptOutcome.APPLIED:
        ref = _target_ref(reply, tool)
        if ref is None and tool.response.acknowledgement:
            lost = Verdict(AttemptOutcome.UNKNOWN, ErrorClass.SETUP)
            said = f"{code} without the target's id at {tool.response.ref}"
            return _result(lost, "reference_missing", said, elapsed_ms)
        return _result(verdict, code, "", elapsed_ms, target_ref=ref)
    return _result(
        verdict,
        code,
        explain(reply.body, secrets.hide),
        elapsed_ms,
        target_ref=_target_ref(reply, tool) if verdict.outcome in _ACKNOWLEDGED else None,
        retry_ms=retry_after_ms(reply.headers.get("Retry-After"), int(time.time() * 1_000)),
    )


def _target_ref(reply: Reply, tool: Tool) -> str | None:
    """The target's own id in the answer; None where there is none to be read."""
    if tool.response.ref is None or reply.flaw:
        return None
    try:
        return text_at(parse_json(reply.body), parse_pointer(tool.response.ref))
    except CanonicalError:
        return None


def _unsent(fault: Unsendable) -> CallResult:
    verdict = Verdict(AttemptOutcome.REJECTED, ErrorClass.SCHEMA)
    return _result(verdict, fault.code, bounded(fault.detail), 0)


def _result(
    verdict: Verdict,
    code: str,
    detail: str,
    elapsed_ms: int,
    *,
    target_ref: str | None = None,
    retry_ms: int | None = None,
) -> CallResult:
    return CallResult(
        outcome=verdict.outcome,
        error_class=verdict.error_class,
        code=code,
        detail=detail,
        retry_after_ms=retry_ms if verdict.outcome is AttemptOutcome.NOT_EXECUTED else None,
        target_ref=target_ref,
        elapsed_ms=elapsed_ms,
    )


def _since(started: float) -> int:
    return int((time.monotonic() - started) * 1_000)
