"""A real schema registry, started once for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.schemas.registry import missing, running_registry


@pytest.fixture(scope="session")
def registry() -> Iterator[str]:
    """The address of a running registry; skips, saying why, where none can run."""
    why = missing()
    if why:
        pytest.skip(why)
    with running_registry() as url:
        yield url
