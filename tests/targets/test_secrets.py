"""Credentials: sent where the contract says, and found in no stored word."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from connectors.targets.details import DETAIL_BYTES_MAX, bounded, explain
from connectors.targets.secrets import HIDDEN
from tallystick.errors import OperatorError
from tests.targets.wire import asked, document, intent, reply, run, target_at, wire

TOKEN = "s3cr3t/token+with=signs"
PAIR = base64.b64encode(f"ann:{TOKEN}".encode()).decode()
AUTHS: list[tuple[dict[str, Any], str, str]] = [
    ({"kind": "bearer", "env": "TOKEN"}, "authorization", f"Bearer {TOKEN}"),
    ({"kind": "header", "name": "X-Api-Key", "env": "TOKEN"}, "x-api-key", TOKEN),
    (
        {"kind": "basic", "user_env": "USER", "password_env": "TOKEN"},
        "authorization",
        f"Basic {PAIR}",
    ),
]
READBACK = {"kind": "strong", "path": "/c/{identity}", "compare": ["title"]}


@pytest.mark.parametrize(("auth", "header", "value"), AUTHS)
def test_a_target_that_echoes_the_credentials_does_not_get_them_stored(
    auth: dict[str, Any], header: str, value: str
) -> None:
    async def story() -> None:
        said = {"detail": f"bad credentials: {value}"}
        async with wire(reply(401, said)) as server:
            contract = {**document(readback=READBACK), "auth": auth}
            target = target_at(server.url, contract, TOKEN=TOKEN, USER="ann")
            result = await target.write(intent())
            answer = await target.read(asked(("c1", '{"title":"t"}')))
            await target.close()

            assert [seen.headers[header] for seen in server.requests] == [value, value]
            assert (result.outcome, result.error_class) == ("rejected", "permission")
            assert answer.error == "http_401"
            for text in (result.detail, answer.detail, repr(result), repr(answer)):
                assert TOKEN not in text
                assert PAIR not in text
            assert HIDDEN in result.detail

    run(story())


@pytest.mark.parametrize(("auth", "header", "value"), AUTHS)
@pytest.mark.parametrize("token", [None, ""])
def test_a_credential_that_is_not_set_is_named_by_its_variable(
    auth: dict[str, Any], header: str, value: str, token: str | None
) -> None:
    async def story() -> None:
        env = {"USER": "ann"} if token is None else {"USER": "ann", "TOKEN": token}
        with pytest.raises(OperatorError, match="environment variable TOKEN is not set"):
            target_at("http://127.0.0.1", {**document(), "auth": auth}, **env)

    run(story())


def test_a_credential_with_a_line_break_is_refused_without_being_shown() -> None:
    async def story() -> None:
        contract = {**document(), "auth": {"kind": "bearer", "env": "TOKEN"}}
        with pytest.raises(OperatorError, match="TOKEN has control characters") as caught:
            target_at("http://127.0.0.1", contract, TOKEN="abcdef\n")
        assert "abcdef" not in str(caught.value)

    run(story())


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "ftp://x",
        "http://",
        "http://a:secretpw@host",
        "http://h?q=1",
        "http://h#f",
        "http://a..b",
        "http://" + "a" * 70,
        "http://h:99999",
    ],
)
def test_an_address_that_is_none_is_refused_without_being_shown(url: str) -> None:
    async def story() -> None:
        with pytest.raises(OperatorError, match="does not stand for an http address") as caught:
            target_at(url, document())
        assert "secretpw" not in str(caught.value)

    run(story())


def test_an_unset_address_is_named() -> None:
    async def story() -> None:
        with pytest.raises(OperatorError, match="environment variable URL is not set"):
            target_at("", document())

    run(story())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"title":"Bad","detail":"steps are empty"}', "steps are empty"),
        (b'{"error":{"message":"no such module"}}', "no such module"),
        (b'{"error":"plain"}', "plain"),
        (b"<h1>Oops</h1>\n\n  twice", "<h1>Oops</h1> twice"),
        (b"{broken", "{broken"),
        (b"[1]", "[1]"),
        (b"", ""),
        (b"\xff\x00a", "\ufffd a"),
    ],
)
def test_an_explanation_is_one_line_of_what_the_target_said(body: bytes, said: str) -> None:
    assert explain(body, str) == said


def test_an_explanation_is_bounded_in_bytes_and_stays_text() -> None:
    text = bounded("é" * 10_000)

    assert len(text.encode()) <= DETAIL_BYTES_MAX
    assert text.endswith("…")
    assert set(text[:-1]) == {"é"}
