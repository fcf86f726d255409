"""How a dispatcher or reader process runs: addresses, bounds, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.catalogue import message_bytes_max
from tallystick.errors import CallerError
from tallystick.topics import DEFAULT_PREFIX, check_prefix

KafkaValue = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSettings:
    """Settings of one connector process; `slot` is stable and unique among its kind."""

    bootstrap: str
    slot: str
    prefix: str = DEFAULT_PREFIX
    kafka: Mapping[str, KafkaValue] = field(default_factory=dict)

    in_flight_max: int = 64
    """Calls at the same time. Lower: a slow target is used badly. Higher: what is claimed waits
    for its turn, and its send window passes."""

    batch_records_max: int = 64
    """Intents in one claim. Higher: a crash after the claim loses more outcomes at once."""

    session_timeout_ms: int = 10_000
    """Lower: a pause of the machine costs the partitions. Higher: a dead process's partitions
    stand still for longer."""

    heartbeat_ms: int = 500
    """Higher: a rebalance takes longer."""

    poll_gap_ms_max: int = 300_000
    """`max.poll.interval.ms`; waiting for room in flight must fit in."""

    poll_s: float = 0.1
    """Longest wait in one poll; a record ends it at once. Higher: stopping takes longer."""

    transaction_timeout_ms: int = 12_000
    """Higher: a dead dispatcher's open claim blocks committed reads for longer (engine rule 6)."""

    message_timeout_ms: int = 8_000
    """Must stay below the transaction's timeout (engine rule 6)."""

    message_bytes_max: int = message_bytes_max()
    """Largest record of any topic. Lower: a large answer never reaches the log."""

    commit_try_ms: int = 2_000
    """One try of a commit, repeated until `broker_stuck_ms`."""

    broker_stuck_ms: int = 60_000
    """Longest that a transactional call may take before the watchdog ends the process (engine
    rule 12). Lower: a broker's restart kills dispatchers."""

    drain_s: float = 10.0
    """How long calls in flight may take to end on a clean stop; then their claims expire."""

    def __post_init__(self) -> None:
        check_prefix(self.prefix)
        if not self.slot:
            raise CallerError("slot is empty", where="connector settings", fix="name the process")
        if self.in_flight_max < 1 or self.batch_records_max < 1:
            raise CallerError("bounds must be positive", where="connector settings")

    @property
    def client_config(self) -> dict[str, KafkaValue]:
        """What every Kafka client of the process shares."""
        return {"bootstrap.servers": self.bootstrap, **self.kafka}
