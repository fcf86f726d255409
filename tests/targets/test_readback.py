"""Fresh reads: identity, copies, fields, pages; and whatever is incomplete is no absence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.targets.readback import UNPLANNED_MAX
from tallystick.records import Readback
from tests.targets.wire import Answer, asked, document, raw, reply, reset, run, target_at, wire

ONE = {"kind": "strong", "path": "/c/{identity}", "identity": "/id", "ref": "/n",
       "compare": ["title", "steps"]}  # fmt: skip
LIST = {"kind": "strong", "by": "list", "path": "/m/{module}", "items": "/rows", "identity": "/id",
        "ref": "/n", "compare": ["title", "steps"], "next": "/next", "pages_max": 3}  # fmt: skip
P1, P2 = '{"steps":["a"],"title":"one"}', '{"steps":["a"],"title":"two"}'


def row(name: str, title: Any = "one", n: int = 1, **more: Any) -> dict[str, Any]:
    """An object of the target."""
    return {"id": name, "n": n, "title": title, "steps": ["a"], **more}


def read(rule: dict[str, Any], *answers: Answer, wanted: Any = (("c1", P1),)) -> Readback:
    """Read the wanted items from a target that answers so."""

    async def story() -> Readback:
        async with wire(*answers) as server:
            target = target_at(server.url, document(readback=rule, call_timeout_ms=20_000))
            answer = await target.read(asked(*wanted))
            await target.close()
            assert all(seen.headers["cache-control"] == "no-cache" for seen in server.requests)
            assert all(seen.method == "GET" for seen in server.requests)
            return answer

    return run(story())


def test_a_found_item_has_one_digest_on_both_sides() -> None:
    answer = read(ONE, reply(200, row("c1", extra="ignored")))

    (item,) = answer.found
    assert (item.copies, item.error, item.differing) == (1, "", ())
    assert item.found_digest == item.planned_digest != ""
    assert item.target_refs == ("1",)
    assert (answer.request_id, answer.error) == ("r1", "")


DIFFERENCES: list[tuple[str, Any, tuple[str, ...]]] = [
    # planned payload, found title, differing
    ('{"title":1}', 1, ()),
    ('{"title":1}', 1.0, ()),
    ('{"title":0}', -0.0, ()),
    ('{"title":1}', "1", ("title",)),
    ('{"title":1}', True, ("title",)),
    ('{"title":0}', False, ("title",)),
    ('{"title":null}', None, ()),
    ('{"title":null}', "", ("title",)),
    ('{"title":"a"}', "a ", ("title",)),
    ('{"title":"\\u00e9"}', "e\u0301", ("title",)),
    ('{"title":{"a":1,"b":2}}', {"b": 2, "a": 1}, ()),
    ('{"title":[1,2]}', [2, 1], ("title",)),
    ('{"title":9007199254740993}', 9007199254740992, ("title",)),
    ('{"title":123456789012345678901}', 123456789012345678901, ()),
]


@pytest.mark.parametrize(("payload", "title", "differing"), DIFFERENCES)
def test_fields_are_compared_by_type_and_value(
    payload: str, title: Any, differing: tuple[str, ...]
) -> None:
    answer = read(ONE, reply(200, row("c1", title)), wanted=[("c1", payload)])

    (item,) = answer.found
    assert item.differing == differing
    assert (item.found_digest == item.planned_digest) == (not differing)


def test_a_promised_field_that_the_target_lacks_differs_even_when_it_is_null() -> None:
    answer = read(ONE, reply(200, {"id": "c1"}), wanted=[("c1", '{"title":null}')])

    assert answer.found[0].differing == ("title",)


def test_a_field_that_was_not_promised_is_not_compared() -> None:
    answer = read(ONE, reply(200, row("c1")), wanted=[("c1", '{"title":"one"}')])

    assert answer.found[0].differing == ()


def test_a_promise_without_any_compared_field_verifies_nothing() -> None:
    answer = read(ONE, reply(200, row("c1")), wanted=[("c1", '{"other":1}')])

    assert answer.found[0].error == "nothing_to_compare"


@pytest.mark.parametrize("status", [404, 410])
def test_an_item_that_is_not_there_has_zero_copies_and_no_error(status: int) -> None:
    answer = read(ONE, reply(status, {}))

    assert (answer.error, answer.found[0].copies, answer.found[0].error) == ("", 0, "")


def test_one_failed_read_is_that_items_alone() -> None:
    answer = read(ONE, reply(200, row("c1")), reply(500, {}), wanted=[("c1", P1), ("c2", P2)])

    assert answer.error == ""
    assert sorted(item.error for item in answer.found) == ["", "http_500"]


WHOLE: list[tuple[dict[str, Any], Answer, str]] = [
    (ONE, reply(401, {"detail": "who are you"}), "http_401"),
    (ONE, reply(403), "http_403"),
    (ONE, reply(429), "http_429"),
    (ONE, reply(503), "http_503"),
    (ONE, reply(204), "http_204"),
    (ONE, reply(302, headers="Location: /login\r\n"), "http_302"),
    (ONE, reply(200, b"<html>"), "not_json"),
    (ONE, reply(200, b'{"id":"c1","id":"c2"}'), "not_json"),
    (ONE, reply(200, [1]), "identity_missing"),
    (ONE, reply(200, "text"), "items_missing"),
    (ONE, reply(200, row("C1")), "identity_mismatch"),
    (ONE, reset, "connection_reset"),
    (ONE, raw(b""), "disconnected"),
    (ONE, raw(b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n{"), "disconnected"),
    ({**ONE, "items": "/data"}, reply(200, row("c1")), "items_missing"),
    ({**ONE, "items": "/data"}, reply(200, {"data": None}), "items_missing"),
    (LIST, reply(404), "http_404"),
    (LIST, reply(200, {"rows": None}), "items_missing"),
    (LIST, reply(200, {"rows": [{"name": "c1"}]}), "identity_missing"),
    (LIST, reply(200, {"rows": [], "next": 7}), "next_not_a_link"),
    (LIST, reply(200, {"rows": [], "next": "http://elsewhere.test/"}), "next_off_origin"),
    (LIST, reply(200, {"rows": [], "next": "//elsewhere.test/m"}), "next_off_origin"),
    (LIST, reply(200, {"rows": [], "next": "/m/checkout"}), "next_repeats"),
]


@pytest.mark.parametrize(("rule", "answer", "code"), WHOLE)
def test_a_read_that_establishes_nothing_is_an_error_and_never_an_absence(
    rule: dict[str, Any], answer: Answer, code: str
) -> None:
    seen = read(rule, answer)

    assert (seen.error, seen.found) == (code, ())


def test_a_target_that_is_away_is_told_with_its_code() -> None:
    async def story() -> Readback:
        async with wire(reply(200)) as server:
            url = server.url
        target = target_at(url, document(readback=ONE))
        answer = await target.read(asked(("c1", P1)))
        await target.close()
        return answer

    assert run(story()).error == "connection_refused"


def test_a_listing_is_read_once_for_all_items_and_counts_copies() -> None:
    async def story() -> None:
        rows = [row("c1"), row("x", n=7), row("c1", n=2), row("c2", "other", n=3)]
        async with wire(reply(200, {"rows": rows})) as server:
            target = target_at(server.url, document(readback=LIST))
            answer = await target.read(asked(("c1", P1), ("c2", P2), ("c3", P1)))
            await target.close()

            one, two, three = answer.found
            assert (one.copies, one.target_refs) == (2, ("1", "2"))
            assert (two.copies, two.differing) == (1, ("title",))
            assert (three.copies, three.found_digest) == (0, "")
            assert [(u.identity, u.target_ref) for u in answer.unplanned] == [("x", "7")]
            assert len(server.requests) == 1

    run(story())


@pytest.mark.parametrize(
    "link", ["/m/checkout?page=2", "?page=2", "{url}/m/checkout?page=2", "checkout?page=2"]
)
def test_pages_are_followed_on_the_same_origin(link: str) -> None:
    async def story() -> None:
        pages: list[dict[str, Any]] = [{"rows": [row("x")]}, {"rows": [row("c1")], "next": None}]
        async with wire(_late(pages, 0), _late(pages, 1)) as server:
            pages[0]["next"] = link.replace("{url}", server.url)
            target = target_at(server.url, document(readback=LIST))
            answer = await target.read(asked(("c1", P1)))
            await target.close()

            assert answer.found[0].copies == 1
            assert [seen.path for seen in server.requests] == ["/m/checkout", "/m/checkout?page=2"]

    run(story())


def _late(pages: list[dict[str, Any]], index: int) -> Answer:
    async def answer(writer: Any) -> None:
        await reply(200, pages[index])(writer)

    return answer


def test_a_listing_longer_than_its_bound_proves_no_absence() -> None:
    pages = [reply(200, {"rows": [row("c1")], "next": f"?page={n}"}) for n in range(2, 6)]

    assert read(LIST, *pages).error == "pages_max"


def test_the_last_allowed_page_may_be_the_last() -> None:
    pages = [reply(200, {"rows": [], "next": f"?page={n}"}) for n in (2, 3)]

    answer = read(LIST, *pages, reply(200, {"rows": [row("c1")]}))

    assert (answer.error, answer.found[0].copies) == ("", 1)


def test_a_search_by_identity_may_find_several_and_ignores_others() -> None:
    rule = {**ONE, "path": "/search?q={identity}", "items": "/hits"}

    answer = read(rule, reply(200, {"hits": [row("c1"), row("c10"), row("c1", n=2)]}))

    assert (answer.found[0].copies, answer.found[0].target_refs) == (2, ("1", "2"))
    assert answer.unplanned == ()


def test_a_stale_connection_is_read_again_because_reading_harms_nobody() -> None:
    answer = read(ONE, raw(b""), reply(200, row("c1")))

    assert (answer.error, answer.found[0].copies) == ("", 1)


def test_unplanned_items_are_bounded() -> None:
    rows = [row(f"x{n}") for n in range(UNPLANNED_MAX + 50)]

    assert len(read(LIST, reply(200, {"rows": rows})).unplanned) == UNPLANNED_MAX


def test_a_tool_without_a_readback_is_said_to_be_unreadable() -> None:
    async def story() -> Readback:
        target = target_at("http://127.0.0.1:9", document())
        answer = await target.read(asked(("c1", P1)))
        await target.close()
        return answer

    assert [item.error for item in run(story()).found] == ["not_readable"]


def test_identities_that_are_numbers_match_their_text() -> None:
    answer = read(LIST, reply(200, {"rows": [{**row("c1"), "id": 17}]}), wanted=[("17", P1)])

    assert answer.found[0].copies == 1


def test_big_integers_are_read_with_every_digit() -> None:
    payload = '{"title":12345678901234567890123}'
    body = json.dumps({"id": "c1", "title": 12345678901234567890123}).encode()

    assert read(ONE, reply(200, body), wanted=[("c1", payload)]).found[0].differing == ()
