"""Read a module's whole listing, page by page, and index it by identity."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from yarl import URL

from connectors.targets.compare import Comparison
from connectors.targets.fetch import Fetcher, ReadFailed
from tallystick.contract_pointers import MISSING, parse_pointer, resolve
from tallystick.contracts import ReadbackRule


class Listing:
    """Every object of a listing under the identity that it claims."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._objects: dict[str, list[Any]] = {}

    def add(self, found: Any) -> None:
        """Take in one object; one without identity could be anybody's, so the read fails."""
        identity = self._comparison.identity_of(found)
        if identity is None:
            raise ReadFailed("identity_missing", "a listed object does not say whose it is")
        self._objects.setdefault(identity, []).append(found)

    def copies(self, identity: str) -> list[Any]:
        """The objects that claim this identity."""
        return self._objects.get(identity, [])

    def others(self, wanted: Collection[str]) -> Iterator[tuple[str, str]]:
        """Identity and reference of every object outside `wanted`, in the listing's order."""
        for identity, objects in self._objects.items():
            if identity not in wanted:
                for found in objects:
                    yield identity, self._comparison.ref_of(found)


async def read_listing(
    fetcher: Fetcher, url: URL, rule: ReadbackRule, comparison: Comparison, timeout_ms: int
) -> Listing:
    """All pages from `url` on; raises ReadFailed where the listing is not complete."""
    listing = Listing(comparison)
    at = parse_pointer(rule.items)
    page_at: URL | None = url
    for _ in range(rule.pages_max):
        if page_at is None:
            return listing
        page = await fetcher.get(page_at, timeout_ms, absent_ok=False)
        objects = resolve(page, at)
        if not isinstance(objects, list):
            raise ReadFailed("items_missing", f"no array at {rule.items!r} of the answer")
        for found in objects:
            listing.add(found)
        page_at = _next_page(page, page_at, rule)
    if page_at is not None:
        raise ReadFailed("pages_max", f"the listing has more than {rule.pages_max} pages")
    return listing


def _next_page(page: Any, here: URL, rule: ReadbackRule) -> URL | None:
    """The next page's address, never on another origin: the credentials go with it."""
    if rule.next is None:
        return None
    link = resolve(page, parse_pointer(rule.next))
    if link is None or link is MISSING or link == "":
        return None
    if not isinstance(link, str):
        raise ReadFailed("next_not_a_link", f"no link at {rule.next!r} of the answer")
    try:
        there = here.join(URL(link))
        same = there.origin() == here.origin()
    except ValueError as error:
        raise ReadFailed("next_not_a_link", "the link to the next page is no address") from error
    if not same:
        raise ReadFailed("next_off_origin", "the link to the next page leaves the target")
    if there == here:
        raise ReadFailed("next_repeats", "the link to the next page is the same page")
    return there
