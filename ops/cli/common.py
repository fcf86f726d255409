"""What every command shares: connection options, output as text or JSON, errors, exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec
import typer
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict
from rich.console import Console

from tallystick.codec import Codec
from tallystick.codec_registry import codec_for
from tallystick.errors import CallerError, TallyError
from tallystick.topics import DEFAULT_PREFIX, check_prefix

T = TypeVar("T")


class Screen(Console):
    """A console whose reader may leave; `run_app` decides what that means."""

    def on_broken_pipe(self) -> None:
        """Its own way would end the process with 1."""
        raise BrokenPipeError


# Colors only where a terminal is, and none with NO_COLOR: rich sees to both.
out = Screen(highlight=False, soft_wrap=True)
err = Screen(stderr=True, highlight=False, soft_wrap=True)

EXIT_HELP = (
    "Exit codes: 0 success, 1 failed, 2 usage, 3 partial, 4 unknown, 5 blocked, 130 interrupted."
)


class Settings(BaseSettings):
    """Settings from the environment (TALLYSTICK_*); command-line options win."""

    model_config = SettingsConfigDict(env_prefix="TALLYSTICK_", extra="ignore")

    bootstrap: str = "127.0.0.1:9092"
    prefix: str = DEFAULT_PREFIX
    # Passed to librdkafka as it is, for security: TALLYSTICK_KAFKA='{"security.protocol": …}'.
    kafka: dict[str, str | int | bool] = Field(default_factory=dict)
    registry: str = ""
    state_dir: Path = Path(".tallystick")


class Connection(msgspec.Struct, frozen=True):
    """Where the ledger is."""

    bootstrap: str
    prefix: str
    config: dict[str, str | int | bool]
    registry: str
    state_dir: Path

    def codec(self) -> Codec:
        """How records are written and read here: through the registry where one is named."""
        return codec_for(self.registry or None, self.prefix)


Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        help="Kafka bootstrap address [env: TALLYSTICK_BOOTSTRAP].",
        show_default="127.0.0.1:9092",
    ),
]
Prefix = Annotated[
    str | None,
    typer.Option(
        "--prefix",
        help="Topic prefix of the tenant [env: TALLYSTICK_PREFIX].",
        show_default=DEFAULT_PREFIX,
    ),
]
Registry = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        help="Confluent-compatible schema registry; without one a header names the schema "
        "[env: TALLYSTICK_REGISTRY].",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def connection(
    bootstrap: str | None, prefix: str | None, registry: str | None = None
) -> Connection:
    """Options over environment over defaults; raises CallerError for an impossible prefix."""
    try:
        settings = Settings()
    except ValueError as error:
        raise CallerError(
            f"a setting cannot be read: {str(error).splitlines()[0]}",
            where="environment TALLYSTICK_*",
            fix="TALLYSTICK_KAFKA is a JSON object; the others are plain text",
        ) from error
    return Connection(
        bootstrap=bootstrap or settings.bootstrap,
        prefix=check_prefix(prefix or settings.prefix),
        config=settings.kafka,
        registry=registry or settings.registry,
        state_dir=settings.state_dir,
    )


def print_json(value: Any) -> None:
    """One JSON object on one line, for programs."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def plain(text: str) -> str:
    """`text` on one line of a terminal: what would move the cursor is written as an escape."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def tell(error: TallyError, *, as_json: bool = False) -> None:
    """Say what is wrong in one line: on stderr, or as a JSON object on stdout."""
    if as_json:
        found: dict[str, Any] = {
            "code": error.code,
            "message": plain(error.message),
            "where": plain(error.where),
            "fix": error.fix,
            "retryable": error.retryable,
        }
        more = ("frozen", "reason")  # which plan stands, which rule is broken
        found |= {name: getattr(error, name) for name in more if hasattr(error, name)}
        print_json({"error": found})
    else:
        err.print(f"[bold red]error[/] \\[{error.code}] ", end="")
        err.print(plain(str(error)), markup=False)


def fail(error: TallyError, *, as_json: bool = False) -> NoReturn:
    """Say what is wrong in one line and leave with the error's exit code."""
    tell(error, as_json=as_json)
    raise typer.Exit(error.exit_code)


def guarded(action: Callable[[], T], *, as_json: bool = False) -> T:
    """Run `action`; its TallyError becomes one line and an exit code."""
    try:
        return action()
    except TallyError as error:
        if was_interrupted(error):
            raise KeyboardInterrupt from None
        fail(error, as_json=as_json)


def was_interrupted(error: BaseException | None) -> bool:
    """Whether an error came up while cleaning up after Ctrl-C, and so is not the news."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def read_text(path: Path) -> bytes:
    """A file's bytes, or a CallerError that names it; `-` is standard input."""
    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise CallerError(
            f"cannot be read: {error.strerror}", where=str(path), fix="check the path"
        ) from error


def pretty(value: Any) -> str:
    """JSON for people: indented, keys in their own order."""
    return json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False)
