"""When things may happen: backoff, claim expiry, and when a miss in a read becomes conclusive."""

from __future__ import annotations

from processors.commits.state import Item
from tallystick.protocol import CLAIM_GRACE_MS, SEND_WINDOW_MS
from tallystick.records import KeyStyle, ReadbackKind, ToolPolicy

READ_RESERVE_MS_MAX = 5_000
"""Most of a commit's time that is kept for its last reads. Lower: a slow read-back turns a good
commit partial. Higher: long commits stop writing earlier than they must."""

STRONG_READS = 3
"""Reads that must miss before an acknowledged item counts as missing on a strongly consistent
target. Lower: one stale replica makes a partial record. Higher: a lying target is named later."""

READ_BACKOFF_MS = 100
"""First pause between two reads. Lower: a lagging target is polled hard. Higher: receipts from
slightly late targets come later."""

READ_BACKOFF_MS_MAX = 10_000
"""Longest pause between two reads. Higher: the read before the deadline comes too early."""

BACKOFF_DOUBLINGS_MAX = 20
"""Bounds 2**n; any backoff has reached its own maximum long before."""


def backoff_ms(policy: ToolPolicy, tries: int, intent_id: str) -> int:
    """Pause before attempt `tries` + 1: doubled each time, bounded, spread by the intent's id.

    The spread (up to a quarter) is taken from the id and not drawn, so replay gives the same.
    """
    doublings = min(max(tries - 1, 0), BACKOFF_DOUBLINGS_MAX)
    base: int = min(policy.backoff_ms * 2**doublings, policy.backoff_ms_max)
    return base + int(intent_id[:4], 16) % (base // 4 + 1)


def read_backoff_ms(read_try: int) -> int:
    """Pause before the next read, after `read_try` reads that did not settle everything."""
    return int(
        min(READ_BACKOFF_MS * 2 ** min(read_try, BACKOFF_DOUBLINGS_MAX), READ_BACKOFF_MS_MAX)
    )


def cutoff_ms(accepted_at_ms: int, commit_within_ms: int) -> int:
    """After this log time nothing is dispatched; the rest is kept for reading."""
    return accepted_at_ms + commit_within_ms - min(commit_within_ms // 4, READ_RESERVE_MS_MAX)


def claim_expires_ms(policy: ToolPolicy, started_at_ms: int) -> int:
    """When a claim without an outcome expires, into unknown and nothing else."""
    return started_at_ms + SEND_WINDOW_MS + policy.call_timeout_ms + CLAIM_GRACE_MS


def can_repeat(policy: ToolPolicy) -> bool:
    """Whether the same write may go out again while its outcome is unknown (DESIGN.md, step 5)."""
    return policy.key_style is not KeyStyle.NONE


def can_read(policy: ToolPolicy) -> bool:
    """Whether the world can be asked about an item of this tool."""
    return policy.readback is not ReadbackKind.NONE


def conclusive_ms(policy: ToolPolicy, item: Item) -> int | None:
    """From when on a read that misses the item proves its absence; None: never.

    An unknown effect needs in-flight bound D and visibility lag L after the last possible
    dispatch (arXiv:2609.29095, Proposition 1); an answered one needs only the lag.
    """
    if not item.doubtful:
        return item.settled_at_ms + policy.visibility_lag_ms
    if policy.in_flight_ms is None:
        return None
    return item.started_at_ms + SEND_WINDOW_MS + policy.in_flight_ms + policy.visibility_lag_ms
