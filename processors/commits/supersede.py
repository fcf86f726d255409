"""Replace a frozen plan by an explicit successor; what its attempts did is not forgotten."""

from __future__ import annotations

from msgspec.structs import replace

from processors.commits.rounds import first_state, reopened, superseding_round
from processors.commits.state import Commit, Item, ItemState, Phase
from processors.commits.timing import can_read
from tallystick.keys import intent_id
from tallystick.records import Plan, PlanItem, PlanRequest


def supersede_refusal(old: Commit, plan: Plan) -> str:
    """The rule that forbids `plan` to replace `old`, or an empty string.

    While the old plan works its intents may still leave; an effect in doubt that the new plan
    drops or changes could land later, unseen.
    """
    if old.head.phase is Phase.WORKING:
        return "supersede_while_working"
    kept = {_content(item) for item in plan.items}
    for planned, item in old.pairs():
        if item.doubtful and _content(planned) not in kept:
            return "supersede_in_doubt"
    return ""


def supersede(old: Commit, request: PlanRequest, at_ms: int) -> Commit:
    """The successor's first round: equal items keep their standing and their key."""
    plan = request.plan
    standing = {_content(planned): item for planned, item in old.pairs()}
    known = {(planned.tool, planned.identity): item for planned, item in old.pairs()}
    policies = {policy.tool: policy for policy in plan.policies}
    items = []
    for planned in plan.items:
        kept = standing.get(_content(planned))
        policy = policies[planned.tool]
        if kept is not None:
            items.append(reopened(kept, policy))
            continue
        fresh = Item(
            intent_id=intent_id(plan.commit_key, plan.plan_hash, planned.tool, planned.identity),
            state=first_state(policy),
        )
        changed = known.get((planned.tool, planned.identity))
        if changed is not None and can_read(policy):
            # The old plan may have written it with other content: look before writing, and
            # believe a miss only once that write must have become visible.
            fresh = replace(fresh, state=ItemState.CHECKING, settled_at_ms=changed.settled_at_ms)
        items.append(fresh)
    return superseding_round(old, request, tuple(items), at_ms)


def _content(item: PlanItem) -> tuple[str, str, str]:
    return item.tool, item.identity, item.payload_hash
