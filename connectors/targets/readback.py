"""Read the target freshly and report what it holds for each wanted item; judges no outcome.

A 404 on one item means zero copies. Everything that keeps a read from being complete (a missing
page, an object without identity, a wrong pointer) is an error and never an absence: a false
absence would be answered by a second write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from yarl import URL

from connectors.targets.compare import Comparison, failed
from connectors.targets.fetch import Fetcher, ReadFailed
from connectors.targets.listing import Listing, read_listing
from connectors.targets.mapping import Item, Unsendable, item_url, read_payload
from tallystick.contract_pointers import MISSING, parse_pointer, resolve
from tallystick.contract_templates import parse_template
from tallystick.contracts import ReadBy, Tool
from tallystick.records import (
    FoundItem,
    ReadbackKind,
    ReadbackRequest,
    UnplannedItem,
    WantedItem,
)

UNPLANNED_MAX = 200
"""Most unplanned objects named in one answer. Lower: a person sees too little of a foreign
writer. Higher: a large module's listing outgrows the record."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The whole answer; `error` is set only where no item could be read."""

    found: tuple[FoundItem, ...]
    unplanned: tuple[UnplannedItem, ...]
    error: str = ""
    detail: str = ""


class _ReadMapping:
    """A tool's read-back rule, parsed once."""

    def __init__(self, tool: Tool) -> None:
        rule = tool.readback
        self.rule = rule
        self.timeout_ms = tool.call_timeout_ms
        self.path = parse_template(rule.path or "")
        self.items = parse_pointer(rule.items)
        self.comparison = Comparison(rule)


class Reader:
    """Reads of one contract's tools."""

    def __init__(
        self, base: str, tools: Mapping[str, Tool], fetcher: Fetcher, concurrency_max: int
    ) -> None:
        self._base = base
        self._fetcher = fetcher
        self._concurrency_max = concurrency_max
        self._tools = {
            name: _ReadMapping(tool)
            for name, tool in tools.items()
            if tool.readback.kind is not ReadbackKind.NONE
        }

    async def read(self, request: ReadbackRequest) -> Seen:
        """Every wanted item's standing, and what a listing shows beside them."""
        listings = await self._listings(request)
        slots = asyncio.Semaphore(self._concurrency_max)

        async def one(wanted: WantedItem) -> FoundItem | ReadFailed:
            async with slots:
                return await self._one(request.module, wanted, listings)

        answers = await asyncio.gather(*(one(wanted) for wanted in request.items))
        failures = [answer for answer in answers if isinstance(answer, ReadFailed)]
        if failures and len(failures) == len(answers):
            return Seen((), (), failures[0].code, failures[0].detail)
        found = tuple(
            failed(wanted, answer.code) if isinstance(answer, ReadFailed) else answer
            for wanted, answer in zip(request.items, answers, strict=True)
        )
        return Seen(found, _unplanned(listings, request))

    async def _listings(self, request: ReadbackRequest) -> dict[str, Listing | ReadFailed]:
        """One fresh listing for each tool that is read so; tools of one listing share it."""
        by_tool: dict[str, Listing | ReadFailed] = {}
        shared: dict[tuple[URL, str, str | None], Listing | ReadFailed] = {}
        for name in dict.fromkeys(wanted.tool for wanted in request.items):
            mapping = self._tools.get(name)
            if mapping is None or mapping.rule.by is not ReadBy.LIST:
                continue
            try:
                url = item_url(self._base, mapping.path, Item("", request.module, name, "", None))
            except Unsendable as fault:
                by_tool[name] = ReadFailed(fault.code, fault.detail)
                continue
            place = (url, mapping.rule.items, mapping.rule.identity)
            if place not in shared:
                shared[place] = await self._listing(url, mapping)
            by_tool[name] = shared[place]
        return by_tool

    async def _listing(self, url: URL, mapping: _ReadMapping) -> Listing | ReadFailed:
        try:
            return await read_listing(
                self._fetcher, url, mapping.rule, mapping.comparison, mapping.timeout_ms
            )
        except ReadFailed as failure:
            return failure

    async def _one(
        self, module: str, wanted: WantedItem, listings: Mapping[str, Listing | ReadFailed]
    ) -> FoundItem | ReadFailed:
        mapping = self._tools.get(wanted.tool)
        if mapping is None:
            return failed(wanted, "not_readable")
        try:
            payload = read_payload(wanted.payload)
            listing = listings.get(wanted.tool)
            if isinstance(listing, ReadFailed):
                return listing
            if listing is not None:
                copies = listing.copies(wanted.identity)
            else:
                copies = await self._copies(module, wanted, payload, mapping)
        except Unsendable as fault:
            return failed(wanted, fault.code)
        except ReadFailed as failure:
            return failure
        return mapping.comparison.judge(wanted, payload, copies)

    async def _copies(
        self, module: str, wanted: WantedItem, payload: object, mapping: _ReadMapping
    ) -> list[object]:
        """The objects that a read by identity yields for one item."""
        item = Item(wanted.identity, module, wanted.tool, "", payload)
        url = item_url(self._base, mapping.path, item)
        answer = await self._fetcher.get(url, mapping.timeout_ms, absent_ok=True)
        if answer is MISSING:
            return []
        found = resolve(answer, mapping.items)
        comparison = mapping.comparison
        if isinstance(found, list):
            if not comparison.names_identity:
                return found
            claims = [(comparison.identity_of(each), each) for each in found]
            if any(identity is None for identity, _ in claims):
                raise ReadFailed("identity_missing", "a found object does not say whose it is")
            return [each for identity, each in claims if identity == wanted.identity]
        if not isinstance(found, dict):
            raise ReadFailed("items_missing", f"nothing at {mapping.rule.items!r} of the answer")
        if comparison.names_identity and comparison.identity_of(found) != wanted.identity:
            raise ReadFailed("identity_mismatch", "the target answered with another object")
        return [found]


def _unplanned(
    listings: Mapping[str, Listing | ReadFailed], request: ReadbackRequest
) -> tuple[UnplannedItem, ...]:
    """What stands in a listing and was not asked for, by any tool that shares the listing."""
    wanted: dict[int, set[str]] = {}
    known: dict[int, Listing] = {}
    for item in request.items:
        listing = listings.get(item.tool)
        if isinstance(listing, Listing):
            wanted.setdefault(id(listing), set()).add(item.identity)
            known[id(listing)] = listing
    others = [
        UnplannedItem(identity=identity, target_ref=ref)
        for place, listing in known.items()
        for identity, ref in listing.others(wanted[place])
    ]
    return tuple(others[:UNPLANNED_MAX])
