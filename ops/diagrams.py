"""Draw `docs/item-states.md` from the transition table: `python -m ops.diagrams` prints it."""

from __future__ import annotations

import sys

from processors.commits.state import ItemState
from processors.commits.transitions import EVENT_MEANINGS, TRANSITIONS

STATE_MEANINGS = {
    ItemState.PLANNED: "promised; nothing has left yet",
    ItemState.CHECKING: "to be read before anything is written",
    ItemState.INTENDED: "an intent is in the outbox, nobody has claimed it",
    ItemState.DISPATCHED: "claimed: the call may be under way",
    ItemState.BACKOFF: "waits before the same key goes out again",
    ItemState.UNKNOWN: "may or may not have happened; not written again in doubt",
    ItemState.WRITTEN: "acknowledged; not proven until a fresh read finds it",
    ItemState.REJECTED: "refused for good",
    ItemState.MISSING: "not there, and nothing more will be tried in this round",
    ItemState.VERIFIED: "proven; nothing leaves this state",
    ItemState.DIFFERENT: "there, with other content than planned",
    ItemState.DUPLICATE: "there more than once",
}


def item_states_page() -> str:
    """The whole page, as Markdown with a Mermaid diagram."""
    lines = [
        "# The life of a planned item",
        "",
        "Drawn from `processors/commits/transitions.py` by `python -m ops.diagrams`; a test",
        "compares the two. A pair that is not here is an error, and the partition stops.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> planned",
        "    [*] --> checking",
    ]
    arrows: dict[tuple[ItemState, ItemState], list[str]] = {}
    for (state, event), after in TRANSITIONS.items():
        arrows.setdefault((state, after), []).append(event.value)
    lines += [
        f"    {state.value} --> {after.value}: {', '.join(events)}"
        for (state, after), events in arrows.items()
    ]
    lines += ["    verified --> [*]", "```", "", "| state | meaning |", "|---|---|"]
    lines += [f"| {state.value} | {STATE_MEANINGS[state]} |" for state in ItemState]
    lines += ["", "| event | meaning |", "|---|---|"]
    lines += [f"| {event.value} | {meaning} |" for event, meaning in EVENT_MEANINGS.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(item_states_page())
