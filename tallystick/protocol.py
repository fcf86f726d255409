"""Time bounds that the ledger and the dispatcher must agree on, in milliseconds of log time."""

from __future__ import annotations

SEND_WINDOW_MS = 1_500
"""How long after its claim a dispatcher may still begin the call; later it must refuse.
Lower: a busy dispatcher refuses work it could do. Higher: every wait for an unkeyed unknown
effect (engine rule of DESIGN.md step 5: D + L from the last possible dispatch) grows by it."""

CLAIM_GRACE_MS = 2_000
"""How long an outcome record may trail the call's own timeout before its claim expires into
unknown. Lower: slow brokers turn good outcomes into unknown ones. Higher: a dead dispatcher is
noticed later."""

CLAIM_SLACK_MS = 500
"""How long after an intent's expiry the ledger waits for a claim logged just before it.
Lower: more partial records that a late claim corrects. Higher: later partial records."""

COMMIT_WITHIN_MS_MIN = 1_000
"""Shortest allowed answer time. Lower: no read-back fits in, so every commit ends partial."""

COMMIT_WITHIN_MS_MAX = 7 * 24 * 3_600_000
"""Longest allowed answer time. Higher: intents could outlive their topic's retention."""

COMMIT_WITHIN_MS = 60_000
"""Answer time when the caller names none: two dozen attempts with backoff fit in."""
