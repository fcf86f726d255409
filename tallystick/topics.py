"""Topic names, shared by the client and every stage; sizes and retention live in `streams`."""

from __future__ import annotations

import re
from enum import StrEnum

from tallystick.errors import CallerError

DEFAULT_PREFIX = "tally."
_PREFIX = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}\.")


class Topic(StrEnum):
    """Every topic's name without its tenant prefix."""

    PLAN_REQUESTS = "plan-requests"
    ATTEMPTS = "attempts"
    READBACKS = "readbacks"
    RESOLUTIONS = "resolutions"
    COMMITS_TICKS = "commits-ticks"
    EVIDENCE = "evidence"
    PLANS = "plans"
    INTENTS = "intents"
    READBACK_REQUESTS = "readback-requests"
    MUTATIONS = "mutations"
    VERIFICATIONS = "verifications"
    RECEIPTS = "receipts"
    PARTIALS = "partials"
    EFFECTS = "effects"
    DEAD_LETTERS = "dead-letters"
    COMMITS_CHANGELOG = "commits-changelog"


def check_prefix(prefix: str) -> str:
    """Return `prefix` if it can stand before every topic of a tenant, else raise CallerError."""
    if not _PREFIX.fullmatch(prefix):
        raise CallerError(
            f"topic prefix {prefix!r} is not lower-case letters, digits, dots and dashes "
            "that end in a dot",
            where="prefix",
            fix="use something like 'tally.' or 'acme.tally.'",
        )
    return prefix


def full_name(prefix: str, topic: Topic | str) -> str:
    """The topic's name on the broker."""
    return f"{prefix}{topic}"


def short_name(prefix: str, name: str) -> str:
    """The topic's name without its tenant prefix."""
    return name.removeprefix(prefix)
