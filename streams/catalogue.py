"""The topic catalogue: what every topic holds, and how the broker is to keep it.

One place for partitions, retention and sizes; `topics_admin.py` makes a broker agree with it and
`docs/topics.md` is its printed form. Stage logic does not live here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tallystick.topics import Topic

PARTITIONS = 12
"""Partitions of every topic. Lower: fewer workers can share a stage, and raising it later is
refused (a key would move away from its state). Higher: every partition costs its worker a store
and a tick."""

REPLICATION_MAX = 3
"""Replicas where the cluster has that many brokers. Lower: one lost disk can lose records that
were acknowledged. Higher: slower commits for no failure that we promise to survive."""

FOREVER_MS = -1
"""The ledger is its own history: replay rebuilds state only from a complete log (rule 19)."""

OUTBOX_MS = 30 * 24 * 3_600_000
"""How long outbox records stay. They are dead after COMMIT_WITHIN_MS_MAX (7 days); lower than
that, a record could vanish before a slow worker took it. Higher: payloads lie around for longer
than anyone needs them; what was done stands in `attempts`."""

TOMBSTONE_MS = 7 * 24 * 3_600_000
"""How long a changelog keeps tombstones. Lower: a worker that was down for longer must rebuild its
store from nothing (rule 18). Higher: restores read more tombstones."""

SMALL_BYTES = 1_048_588
"""Largest message that carries one item or one plan request: Kafka's own default. Lower: a plan of
PLAN_BYTES_MAX does not fit. Higher: a wrong client can push more before it is refused."""

LARGE_BYTES = 4 * 1_048_576
"""Largest message that names every item of a plan, or a plan with its receipt. Lower: the receipt
of a full plan (2,000 items with evidence) cannot be written. Higher: consumers hold more memory."""

WRAPPED_BYTES = LARGE_BYTES + 65_536
"""Largest dead letter: any other record whole, and the reason. Lower: the one record that breaks a
limit cannot be put aside either, and its partition would stand still."""


class Cleanup(StrEnum):
    """How the broker makes room."""

    DELETE = "delete"
    COMPACT = "compact"


class Group(StrEnum):
    """Topics that one stage reads together share a partition count and a key."""

    COMMITS = "commits"
    SCOPES = "scopes"
    SESSIONS = "sessions"


class Role(StrEnum):
    """What a topic is to its stage."""

    INPUT = "input"
    OUTPUT = "output"
    OUTBOX = "outbox"
    CHANGELOG = "changelog"
    ASIDE = "aside"


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """One row of the catalogue; `record` is the Avro record's name, empty for raw rows."""

    topic: Topic
    group: Group
    role: Role
    key: str
    record: str
    holds: str
    retention_ms: int = FOREVER_MS
    message_bytes_max: int = SMALL_BYTES
    cleanup: Cleanup = Cleanup.DELETE
    partitions: int = PARTITIONS

    def config(self, replication: int) -> dict[str, str]:
        """The topic's settings on a broker that keeps `replication` copies."""
        settings = {
            "cleanup.policy": str(self.cleanup),
            "retention.ms": str(self.retention_ms),
            "max.message.bytes": str(self.message_bytes_max),
            # Two copies before an acknowledgement, where a third may be away (rule 20).
            "min.insync.replicas": str(min(2, max(1, replication - 1))),
            # A fold's time is the log's: no producer's clock can reach it.
            "message.timestamp.type": "LogAppendTime",
            # A replica that fell behind must not erase what was acknowledged.
            "unclean.leader.election.enable": "false",
        }
        if self.cleanup is Cleanup.COMPACT:
            settings["delete.retention.ms"] = str(TOMBSTONE_MS)
        return settings


def _commits(
    topic: Topic,
    role: Role,
    record: str,
    holds: str,
    *,
    retention_ms: int = FOREVER_MS,
    message_bytes_max: int = SMALL_BYTES,
) -> TopicSpec:
    return TopicSpec(
        topic=topic,
        group=Group.COMMITS,
        role=role,
        key="partition" if topic is Topic.COMMITS_TICKS else "commit_key",
        record=record,
        holds=holds,
        retention_ms=retention_ms,
        message_bytes_max=message_bytes_max,
    )


CATALOGUE: tuple[TopicSpec, ...] = (
    _commits(Topic.PLAN_REQUESTS, Role.INPUT, "PlanRequest", "A caller asks for a commit."),
    _commits(Topic.ATTEMPTS, Role.INPUT, "Attempt", "A claim on an intent, then its outcome."),
    _commits(
        Topic.READBACKS,
        Role.INPUT,
        "Readback",
        "What one fresh read found.",
        message_bytes_max=LARGE_BYTES,
    ),
    _commits(Topic.RESOLUTIONS, Role.INPUT, "Resolution", "Outside evidence on an effect."),
    # Kept for ever like any input: without its ticks a replay would never reach a deadline.
    # A tick is about a hundred bytes, and a partition without deadlines logs none.
    _commits(Topic.COMMITS_TICKS, Role.INPUT, "Tick", "Time, as the partition's owner saw it."),
    _commits(Topic.EVIDENCE, Role.OUTPUT, "EvidenceSnapshot", "What a frozen plan rests on."),
    _commits(
        Topic.PLANS,
        Role.OUTPUT,
        "PlanAnswer",
        "The ledger's answer to a request, with the plan that stands.",
        message_bytes_max=LARGE_BYTES,
    ),
    _commits(
        Topic.INTENTS,
        Role.OUTBOX,
        "Intent",
        "One planned item on its way to the target.",
        retention_ms=OUTBOX_MS,
    ),
    _commits(
        Topic.READBACK_REQUESTS,
        Role.OUTBOX,
        "ReadbackRequest",
        "A fresh read is wanted.",
        retention_ms=OUTBOX_MS,
        message_bytes_max=LARGE_BYTES,
    ),
    _commits(
        Topic.VERIFICATIONS,
        Role.OUTPUT,
        "Verification",
        "The verdict on one fresh read, item by item.",
        message_bytes_max=LARGE_BYTES,
    ),
    # Not compacted: a partial record and the receipt that follows it are both history.
    _commits(
        Topic.RECEIPTS,
        Role.OUTPUT,
        "Receipt",
        "Plan and world agree; one for a plan, ever.",
        message_bytes_max=LARGE_BYTES,
    ),
    _commits(
        Topic.PARTIALS,
        Role.OUTPUT,
        "PartialSuccess",
        "What is verified, written, missing or different.",
        message_bytes_max=LARGE_BYTES,
    ),
    TopicSpec(
        Topic.MUTATIONS,
        Group.SCOPES,
        Role.INPUT,
        "scope",
        "Mutation",
        "A commit begins or ceases to disturb a scope.",
    ),
    TopicSpec(
        Topic.EFFECTS,
        Group.SESSIONS,
        Role.INPUT,
        "session_id",
        "Effect",
        "One item's change of status, for the session that asked.",
    ),
    TopicSpec(
        Topic.DEAD_LETTERS,
        Group.COMMITS,
        Role.ASIDE,
        "as its source",
        "DeadLetter",
        "A record that no fold could take, whole, and why.",
        message_bytes_max=WRAPPED_BYTES,
    ),
    # Compacted only (rule 20): with deletion by age, the state of a quiet key would be lost.
    TopicSpec(
        Topic.COMMITS_CHANGELOG,
        Group.COMMITS,
        Role.CHANGELOG,
        "state row",
        "",
        "The commits stage's state, row by row.",
        message_bytes_max=LARGE_BYTES,
        cleanup=Cleanup.COMPACT,
    ),
)

SPECS: dict[Topic, TopicSpec] = {spec.topic: spec for spec in CATALOGUE}


def message_bytes_max() -> int:
    """The largest message of any topic: a producer's own `message.max.bytes` must allow it."""
    return max(spec.message_bytes_max for spec in CATALOGUE)


def as_markdown() -> str:
    """The catalogue as the table of `docs/topics.md`."""
    head = "| topic | key | record | role | stage | cleanup | kept | largest | holds |"
    rows = [head, "|---|---|---|---|---|---|---|---|---|"]
    for spec in CATALOGUE:
        days = spec.retention_ms // (24 * 3_600_000)
        kept = "for ever" if spec.retention_ms == FOREVER_MS else f"{days} days"
        size = f"{round(spec.message_bytes_max / 1_048_576, 2):g} MiB"
        cells = (
            f"`{spec.topic}`",
            spec.key
            if spec.key in ("partition", "state row", "as its source")
            else f"`{spec.key}`",
            f"`{spec.record}`" if spec.record else "raw rows",
            spec.role,
            spec.group,
            spec.cleanup,
            kept if spec.cleanup is Cleanup.DELETE else "latest row",
            size,
            spec.holds,
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"
