"""A raw server that answers byte by byte as scripted, and records every request that it saw."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from connectors.targets import HttpTarget, open_target
from tallystick.contracts import parse_contract
from tallystick.records import Intent, ReadbackRequest, WantedItem

T = TypeVar("T")
PAYLOAD = '{"case_id":"c1","steps":["a"],"title":"one"}'
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Seen:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass
class Wire:
    """The server's address and memory."""

    port: int = 0
    requests: list[Seen] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def reply(status: int, body: Any = None, headers: str = "", close: bool = False) -> Answer:
    """A whole answer; `headers` are raw lines."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(raw)}\r\n{headers}\r\n"
        writer.write(head.encode() + raw)
        await writer.drain()
        if close:
            writer.close()

    return answer


def raw(data: bytes) -> Answer:
    """These bytes, then the end of the connection."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return answer


async def hang(_: asyncio.StreamWriter) -> None:
    """Never answer."""
    await asyncio.sleep(60)


async def reset(writer: asyncio.StreamWriter) -> None:
    """RST instead of an answer."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def wire(*answers: Answer) -> AsyncIterator[Wire]:
    """A server that gives these answers in turn, the last one for ever."""
    seen = Wire()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        number = seen.connections
        tasks.add(asyncio.current_task())  # type: ignore[arg-type] # a handler is always a task
        try:
            while not writer.is_closing():
                seen.requests.append(await _request(reader, number))
                seen.arrived.set()
                await answers[min(len(seen.requests), len(answers)) - 1](writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return  # the client or the test is done with this connection
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _request(reader: asyncio.StreamReader, connection: int) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (x.split(": ", 1) for x in lines if x)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, path, headers, body, connection)


def document(**tool: Any) -> dict[str, Any]:
    """A contract of one tool `create`; keyword arguments override parts of the tool."""
    return {
        "name": "wired",
        "version": "1",
        "base_url": "${URL}",
        "tools": {
            "create": {
                "write": {"method": "POST", "path": "/m/{module}/cases"},
                "call_timeout_ms": 2_000,
                **tool,
            }
        },
    }


def target_at(url: str, contract: dict[str, Any], **env: str) -> HttpTarget:
    """The target of a contract whose base address is `url`."""
    return open_target(parse_contract(contract), {"URL": url, **env})


def intent(identity: str = "c1", payload: str = PAYLOAD, tool: str = "create") -> Intent:
    """An intent for one item."""
    return Intent(
        intent_id="a" * 63 + identity[-1:],
        commit_key="k",
        plan_hash="p",
        contract_name="wired",
        contract_hash="h",
        policy_hash="h",
        module="checkout",
        tool=tool,
        identity=identity,
        payload=payload,
        round=1,
        attempt=1,
        expires_at_ms=0,
    )


def asked(*wanted: tuple[str, str], tool: str = "create") -> ReadbackRequest:
    """A request to look for (identity, payload) pairs."""
    return ReadbackRequest(
        request_id="r1",
        commit_key="k",
        plan_hash="p",
        contract_name="wired",
        contract_hash="h",
        module="checkout",
        round=1,
        try_number=1,
        items=tuple(
            WantedItem(tool=tool, identity=identity, intent_id="i", payload=payload)
            for identity, payload in wanted
        ),
    )


def run(story: Coroutine[Any, Any, T]) -> T:
    """Run one async story within a bound, so that a hang fails by name."""
    return asyncio.run(asyncio.wait_for(story, 30))
