"""Apache Kafka itself, in KRaft mode: one node, or three that can be killed one by one.

Knows how to lay out, format, start and hurt a cluster; not what is done with it.
"""

from __future__ import annotations

import atexit
import base64
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ops.broker import jars
from ops.broker.kinds import BrokerHandle, BrokerKind, BrokerState, Node, Say, quiet
from ops.broker.kraft import LOGGING, NodePlan, server_properties
from ops.broker.ports import HOST, free_ports
from ops.broker.probe import wait_ready
from ops.broker.processes import ProcessRef, end, is_alive, send, spawn, tail
from tallystick.errors import BrokerUnavailable, CallerError, OperatorError

READY_S = 90.0
"""A start takes 4 s on two idle cores; lower fails on a machine that runs tests beside it."""

GRACE_S = 10.0
"""For a clean end of a broker that keeps its data; a killed one only starts slower."""

CLASHES_MAX = 3
"""Starts with new ports after another process was quicker to bind one of ours."""

JVM = ("-Xms256m", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""Quick to start, small enough for three on one machine. For long benchmarks set
TALLYSTICK_KAFKA_JVM, e.g. `-Xmx1g` alone, to get the JVM's own compilers."""

PickPorts = Callable[[int, Sequence[int]], list[int]]


class ApacheBroker(BrokerHandle):
    """A cluster of our own. Nodes are numbered from 1, as in Kafka's `node.id`."""

    def __init__(
        self,
        plans: Sequence[NodePlan],
        processes: Mapping[int, ProcessRef],
        *,
        launch: Callable[[NodePlan], ProcessRef],
        state_dir: Path,
        throw_away: bool,
    ) -> None:
        self._plans = {plan.node_id: plan for plan in plans}
        self._processes = dict(processes)
        self._launch = launch
        self._state_dir = state_dir
        self._throw_away = throw_away

    @property
    def state(self) -> BrokerState:
        """What runs now."""
        return BrokerState(
            kind=BrokerKind.APACHE,
            bootstrap=bootstrap_of(list(self._plans.values())),
            version=jars.KAFKA_VERSION,
            state_dir=str(self._state_dir),
            nodes=tuple(
                Node(number, plan.port, plan.controller_port, self._processes[number])
                for number, plan in self._plans.items()
            ),
        )

    def stop(self) -> None:
        """End every node; data made for this handle alone is removed, so it is not flushed."""
        end(list(self._processes.values()), grace_s=0 if self._throw_away else GRACE_S)
        if self._throw_away:
            shutil.rmtree(self._state_dir, ignore_errors=True)

    def kill_node(self, node_id: int = 1) -> None:
        """SIGKILL one node, as a crash does."""
        end([self._process(node_id)], grace_s=0)

    def pause_node(self, node_id: int = 1) -> None:
        """SIGSTOP one node: connections stay open and nothing answers."""
        send(self._process(node_id), signal.SIGSTOP)

    def resume_node(self, node_id: int = 1) -> None:
        """SIGCONT a paused node."""
        send(self._process(node_id), signal.SIGCONT)

    def restart_node(self, node_id: int = 1, *, within_s: float = READY_S) -> None:
        """Start a killed node again, same ports and data; returns when all nodes answer."""
        end([self._process(node_id)], grace_s=0)
        self._processes[node_id] = self._launch(self._plans[node_id])
        self.wait_ready(within_s=within_s)

    def wait_ready(self, *, within_s: float = READY_S) -> None:
        """Wait until every living node is in the cluster and transactions begin."""
        living = [number for number, ref in self._processes.items() if is_alive(ref)]
        wait_ready(
            self.bootstrap,
            brokers=len(living),
            within_s=within_s,
            still_alive=lambda: _check_alive(
                [(self._plans[number], self._processes[number]) for number in living]
            ),
        )

    def _process(self, node_id: int) -> ProcessRef:
        if node_id not in self._processes:
            raise CallerError(
                f"there is no node {node_id}", where="apache", fix=f"1 to {len(self._plans)}"
            )
        return self._processes[node_id]


def bootstrap_of(plans: Sequence[NodePlan]) -> str:
    """The `bootstrap.servers` of these nodes."""
    return ",".join(f"{HOST}:{plan.port}" for plan in plans)


def start(
    nodes: int = 1,
    *,
    state_dir: Path | None = None,
    survive: bool = False,
    preferred_ports: Sequence[int] = (),
    say: Say = quiet,
    pick_ports: PickPorts = free_ports,
    env: Mapping[str, str] = os.environ,
) -> ApacheBroker:
    """Start one or three nodes and return when they take transactions.

    Without `state_dir` the data lies in a temporary folder and goes with the handle. Without
    `survive` the nodes die with this process, even when it is killed. Raises OperatorError if
    Java or Maven is missing, BrokerUnavailable with the log's last lines if no start succeeds.
    """
    if nodes not in (1, 3):
        raise CallerError(f"{nodes} nodes make no quorum", where="--nodes", fix="use 1 or 3")
    libs = jars.resolve(env, say)
    home = state_dir or Path(tempfile.mkdtemp(prefix="tallystick-kafka-"))
    launcher = _Launcher(jars.find_java(env) or "java", libs, env, leashed=not survive)
    throw_away = state_dir is None
    try:
        for clash in range(CLASHES_MAX):
            preferred = preferred_ports if clash == 0 else ()
            plans = _lay_out(home, nodes, pick_ports(2 * nodes, preferred))
            launcher.format(plans)
            say(f"starting Apache Kafka {jars.KAFKA_VERSION}, {_count(nodes)}")
            refs = {plan.node_id: launcher.launch(plan) for plan in plans}
            broker = ApacheBroker(
                plans, refs, launch=launcher.launch, state_dir=home, throw_away=throw_away
            )
            try:
                broker.wait_ready()
            except _PortTaken:
                say("another process took one of the ports; trying others")
                end(list(refs.values()), grace_s=0)
            except BaseException:
                end(list(refs.values()), grace_s=0)
                raise
            else:
                if not survive:
                    atexit.register(broker.stop)
                return broker
    except BaseException:
        if throw_away:
            shutil.rmtree(home, ignore_errors=True)
        raise
    raise BrokerUnavailable(
        f"ports were taken by others in {CLASHES_MAX} starts",
        where="apache",
        fix="look at what opens listening ports on this machine",
    )


class _PortTaken(BrokerUnavailable):
    """Another process bound a port between our choice and the node's start."""


class _Launcher:
    """Runs Kafka's two programs with one Java and one set of jars."""

    def __init__(self, java: str, libs: Path, env: Mapping[str, str], *, leashed: bool) -> None:
        self._java = java
        self._libs = libs
        self._env = env
        self._leashed = leashed

    def format(self, plans: Sequence[NodePlan]) -> None:
        """Format the folders that are new, all with one cluster id and side by side."""
        fresh = [plan for plan in plans if not _cluster_id(plan)]
        cluster_id = next((found for plan in plans if (found := _cluster_id(plan))), _new_id())
        running = [(plan, self._format_one(plan, cluster_id)) for plan in fresh]
        for plan, process in running:
            output, _ = process.communicate()
            if process.returncode != 0:
                raise OperatorError(
                    f"the storage folder cannot be formatted: {output.decode(errors='replace')}",
                    where=str(plan.folder),
                    fix="check the disk and the folder's owner",
                )

    def _format_one(self, plan: NodePlan, cluster_id: str) -> subprocess.Popen[bytes]:
        tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(plan.config))
        return subprocess.Popen(
            self._argv(*tool),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(self._env),
        )

    def launch(self, plan: NodePlan) -> ProcessRef:
        """Start one node; it is not ready yet."""
        return spawn(
            self._argv("kafka.Kafka", str(plan.config), jvm=self._jvm()),
            log=plan.log,
            leashed=self._leashed,
            env=self._env,
        )

    def _jvm(self) -> list[str]:
        named = self._env.get("TALLYSTICK_KAFKA_JVM")
        return [*(named.split() if named else JVM), *LOGGING]

    def _argv(self, *program: str, jvm: Sequence[str] = JVM) -> list[str]:
        return [self._java, *jvm, "-cp", f"{self._libs}/*", *program]


def _lay_out(home: Path, nodes: int, ports: Sequence[int]) -> list[NodePlan]:
    held = len(list(home.glob("node-*/data")))
    if held not in (0, nodes):
        raise OperatorError(
            f"holds the data of {_count(held)}, not of {_count(nodes)}",
            where=str(home),
            fix="give --state-dir another folder, or `tallystick broker down --wipe` first",
        )
    plans = [
        NodePlan(number, ports[number - 1], ports[nodes + number - 1], home / f"node-{number}")
        for number in range(1, nodes + 1)
    ]
    for plan in plans:
        plan.folder.mkdir(parents=True, exist_ok=True)
        plan.config.write_text(server_properties(plans, plan), encoding="utf-8")
        plan.log.write_bytes(b"")
    return plans


def _check_alive(nodes: Sequence[tuple[NodePlan, ProcessRef]]) -> None:
    for plan, ref in nodes:
        if is_alive(ref):
            continue
        last_words = tail(plan.log)
        kind = _PortTaken if "already in use" in plan.log.read_text("utf-8", "replace") else None
        raise (kind or BrokerUnavailable)(
            f"node {plan.node_id} ended while starting: {last_words}",
            where=str(plan.log),
            fix="read the log",
        )


def _cluster_id(plan: NodePlan) -> str:
    """The id that the node's folder was formatted with; empty if it is new."""
    try:
        text = (plan.folder / "data" / "meta.properties").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    return dict(line.partition("=")[::2] for line in text.splitlines()).get("cluster.id", "")


def _new_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _count(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes} nodes"
