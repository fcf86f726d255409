"""What exists after the write: the request to look, what was found, and the verdict on it."""

from __future__ import annotations

from tallystick.records.base import Record
from tallystick.records.endings import ItemStatus, UnplannedItem


class WantedItem(Record):
    """An item to look for, with the planned payload that it is compared against."""

    tool: str
    identity: str
    intent_id: str
    payload: str


class ReadbackRequest(Record):
    """A fresh read is wanted; only an answer that carries `request_id` counts."""

    request_id: str
    commit_key: str
    plan_hash: str
    contract_name: str
    contract_hash: str
    module: str
    round: int
    try_number: int
    items: tuple[WantedItem, ...]


class FoundItem(Record):
    """What the target holds for one identity: digests are SHA-256 over the compared fields.

    `copies` counts the objects that claim this identity; `differing` names the compared fields
    whose content is not the planned one; `error` is empty unless this one read failed.
    """

    tool: str
    identity: str
    copies: int
    planned_digest: str
    found_digest: str
    differing: tuple[str, ...]
    target_refs: tuple[str, ...]
    error: str


class Readback(Record):
    """The answer to one request; `error` is empty when the target was read at all."""

    request_id: str
    commit_key: str
    plan_hash: str
    found: tuple[FoundItem, ...]
    unplanned: tuple[UnplannedItem, ...]
    error: str
    detail: str
    reader: str
    elapsed_ms: int


class VerifiedItem(Record):
    """One item's verdict from one read-back."""

    tool: str
    identity: str
    status: ItemStatus
    found_digest: str


class Verification(Record):
    """What one fresh read established, item by item."""

    commit_key: str
    plan_hash: str
    request_id: str
    round: int
    items: tuple[VerifiedItem, ...]
    unplanned: tuple[UnplannedItem, ...]
    planned_count: int
    verified_count: int
    verified_at_ms: int
