"""Generated pages equal what the code says."""

from __future__ import annotations

from pathlib import Path

from ops.diagrams import STATE_MEANINGS, item_states_page
from processors.commits.state import ItemState

ROOT = Path(__file__).parents[2]


def test_the_page_of_item_states_is_drawn_from_the_table() -> None:
    page = (ROOT / "docs" / "item-states.md").read_text()
    assert page == item_states_page(), "run: python -m ops.diagrams > docs/item-states.md"


def test_every_state_has_a_meaning() -> None:
    assert set(STATE_MEANINGS) == set(ItemState)
