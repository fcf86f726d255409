"""The demo target's truth: cases, idempotency keys and the ledger of effects, in SQLite.

Every write commits before it returns, and its ledger line in the same transaction, so the
ledger is what really happened and not what anyone was told.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from dataclasses import dataclass
from typing import Any

_TABLES = """
CREATE TABLE IF NOT EXISTS cases (
    id INTEGER PRIMARY KEY AUTOINCREMENT, module TEXT NOT NULL, case_id TEXT NOT NULL,
    body TEXT NOT NULL, visible_at_ms INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS cases_by_name ON cases (module, case_id);
CREATE TABLE IF NOT EXISTS keys (
    key TEXT PRIMARY KEY, request TEXT NOT NULL, status INTEGER NOT NULL, answer TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS ledger (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, op TEXT NOT NULL, module TEXT NOT NULL,
    case_id TEXT NOT NULL, row INTEGER NOT NULL, key TEXT, title TEXT, at_ms INTEGER NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Order:
    """One write as it arrived."""

    module: str
    case_id: str
    body: dict[str, Any]
    key: str | None
    natural: bool = False
    lag_ms: int = 0

    @property
    def fingerprint(self) -> str:
        """What the request says; a key stands for exactly one."""
        text = json.dumps([self.module, self.case_id, self.body], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a JSON body; `replayed` marks the stored answer of an earlier request."""

    status: int
    body: dict[str, Any]
    replayed: bool = False


class Store:
    """Cases of every module; not thread-safe, used from one event loop."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        self._db.execute("PRAGMA journal_mode=WAL")
        # Survives a crash of the process, which is what the tests kill; not of the machine.
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def reset(self) -> None:
        """Forget everything."""
        self._db.executescript("DELETE FROM cases; DELETE FROM keys; DELETE FROM ledger;")

    def replay(self, order: Order) -> Answer | None:
        """The stored answer for the order's key; 422 where the key stood for something else."""
        if order.key is None:
            return None
        row = self._db.execute(
            "SELECT request, status, answer FROM keys WHERE key = ?", (order.key,)
        ).fetchone()
        if row is None:
            return None
        if row[0] != order.fingerprint:
            return Answer(422, {"error": "idempotency key was used with a different request"})
        return Answer(row[1], json.loads(row[2]), replayed=True)

    def write(self, order: Order, stored: dict[str, Any]) -> Answer:
        """Commit one effect, the ledger line and the key's answer together.

        `stored` is what really goes into the row. A key that committed meanwhile is replayed,
        so at most one effect exists per key.
        """
        known = self.replay(order)
        if known is not None:
            return known
        self._db.execute("BEGIN IMMEDIATE")
        answer = self._upsert(order, stored) if order.natural else self._insert(order, stored)
        if order.key is not None:
            self._db.execute(
                "INSERT INTO keys VALUES (?, ?, ?, ?)",
                (order.key, order.fingerprint, answer.status, json.dumps(answer.body)),
            )
        self._db.execute("COMMIT")
        return answer

    def _insert(self, order: Order, stored: dict[str, Any]) -> Answer:
        now = _now_ms()
        row = self._db.execute(
            "INSERT INTO cases (module, case_id, body, visible_at_ms) VALUES (?, ?, ?, ?)",
            (order.module, order.case_id, json.dumps(stored), now + order.lag_ms),
        ).lastrowid
        self._note("insert", order, int(row or 0), stored, now)
        return Answer(201, {"id": f"c-{row}", "case_id": order.case_id})

    def _upsert(self, order: Order, stored: dict[str, Any]) -> Answer:
        old = self._db.execute(
            "SELECT id, body FROM cases WHERE module = ? AND case_id = ?",
            (order.module, order.case_id),
        ).fetchone()
        if old is None:
            return self._insert(order, stored)
        now, body = _now_ms(), json.dumps(stored)
        self._db.execute("UPDATE cases SET body = ? WHERE id = ?", (body, old[0]))
        self._note("same" if body == old[1] else "update", order, old[0], stored, now)
        return Answer(200, {"id": f"c-{old[0]}", "case_id": order.case_id})

    def _note(self, op: str, order: Order, row: int, stored: dict[str, Any], now: int) -> None:
        self._db.execute(
            "INSERT INTO ledger (op, module, case_id, row, key, title, at_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (op, order.module, order.case_id, row, order.key, _title(stored), now),
        )

    def delete(self, module: str, case_id: str) -> int:
        """Remove every copy; how many there were."""
        self._db.execute("BEGIN IMMEDIATE")
        rows = self._db.execute(
            "DELETE FROM cases WHERE module = ? AND case_id = ? RETURNING id", (module, case_id)
        ).fetchall()
        for (row,) in rows:
            self._note("delete", Order(module, case_id, {}, None), row, {}, _now_ms())
        self._db.execute("COMMIT")
        return len(rows)

    def exists(self, module: str, case_id: str) -> bool:
        """Whether the case is there, visible or not."""
        found = self._db.execute(
            "SELECT 1 FROM cases WHERE module = ? AND case_id = ?", (module, case_id)
        ).fetchone()
        return found is not None

    def one(self, module: str, case_id: str) -> dict[str, Any] | None:
        """The oldest visible copy."""
        row = self._db.execute(
            "SELECT id, body FROM cases WHERE module = ? AND case_id = ? AND visible_at_ms <= ?"
            " ORDER BY id",
            (module, case_id, _now_ms()),
        ).fetchone()
        return None if row is None else _shown(*row)

    def page(self, module: str, after: int, size: int) -> tuple[list[dict[str, Any]], int | None]:
        """Visible cases with an id above `after`, and where the next page starts."""
        rows = self._db.execute(
            "SELECT id, body FROM cases WHERE module = ? AND id > ? AND visible_at_ms <= ?"
            " ORDER BY id LIMIT ?",
            (module, after, _now_ms(), size + 1),
        ).fetchall()
        more = rows[size - 1][0] if len(rows) > size else None
        return [_shown(*row) for row in rows[:size]], more

    def ledger(self) -> list[dict[str, Any]]:
        """Every committed effect in its order."""
        rows = self._db.execute("SELECT * FROM ledger ORDER BY seq")
        names = [column[0] for column in rows.description]
        return [dict(zip(names, row, strict=True)) for row in rows]


def _shown(row: int, body: str) -> dict[str, Any]:
    return {**json.loads(body), "id": f"c-{row}"}


def _title(stored: dict[str, Any]) -> str | None:
    title = stored.get("title")
    return title if isinstance(title, str) else None


def _now_ms() -> int:
    return int(time.time() * 1_000)
