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

from tallystick.errors import CallerError, ExitCode, TallyError
from tallystick.topics import DEFAULT_PREFIX, check_prefix

T = TypeVar("T")
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

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
    state_dir: Path = Path(".tallystick")


class Connection(msgspec.Struct, frozen=True):
    """Where the ledger is."""

    bootstrap: str
    prefix: str
    config: dict[str, str | int | bool]
    state_dir: Path


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
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def connection(bootstrap: str | None, prefix: str | None) -> Connection:
    """Options over environment over defaults; raises CallerError for an impossible prefix."""
    try:
        settings = Settings()
    except ValueError as error:
        raise CallerError(
            f"a setting cannot be read: {str(error).splitlines()[0]}",
            where="environment TALLYSTICK_*",
        ) from error
    return Connection(
        bootstrap=bootstrap or settings.bootstrap,
        prefix=check_prefix(prefix or settings.prefix),
        config=settings.kafka,
        state_dir=settings.state_dir,
    )


def print_json(value: Any) -> None:
    """One JSON object on one line, for programs."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def fail(error: TallyError, *, as_json: bool = False) -> NoReturn:
    """Say what is wrong in one line and leave with the error's exit code."""
    if as_json:
        print_json(
            {
                "error": {
                    "code": error.code,
                    "message": error.message,
                    "where": error.where,
                    "fix": error.fix,
                    "retryable": error.retryable,
                }
            }
        )
    else:
        err.print(f"[bold red]error[/] \\[{error.code}] ", end="")
        err.print(str(error), markup=False)
    raise typer.Exit(error.exit_code)


def guarded(action: Callable[[], T], *, as_json: bool = False) -> T:
    """Run `action`; its TallyError becomes one line and an exit code."""
    try:
        return action()
    except TallyError as error:
        fail(error, as_json=as_json)


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


def run_app(app: typer.Typer, name: str) -> NoReturn:
    """Run the command line; Ctrl-C ends it with 130 and no traceback."""
    try:
        app(prog_name=name, standalone_mode=False)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except typer.Abort:
        sys.exit(ExitCode.ABORTED)
    except KeyboardInterrupt:
        err.print("interrupted")
        sys.exit(ExitCode.ABORTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(ExitCode.SUCCESS)
    sys.exit(ExitCode.SUCCESS)


def pretty(value: Any) -> str:
    """JSON for people: indented, keys in their own order."""
    return json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False)
