"""Every rule of the transactional loop is cited by its number where it is obeyed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
RULES = set(range(1, 31))
CITED = re.compile(r"\brules?\s+(\d+(?:\s*(?:,|and|,\s*and)\s*\d+)*)")


def test_every_engine_rule_is_cited_in_the_code() -> None:
    cited: set[int] = set()
    for room in ("streams", "processors"):
        for path in (ROOT / room).rglob("*.py"):
            text = re.sub(r"\s+#?\s*", " ", path.read_text())
            for numbers in CITED.findall(text):
                cited |= {int(number) for number in re.findall(r"\d+", numbers)}

    assert cited >= RULES, f"not cited: {sorted(RULES - cited)}"
