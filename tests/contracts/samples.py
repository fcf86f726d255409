"""A whole valid contract as plain values, and a way to break one place of it."""

from __future__ import annotations

import copy
from typing import Any

CONTRACT: dict[str, Any] = {
    "name": "cases",
    "version": "1",
    "base_url": "${CASES_URL}",
    "auth": {"kind": "bearer", "env": "CASES_TOKEN"},
    "tools": {
        "create": {
            "write": {
                "method": "POST",
                "path": "/m/{module}/cases",
                "body": {"id": "{identity}", "data": {"all": "{payload}"}},
                "headers": {"X-Origin": "tallystick-{tool}"},
            },
            "key": {"style": "header", "name": "Idempotency-Key"},
            "response": {"ref": "/id", "acknowledgement": True},
            "readback": {
                "kind": "lagging",
                "by": "list",
                "path": "/m/{module}/cases",
                "items": "/cases",
                "identity": "/case_id",
                "ref": "/id",
                "compare": ["title", {"planned": "/steps", "found": "/body/steps"}],
                "visibility_lag_ms": 500,
                "next": "/next",
                "pages_max": 5,
            },
            "in_flight_ms": 2_000,
            "call_timeout_ms": 1_000,
            "attempts_max": 4,
            "backoff_ms": 50,
            "backoff_ms_max": 400,
            "errors": {"409": "exists"},
            "compensation": "remove",
            "read_first": True,
        },
        "remove": {
            "write": {"method": "DELETE", "path": "/m/{module}/cases/{identity}"},
            "key": {"style": "natural"},
        },
    },
}

REMOVED = object()
"""Put at a place, it takes the field away."""


def broken(place: str, value: Any) -> dict[str, Any]:
    """The sample with `value` at a dotted place."""
    document = copy.deepcopy(CONTRACT)
    *path, last = place.split(".")
    part: Any = document
    for step in path:
        part = part[step]
    if value is REMOVED:
        del part[last]
    else:
        part[last] = value
    return document
