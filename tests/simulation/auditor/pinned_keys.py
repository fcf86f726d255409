"""Every attempt at a planned item carries the same key and the same content, and no attempt is
called twice."""

from __future__ import annotations

from tests.simulation.auditor.case import Case


def check(case: Case) -> list[str]:
    """Items that went out under two keys, keys with two contents, attempts called twice."""
    keys: dict[tuple[str, str, str, str], set[str]] = {}
    contents: dict[str, set[str]] = {}
    calls: dict[tuple[str, int], int] = {}
    for sent in case.history.sent:
        item = (sent.commit_key, sent.tool, sent.identity, sent.payload)
        keys.setdefault(item, set()).add(sent.intent_id)
        contents.setdefault(sent.intent_id, set()).add(sent.payload)
        attempt = (sent.intent_id, sent.attempt)
        calls[attempt] = calls.get(attempt, 0) + 1
    return [
        *(f"{item} went out under {len(ids)} keys" for item, ids in keys.items() if len(ids) > 1),
        *(f"key {key[:8]} had {len(c)} contents" for key, c in contents.items() if len(c) > 1),
        *(
            f"attempt {number} of {intent_id[:8]} was called {count} times"
            for (intent_id, number), count in calls.items()
            if count > 1
        ),
    ]
