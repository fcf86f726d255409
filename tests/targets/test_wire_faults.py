"""What the wire can do to a write: each fault made for real, each outcome as the table says."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

import aiohttp
import pytest

from connectors.targets.classify import WireFault
from connectors.targets.transport import Transport, name_fault
from tallystick.errors import OperatorError
from tallystick.records import AttemptOutcome, ErrorClass
from tests.targets.wire import (
    Answer,
    document,
    hang,
    intent,
    raw,
    reply,
    reset,
    run,
    target_at,
    wire,
)

PUT = {"write": {"method": "PUT", "path": "/m/{module}/{identity}"}, "key": {"style": "natural"}}


def test_a_put_on_a_reused_connection_that_closes_is_sent_exactly_once() -> None:
    """aiohttp would send it again by itself: a dispatch that no ledger knows of."""

    async def story() -> None:
        async with wire(reply(200, {}), raw(b"")) as server:
            target = target_at(server.url, document(**PUT))
            first = await target.write(intent())
            second = await target.write(intent("c2"))
            await target.close()

            assert first.outcome is AttemptOutcome.APPLIED
            assert second.outcome is AttemptOutcome.UNKNOWN
            assert second.code == "disconnected"
            assert [seen.path for seen in server.requests] == ["/m/checkout/c1", "/m/checkout/c2"]
            assert server.connections == 1

    run(story())


def test_aiohttp_does_resend_unless_it_is_told_not_to() -> None:
    """The test above can fail: with the switch as aiohttp leaves it, the server sees it twice."""

    async def story() -> None:
        async with wire(reply(200, {}), raw(b""), reply(200, {})) as server:
            async with aiohttp.ClientSession() as session:
                for name in ("c1", "c2"):
                    async with session.put(f"{server.url}/{name}", data=b"{}") as response:
                        await response.read()

            assert [seen.path for seen in server.requests] == ["/c1", "/c2", "/c2"]

    run(story())


def test_the_start_is_refused_when_the_resend_cannot_be_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        with pytest.raises(OperatorError, match="might send a write twice"):
            Transport(connections_max=1, keepalive_ms=0)

    monkeypatch.setattr("connectors.targets.transport._RESEND_SWITCH", "_gone")
    run(story())


FAULTS: list[tuple[Answer, str, str]] = [
    (hang, "unknown", "timeout"),
    (reset, "unknown", "connection_reset"),
    (raw(b""), "unknown", "disconnected"),
    (raw(b"HTTP/1.1 20"), "unknown", "disconnected"),
    (raw(b"SMTP ready\r\n\r\n"), "unknown", "garbled_response"),
    (reply(500), "unknown", "http_500"),
    (reply(502), "unknown", "http_502"),
    (reply(202), "unknown", "http_202"),
    (reply(303, headers="Location: /done\r\n"), "unknown", "http_303"),
    (reply(307, headers="Location: /again\r\n"), "rejected", "http_307"),
    (reply(401), "rejected", "http_401"),
    (reply(409), "exists", "http_409"),
    (reply(422), "rejected", "http_422"),
    (reply(429), "not_executed", "http_429"),
    (reply(503), "not_executed", "http_503"),
    (reply(204), "applied", "http_204"),
    # The status says it: a body that breaks off takes nothing back.
    (raw(b"HTTP/1.1 201 X\r\nContent-Length: 99\r\n\r\n{"), "applied", "http_201"),
]


@pytest.mark.parametrize(("answer", "outcome", "code"), FAULTS)
def test_what_the_wire_does_is_classified_and_asked_once(
    answer: Answer, outcome: str, code: str
) -> None:
    async def story() -> None:
        async with wire(answer) as server:
            # Only the answer that never comes needs the timeout to be short.
            patience_ms = 300 if answer is hang else 20_000
            target = target_at(server.url, document(call_timeout_ms=patience_ms))
            result = await target.write(intent())
            await target.close()

            assert (result.outcome, result.code) == (outcome, code)
            assert len(server.requests) == 1

    run(story())


def _closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def test_a_refused_connection_is_surely_not_executed() -> None:
    async def story() -> None:
        target = target_at(f"http://127.0.0.1:{_closed_port()}", document())
        result = await target.write(intent())
        await target.close()

        assert result.outcome is AttemptOutcome.NOT_EXECUTED
        assert result.error_class is ErrorClass.TRANSIENT
        assert result.code == "connection_refused"

    run(story())


def test_a_name_that_does_not_resolve_is_surely_not_executed() -> None:
    async def story() -> None:
        target = target_at("http://nowhere.invalid", document())
        result = await target.write(intent())
        await target.close()

        assert result.outcome is AttemptOutcome.NOT_EXECUTED
        assert result.code in ("name_not_resolved", "unreachable", "connect_timeout")

    run(story())


def test_a_server_that_speaks_no_tls_is_surely_not_executed() -> None:
    async def story() -> None:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 plain\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        target = target_at(f"https://127.0.0.1:{port}", document())
        result = await target.write(intent())
        await target.close()
        server.close()

        assert result.outcome is AttemptOutcome.NOT_EXECUTED
        assert (result.code, result.error_class) == ("tls_failed", ErrorClass.SETUP)

    run(story())


def test_every_error_of_the_library_has_a_name() -> None:
    """Whatever is not surely before the send counts as after it."""
    key: Any = type("Key", (), {"ssl": True, "host": "h", "port": 1, "is_ssl": True})()
    rows = [
        (aiohttp.ClientConnectorCertificateError(key, ssl.CertificateError("x")), WireFault.TLS),
        (aiohttp.ClientConnectorSSLError(key, OSError("x")), WireFault.TLS),
        (aiohttp.ClientConnectorDNSError(key, OSError("x")), WireFault.UNRESOLVED),
        (aiohttp.ClientConnectorError(key, ConnectionRefusedError("x")), WireFault.REFUSED),
        (aiohttp.ClientConnectorError(key, OSError("no route")), WireFault.UNREACHABLE),
        (aiohttp.ConnectionTimeoutError("x"), WireFault.CONNECT_TIMEOUT),
        (aiohttp.SocketTimeoutError("x"), WireFault.TIMEOUT),
        (TimeoutError(), WireFault.TIMEOUT),
        (aiohttp.ServerDisconnectedError(), WireFault.DISCONNECTED),
        (aiohttp.ClientPayloadError("x"), WireFault.DISCONNECTED),
        (aiohttp.ClientOSError("x"), WireFault.RESET),
        (ConnectionResetError(), WireFault.RESET),
        (aiohttp.ClientConnectionResetError(), WireFault.RESET),
        (aiohttp.ClientError("x"), WireFault.GARBLED),
    ]

    assert [name_fault(error) for error, _ in rows] == [fault for _, fault in rows]


def test_a_connection_that_does_not_come_in_time_sends_nothing() -> None:
    """A full backlog keeps the handshake waiting, as a firewall that drops packets does."""

    async def story() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            port = full.getsockname()[1]
            waiting = [socket.socket() for _ in range(4)]
            for sock in waiting:
                sock.setblocking(False)
                sock.connect_ex(("127.0.0.1", port))
            target = target_at(f"http://127.0.0.1:{port}", document())
            result = await target.write(intent(), send_within_ms=200)
            await target.close()
            for sock in waiting:
                sock.close()

            assert result.outcome is AttemptOutcome.NOT_EXECUTED
            assert result.code == "connect_timeout"

    run(story())


def test_waiting_for_a_free_connection_counts_against_the_send_window() -> None:
    async def story() -> None:
        async with wire(hang) as server:
            contract = {**document(call_timeout_ms=1_500), "concurrency_max": 1}
            target = target_at(server.url, contract)
            first = asyncio.create_task(target.write(intent()))
            await server.arrived.wait()
            second = await target.write(intent("c2"), send_within_ms=100)
            result = await first
            await target.close()

            assert second.outcome is AttemptOutcome.NOT_EXECUTED
            assert result.outcome is AttemptOutcome.UNKNOWN
            assert len(server.requests) == 1

    run(story())


def test_neither_proxy_nor_cookie_comes_between(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with wire(reply(200, {}, headers="Set-Cookie: a=b\r\n")) as server:
            target = target_at(server.url, document())
            results = [await target.write(intent()), await target.write(intent("c2"))]
            await target.close()

            assert {result.outcome for result in results} == {AttemptOutcome.APPLIED}
            assert all("cookie" not in seen.headers for seen in server.requests)

    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{_closed_port()}")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{_closed_port()}")
    run(story())


@pytest.mark.parametrize(
    ("answer", "outcome", "code", "ref"),
    [
        (reply(201, {"id": "x-1"}), "applied", "http_201", "x-1"),
        (reply(201, {"id": 12345678901234567890}), "applied", "http_201", "12345678901234567890"),
        (reply(201, {"id": "x-1"}, "Idempotent-Replayed: true\r\n"), "applied", "http_201", "x-1"),
        (reply(201, {}), "unknown", "reference_missing", None),
        (reply(201, {"id": None}), "unknown", "reference_missing", None),
        (reply(201, {"id": ""}), "unknown", "reference_missing", None),
        (reply(201, {"id": ["x"]}), "unknown", "reference_missing", None),
        (reply(201, b"not json"), "unknown", "reference_missing", None),
        (reply(204), "unknown", "reference_missing", None),
        (raw(b'HTTP/1.1 201 X\r\nContent-Length: 99\r\n\r\n{"id": "x"'), "unknown",
         "reference_missing", None),
    ],
)  # fmt: skip
def test_an_acknowledgement_without_the_targets_id_proves_nothing(
    answer: Answer, outcome: str, code: str, ref: str | None
) -> None:
    async def story() -> None:
        async with wire(answer) as server:
            response = {"ref": "/id", "acknowledgement": True}
            target = target_at(server.url, document(response=response))
            result = await target.write(intent())
            await target.close()

            assert (result.outcome, result.code, result.target_ref) == (outcome, code, ref)

    run(story())


def test_retry_after_reaches_the_ledger() -> None:
    async def story() -> Any:
        async with wire(reply(429, {}, headers="Retry-After: 3\r\n")) as server:
            target = target_at(server.url, document())
            result = await target.write(intent())
            await target.close()
            return result.retry_after_ms

    assert run(story()) == 3_000


def test_a_tool_that_the_contract_lacks_is_refused_without_a_request() -> None:
    async def story() -> None:
        async with wire(reply(200)) as server:
            target = target_at(server.url, document())
            result = await target.write(intent(tool="other"))
            await target.close()

            assert (result.outcome, result.code) == (AttemptOutcome.REJECTED, "unknown_tool")
            assert server.requests == []

    run(story())
