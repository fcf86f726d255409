"""The settings of a small Apache Kafka cluster on one machine, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ops.broker.ports import HOST


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One combined broker and controller: its number from 1, its ports, its folder."""

    node_id: int
    port: int
    controller_port: int
    folder: Path

    @property
    def config(self) -> Path:
        """Its server.properties."""
        return self.folder / "server.properties"

    @property
    def log(self) -> Path:
        """What the JVM prints."""
        return self.folder / "node.log"


INTERNAL_PARTITIONS = 4
"""Of the offsets and transaction topics. Kafka's 50 make the first use of a fresh broker slow;
1 would hide faults that need coordinators on different nodes."""

REPLICAS_MAX = 3
"""More nodes than this make no test stronger and two cores too slow."""


def server_properties(nodes: Sequence[NodePlan], node: NodePlan) -> str:
    """One node's server.properties; one node keeps one copy, three keep three and need two."""
    copies = min(len(nodes), REPLICAS_MAX)
    in_sync = 2 if copies >= REPLICAS_MAX else 1
    voters = ",".join(f"{each.node_id}@{HOST}:{each.controller_port}" for each in nodes)
    settings = {
        "process.roles": "broker,controller",
        "node.id": node.node_id,
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://{HOST}:{node.port},CONTROLLER://{HOST}:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": node.folder / "data",
        **cluster_settings(copies, in_sync),
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def cluster_settings(copies: int, in_sync: int) -> dict[str, object]:
    """What is the same on every node, and in the Docker image."""
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": INTERNAL_PARTITIONS,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": INTERNAL_PARTITIONS,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": INTERNAL_PARTITIONS,
        # A new group starts at once instead of waiting 3 s for more members.
        "group.initial.rebalance.delay.ms": 0,
        # Lets a test see a dead member after a second instead of six.
        "group.min.session.timeout.ms": 1000,
        # A crashed node cannot register again before its old session has ended; Kafka's 9 s
        # would be waited for in full by each restart. Lower fences nodes on a busy machine.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        # How late a dead producer's open transaction is noticed after its timeout.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        # The broker checks that a partition belongs to the transaction (KIP-890, rule 15).
        "transaction.partition.verification.enable": "true",
        # Topics come from the catalogue; a typing error must not make one.
        "auto.create.topics.enable": "false",
        # Each partition maps two index files of this size; Kafka's 10 MiB times thousands of
        # short-lived test partitions runs into the system's limit on mappings.
        "log.index.size.max.bytes": 1_048_576,
        "log.segment.delete.delay.ms": 1000,
        "controlled.shutdown.max.retries": 1,
    }


LOGGING = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.showThreadName=false",
    "-Dorg.slf4j.simpleLogger.showShortLogName=true",
)
"""Warnings and errors only: a whole test run's log stays small enough to read."""
