"""Every stage of the pipeline, by name."""

from __future__ import annotations

from types import MappingProxyType

from processors.commits.fold import CommitsFold
from streams.topology import Stage
from tallystick.topics import Topic

COMMITS = Stage(
    name="commits",
    inputs=(Topic.PLAN_REQUESTS, Topic.ATTEMPTS, Topic.READBACKS, Topic.RESOLUTIONS),
    ticks=Topic.COMMITS_TICKS,
    changelog=Topic.COMMITS_CHANGELOG,
    outputs=(
        Topic.EVIDENCE,
        Topic.PLANS,
        Topic.INTENTS,
        Topic.READBACK_REQUESTS,
        Topic.VERIFICATIONS,
        Topic.RECEIPTS,
        Topic.PARTIALS,
    ),
    spread_outputs=(Topic.MUTATIONS, Topic.EFFECTS),
    fold=CommitsFold(),
)

STAGES = MappingProxyType({COMMITS.name: COMMITS})
