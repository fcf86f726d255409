"""Canonical JSON: one text for one value, and a clear refusal for what has none."""

from __future__ import annotations

import hashlib
import json
import math
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from tallystick.canonical import (
    DEPTH_MAX,
    NUMBER_DIGITS_MAX,
    canonical,
    canonical_text,
    digest,
    parse_json,
)
from tallystick.errors import CanonicalError

SAFE = 2**53 - 1
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=25,
)
# What RFC 8785 itself defines: doubles, and integers that a double holds.
STANDARD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(-1e15, 1e15)
    | st.floats(-1e-3, 1e-3)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=25,
)


def shuffled(value: Any, draw: Any) -> Any:
    """The same value with every object's keys in another order."""
    if isinstance(value, dict):
        order = draw(st.permutations(sorted(value)))
        return {key: shuffled(value[key], draw) for key in order}
    if isinstance(value, list):
        return [shuffled(member, draw) for member in value]
    return value


def same(found: Any, value: Any) -> bool:
    """Equal, where a float equals whatever number reads as that float."""
    if isinstance(value, float):
        return float(found) == value
    if isinstance(value, list):
        return len(found) == len(value) and all(map(same, found, value))
    if isinstance(value, dict):
        return found.keys() == value.keys() and all(same(found[k], value[k]) for k in value)
    return bool(found == value and type(found) is type(value))


@given(STANDARD)
def test_agrees_with_the_rfc_8785_library_where_that_is_defined(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(JSON, st.data())
def test_key_order_is_irrelevant(value: Any, data: st.DataObject) -> None:
    assert canonical(shuffled(value, data.draw)) == canonical(value)


@given(JSON)
def test_reading_the_canonical_text_again_changes_nothing(value: Any) -> None:
    text = canonical(value)
    assert canonical(parse_json(text)) == text
    assert parse_json(text.decode()) == parse_json(text)


@given(JSON)
def test_any_json_value_survives_the_way_through_text(value: Any) -> None:
    assert same(parse_json(canonical(value)), value)


@given(JSON)
def test_whitespace_and_escapes_of_the_input_leave_no_trace(value: Any) -> None:
    loud = json.dumps(value, indent=3, ensure_ascii=True)
    assert canonical(parse_json(loud)) == canonical(value)


@given(st.integers())
def test_every_digit_of_an_integer_is_kept(number: int) -> None:
    assert canonical(number) == str(number).encode()
    assert canonical({"Δ": number, "x": [0.5, number]}) == (
        f'{{"x":[0.5,{number}],"Δ":{number}}}'.encode()
    )


@given(st.integers(-SAFE, SAFE))
def test_an_integral_number_is_one_value_in_every_notation(number: int) -> None:
    forms = [number, float(number), parse_json(f"{number}.0"), parse_json(f"{number}e0")]
    assert {canonical(form) for form in forms} == {str(number).encode()}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_counts_as_its_shortest_decimal_text(number: float) -> None:
    assert canonical(number) == canonical(parse_json(repr(number)))


@pytest.mark.parametrize(
    "text", ["0", "-0", "0.0", "-0.0", "0e5", "-0E-5", "0e99999999999999999999"]
)
def test_every_zero_is_zero(text: str) -> None:
    assert canonical(parse_json(text)) == b"0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9007199254740993.0", "9007199254740993"),
        ("1e21", "1" + "0" * 21),
        ("12345678901234567890.000", "12345678901234567890"),
        ("1.5e1", "15"),
        ("1e308", "1" + "0" * 308),
        ("-" + "9" * NUMBER_DIGITS_MAX, "-" + "9" * NUMBER_DIGITS_MAX),
        ("0.1", "0.1"),
        ("1e-7", "1e-7"),
        ("0.000001", "0.000001"),
        ("5e-324", "5e-324"),
        ("1.00000000000000000000000001", "1"),
    ],
)
def test_numbers_become_what_they_mean(text: str, expected: str) -> None:
    assert canonical_text(parse_json(text)) == expected


def test_keys_are_ordered_by_utf_16_as_the_rfc_says() -> None:
    value = {"\U0001f600": 1, "\ufffd": 2, "a": 2**60}
    assert canonical_text(value) == '{"a":1152921504606846976,"\U0001f600":1,"\ufffd":2}'


def test_digest_is_sha_256_of_the_canonical_bytes() -> None:
    assert digest({"b": 1.0, "a": "x"}) == hashlib.sha256(b'{"a":"x","b":1}').hexdigest()


def test_tuples_and_string_enums_are_plain_json() -> None:
    class Color(StrEnum):
        RED = "red"

    assert canonical((Color.RED, {Color.RED: (1,)})) == b'["red",{"red":[1]}]'


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ('{"items": [{}, {"title": NaN}]}', "$.items[1].title", "NaN is not a JSON number"),
        ("[Infinity]", "$[0]", "Infinity is not a JSON number"),
        ("[-Infinity]", "$[0]", "-Infinity is not a JSON number"),
        ('{"a": {"b": 1, "b": 2}}', "$.a.b", "key occurs twice"),
        ('{"a b": [{"": 1, "": 1}]}', '$["a b"][0][""]', "key occurs twice"),
        ('{"a": "\\ud800"}', "$.a", "lone surrogate"),
        ('{"\\udc00": 1}', '$["\\udc00"]', "lone surrogate"),
        ("[1, 1e999999]", "$[1]", f"more than {NUMBER_DIGITS_MAX} digits"),
        ("[1e99999999999999999999]", "$[0]", "too large"),
        ("1" * 5_000, "$", f"more than {NUMBER_DIGITS_MAX} digits"),
        ("9" * 309 + ".5", "$", "too large"),
        ("-" + "1" * 310, "$", f"more than {NUMBER_DIGITS_MAX} digits"),
        ("1e309", "$", f"more than {NUMBER_DIGITS_MAX} digits"),
        ('{"a": 1} x', "line 1, column 10", "not JSON"),
        ('{"a":\n  tru}', "line 2, column 3", "not JSON"),
        ("", "line 1, column 1", "not JSON"),
        ('"\t"', "line 1, column 2", "not JSON"),
        ("\ufeff1", "byte 0", "byte order mark"),
        (nested(DEPTH_MAX + 1), "$" + "[0]" * DEPTH_MAX, f"deeper than {DEPTH_MAX}"),
        (nested(100_000), "$", f"deeper than {DEPTH_MAX}"),
    ],
)
def test_text_without_a_canonical_form_is_refused_with_its_place(
    text: str, where: str, says: str
) -> None:
    with pytest.raises(CanonicalError) as caught:
        parse_json(text)
    assert caught.value.where == where
    assert says in caught.value.message
    assert caught.value.fix
    assert "\n" not in str(caught.value)


def test_the_deepest_allowed_value_is_read_and_written() -> None:
    text = nested(DEPTH_MAX)
    assert canonical_text(parse_json(text)) == text


def test_bytes_that_are_not_utf_8_are_refused_with_their_place() -> None:
    with pytest.raises(CanonicalError, match="byte 2: not UTF-8"):
        parse_json(b'"a\xff"')


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [Decimal("1.5")]}, "$.a[0]"),
        ({"a": b"x"}, "$.a"),
        ({1: "x"}, "$"),
        ({"a": {None: 1}}, "$.a"),
        ([{1, 2}], "$[0]"),
        ([math.nan], "$[0]"),
        ([math.inf], "$[0]"),
        ("\ud800", "$"),
        (10**NUMBER_DIGITS_MAX, "$"),
    ],
)
def test_values_that_json_does_not_have_are_refused_with_their_place(
    value: Any, where: str
) -> None:
    with pytest.raises(CanonicalError) as caught:
        canonical(value)
    assert caught.value.where == where


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(CanonicalError, match="deeper"):
        canonical(loop)
