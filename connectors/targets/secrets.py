"""Credentials from the environment, and keeping them out of every word that is stored."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from urllib.parse import quote

from tallystick.contracts import Auth, AuthKind
from tallystick.errors import OperatorError

HIDDEN = "[hidden]"
SECRET_CHARS_MIN = 4
"""Shorter values are not searched for: hiding every "a" would destroy the text and name the
secret by its holes."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class Credentials:
    """The headers that authenticate, and every form in which their secrets could be echoed."""

    def __init__(self, headers: Mapping[str, str], secrets: tuple[str, ...]) -> None:
        self.headers = dict(headers)
        forms = {
            form
            for secret in secrets
            for form in (secret, quote(secret, safe=""))
            if len(form) >= SECRET_CHARS_MIN
        }
        # The longest first, or a part would be hidden and the rest left standing.
        self._forms = tuple(sorted(forms, key=len, reverse=True))

    def hide(self, text: str) -> str:
        """`text` with every secret replaced."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text


def credentials(auth: Auth, env: Mapping[str, str], contract: str) -> Credentials:
    """Read what `auth` names; raises OperatorError naming a variable that is not set."""

    def value(field: str) -> str:
        found = _variable(getattr(auth, field) or "", env, f"contract {contract!r}: auth.{field}")
        if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in found):
            raise OperatorError(
                f"environment variable {getattr(auth, field)} has control characters in it",
                where=f"contract {contract!r}: auth.{field}",
                fix="remove them; a trailing line break is the usual one",
            )
        return found

    if auth.kind is AuthKind.BEARER:
        token = value("env")
        return Credentials({"Authorization": f"Bearer {token}"}, (token,))
    if auth.kind is AuthKind.HEADER:
        token = value("env")
        return Credentials({auth.name or "": token}, (token,))
    if auth.kind is AuthKind.BASIC:
        user, password = value("user_env"), value("password_env")
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        return Credentials({"Authorization": f"Basic {pair}"}, (password, pair))
    return Credentials({}, ())


def expand(text: str, env: Mapping[str, str], where: str) -> str:
    """`text` with `${NAME}` replaced from the environment; raises OperatorError."""
    return _VARIABLE.sub(lambda found: _variable(found.group(1), env, where), text)


def _variable(name: str, env: Mapping[str, str], where: str) -> str:
    value = env.get(name, "")
    if not value:
        raise OperatorError(
            f"environment variable {name} is not set", where=where, fix=f"export {name}=…"
        )
    return value
