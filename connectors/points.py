"""Named places where a dispatcher or reader may be ended or stopped by a test.

Each lies on one side of the outside world: what a crash there may lose, and must not repeat, is
what the commit protocol is about. Production passes `pass_by`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Point(StrEnum):
    """In the order in which one intent passes them."""

    AFTER_CLAIM = "after_claim"
    BEFORE_CALL = "before_call"
    AFTER_CALL = "after_call"
    AFTER_OUTCOME = "after_outcome"
    AFTER_READ = "after_read"


Reach = Callable[[Point], None]


def pass_by(_point: Point) -> None:
    """Go on."""
