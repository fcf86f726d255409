"""One broker for a whole test session, shared by all xdist workers, started when first asked for.

The pytest process that the user started owns the broker: it waits on a socket in a thread of its
own and starts the broker at the first request. So no worker can take the broker down by ending
early, nothing is started for tests that need none, and a killed session leaves none behind.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Mapping
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener

import msgspec

from ops.broker import choose
from ops.broker.external import AttachedBroker, attach
from ops.broker.kinds import BrokerHandle, BrokerKind, BrokerState
from ops.broker.ports import HOST
from tallystick.errors import TallyError

KIND_SETTING = "TALLYSTICK_BROKER"
"""auto, apache, docker, embedded or external."""

BOOTSTRAP_SETTING = "TALLYSTICK_TEST_BOOTSTRAP"
"""Not TALLYSTICK_BOOTSTRAP: tests must never run against what that names by accident."""

TEST_KIND_SETTING = "TALLYSTICK_TEST_KIND"
"""What really runs at TALLYSTICK_TEST_BOOTSTRAP, when it is an embedded broker."""

SERVICE_SETTING = "TALLYSTICK_TEST_BROKER_SERVICE"
"""How workers find the owner: port and key; set by the owner, never by hand."""


class BrokerService:
    """Owns the session's broker. `ask` is called from any process of the session."""

    def __init__(self, env: Mapping[str, str] = os.environ) -> None:
        self._env = env
        self._handle: BrokerHandle | None = None
        self.notes: list[str] = []
        self.answer: dict[str, str] = {}
        self._key = secrets.token_bytes(16)
        self._listener = Listener((HOST, 0), backlog=64, authkey=self._key)
        # The broker is leashed to the thread that starts it, so this one lives to the end.
        self._thread = threading.Thread(target=self._serve, name="test-broker", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """For SERVICE_SETTING."""
        return f"{self._listener.address[1]}|{self._key.hex()}"

    def close(self) -> None:
        """End the broker, if one was started."""
        with contextlib.suppress(OSError, EOFError):
            _ask(self.address, "close")
        self._thread.join(timeout=30)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                with self._listener.accept() as client:
                    if client.recv() == "close":
                        break
                    self._reply(client)
            except (OSError, EOFError, AuthenticationError):
                continue  # a worker that died while asking, or a stranger on the port
        if self._handle is not None:
            self._handle.stop()

    def _reply(self, client: Connection) -> None:
        if not self.answer:
            try:
                self._handle = start_for_tests(self._env, self.notes)
                state = self._handle.state
                self.answer = {
                    "kind": state.kind,
                    "bootstrap": state.bootstrap,
                    "version": state.version,
                }
            except (TallyError, OSError) as error:
                self.answer = {"error": str(error)}
        client.send(self.answer)


def shared_broker() -> AttachedBroker:
    """The session's broker, from any of its processes; raises RuntimeError if none can run."""
    answer = _ask(os.environ[SERVICE_SETTING], "broker")
    if "error" in answer:
        raise RuntimeError(f"no broker for the tests: {answer['error']}")
    return AttachedBroker(msgspec.convert(answer, BrokerState))


def _ask(address: str, what: str) -> dict[str, str]:
    port, _, key = address.partition("|")
    with Client((HOST, int(port)), authkey=bytes.fromhex(key)) as service:
        service.send(what)
        return {} if what == "close" else service.recv()


def start_for_tests(env: Mapping[str, str], notes: list[str]) -> BrokerHandle:
    """The broker that the environment asks for; by default the first that works."""
    bootstrap = env.get(BOOTSTRAP_SETTING, "")
    wanted = env.get(KIND_SETTING, "auto")
    if wanted == BrokerKind.EXTERNAL or (wanted == "auto" and bootstrap):
        state = attach(bootstrap).state
        really = BrokerKind(env.get(TEST_KIND_SETTING, state.kind))
        return AttachedBroker(msgspec.structs.replace(state, kind=really))
    if wanted == "auto":
        return choose.start_first(say=notes.append)
    return choose.start(wanted, say=notes.append)


def plan_line(env: Mapping[str, str]) -> str:
    """What the session is going to use, and how to get the real thing, in one line."""
    bootstrap, wanted = env.get(BOOTSTRAP_SETTING, ""), env.get(KIND_SETTING, "auto")
    if wanted != "auto":
        return f"broker: {wanted} {bootstrap} ({KIND_SETTING})"
    if bootstrap:
        return f"broker: external {bootstrap} ({BOOTSTRAP_SETTING})"
    for kind in choose.ORDER:
        if not choose.missing(kind):
            break
    else:
        return "broker: none can run here; tests that need one fail"
    if kind is not BrokerKind.EMBEDDED:
        return f"broker: {kind}, started by the first test that needs one"
    why, fix = choose.missing(BrokerKind.APACHE), choose.how_to_get(BrokerKind.APACHE)
    return f"broker: {kind}; exactly-once tests need Apache Kafka, but {why}: {fix}"


def why_no_apache(env: Mapping[str, str]) -> str:
    """Why a test cannot have an Apache Kafka of its own; empty if it can."""
    if env.get(KIND_SETTING) == BrokerKind.EMBEDDED:
        return f"{KIND_SETTING}=embedded asks for no Apache Kafka"
    why = choose.missing(BrokerKind.APACHE)
    return why and f"{why}: {choose.how_to_get(BrokerKind.APACHE)}"
