"""How one worker runs its stages: addresses, time bounds and sizes, frozen and checked at start.

Units stand last in every name. Each bound says what breaks if it is lower, and higher.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tallystick.errors import CallerError
from tallystick.topics import DEFAULT_PREFIX, check_prefix

KafkaValue = str | int | float | bool
KafkaConfig = dict[str, KafkaValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """Settings of every loop in one worker process.

    `slot` is stable and unique among the workers of a tenant (a StatefulSet's pod name, say):
    transactional ids and group instance ids are made of it (engine rule 5). `state_dir` belongs
    to this slot alone (engine rule 25). `kafka` is added to every client (TLS, SASL).
    """

    bootstrap: str
    slot: str
    state_dir: Path
    prefix: str = DEFAULT_PREFIX
    kafka: Mapping[str, KafkaValue] = field(default_factory=dict)

    session_timeout_ms: int = 10_000
    """Lower: a pause of the machine costs the partitions. Higher: a dead worker's partitions
    stand still for longer."""

    heartbeat_ms: int = 500
    """Lower: needless requests. Higher: members learn of a rebalance later, and it takes longer.
    A third of the session timeout is used where that is less."""

    poll_gap_ms_max: int = 60_000
    """`max.poll.interval.ms`. Lower: a slow batch loses its partitions. Higher: a hung fold keeps
    its partitions for longer."""

    transaction_timeout_ms: int = 12_000
    """Engine rule 6. Lower than the slowest batch and commit: good work is aborted. Higher: a dead
    worker's open transaction blocks committed reads for longer."""

    message_timeout_ms: int = 8_000
    """Must stay below `transaction_timeout_ms` (engine rule 6). Lower: a short broker fault aborts
    batches."""

    batch_records_max: int = 500
    """Records (and woken keys) in one transaction. Lower: the commit's cost is shared by fewer.
    Higher: an abort repeats more work, and the overlay grows."""

    wakes_max: int = 200
    """Keys woken in one transaction; the rest follow in the next. Higher: a burst of timers makes
    one long transaction."""

    poll_ms_max: int = 100
    """Longest wait in one poll. Lower: an idle worker wakes up more often. Higher: a stop request
    and a due timer are noticed later."""

    tick_gap_ms: int = 5
    """Least time between two ticks of a partition. Lower: a fold that is always overdue floods the
    log. Higher: close timers come later."""

    fetch_wait_ms: int = 100
    """`fetch.wait.max.ms`; a record ends the wait at once. Lower: an idle worker asks more often.
    Higher: the first fetch after an abort's seek waits for the one that is under way."""

    lookup_ms: int = 5_000
    """For metadata, offsets and watermarks. Lower: a loaded broker counts as away."""

    commit_try_ms: int = 2_000
    """One try of a commit, which is repeated until `broker_stuck_ms`. Lower: more repetitions."""

    broker_stuck_ms: int = 30_000
    """Longest that one transactional call (with its repetitions) may take before the watchdog ends
    the process (engine rule 12). Lower: a slow election ends workers, which then start again.
    Higher: a client that hangs for good is noticed later."""

    restore_stall_ms: int = 45_000
    """Longest without progress in a restore (engine rule 8). Lower than a transaction timeout plus
    the broker's abort scan (10 s): a dead peer's open transaction fails the restore."""

    restore_records_max: int = 2_000
    """Changelog records in one step of a restore. Higher: rebalances and stops wait longer."""

    lock_wait_ms: int = 10_000
    """How long a state folder may stay locked by another process (engine rule 25). Lower: a
    restart races with the old process. Higher: a real double start is reported later."""

    states_cached_max: int = 10_000
    """Decoded states kept a partition. Lower: more decoding. Higher: memory."""

    stamp_every_ms: int = 60_000
    """How often an idle store's time stamp is renewed. Higher: an idle partition looks older than
    it is and is rebuilt on restart (engine rule 18)."""

    abort_pause_ms: int = 100
    """Pause after an abort that no single record caused. Lower: a lasting fault spins. Higher:
    recovery from a fence takes longer."""

    leave_on_stop: bool = True
    """Leave the group on a clean stop, so that peers take over at once. Without it a restart
    within `session_timeout_ms` keeps its partitions and disturbs nobody (rolling restarts)."""

    def __post_init__(self) -> None:
        check_prefix(self.prefix)
        _require(bool(self.slot), "slot is empty", "name the worker, for example worker-0")
        _require(
            self.message_timeout_ms < self.transaction_timeout_ms,
            "message_timeout_ms must be lower than transaction_timeout_ms",
            "librdkafka refuses it otherwise",
        )
        _require(
            self.session_timeout_ms <= self.poll_gap_ms_max,
            "session_timeout_ms must not exceed poll_gap_ms_max",
            "lower the one or raise the other",
        )
        _require(
            min(self.batch_records_max, self.wakes_max, self.restore_records_max) > 0,
            "batch sizes must be positive",
            "use the defaults",
        )


def _require(held: bool, message: str, fix: str) -> None:
    if not held:
        raise CallerError(message, where="worker settings", fix=fix)
