"""The command line as a process: whatever happens becomes one line and an exit code.

Typer's own `main` is not used: outside its standalone mode it returns exit codes as values, and
inside it a usage error is a box of six lines and Ctrl-C is 1.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import ClassVar, NoReturn

import typer

from ops.cli.common import err, tell, was_interrupted
from tallystick.errors import CallerError, ExitCode, InvariantBroken, TallyError


class UsageFault(CallerError):
    """The command line itself is wrong: an option, a value, a command."""

    code: ClassVar[str] = "usage"


class Interrupted(TallyError):
    """Ctrl-C: the command stopped, and what it asked the ledger for goes on."""

    code: ClassVar[str] = "interrupted"
    exit_code = ExitCode.ABORTED


class Unexpected(InvariantBroken):
    """An error that nobody thought of: our fault."""

    code: ClassVar[str] = "unexpected"


def run_app(app: typer.Typer, name: str) -> NoReturn:
    """Run the command line with the process's own arguments."""
    arguments = sys.argv[1:]
    sys.exit(outcome(lambda: _invoke(app, name, arguments), as_json="--json" in arguments))


def outcome(action: Callable[[], None], *, as_json: bool) -> int:
    """The exit code of `action`; an error of any kind has been told when this returns."""
    try:
        action()
    except typer.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        # The reader of our output has seen enough; Python's own last flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.SUCCESS
    except (KeyboardInterrupt, typer.Abort):
        return _told(Interrupted("interrupted"), as_json=as_json)
    except Exception as error:  # noqa: BLE001 - the last place that can say it in one line
        return _failed(error, as_json=as_json)
    return ExitCode.SUCCESS


def _failed(error: Exception, *, as_json: bool) -> int:
    if was_interrupted(error) and not isinstance(error, Interrupted):
        error = Interrupted("interrupted")
    if isinstance(error, typer.TyperException):
        return _usage(error, as_json=as_json)
    if not isinstance(error, TallyError):
        if os.environ.get("TALLYSTICK_LOG", "").upper() == "DEBUG":
            traceback.print_exc()
        error = Unexpected(
            f"{type(error).__name__}: {error}",
            fix="report this with what TALLYSTICK_LOG=DEBUG shows",
        )
    return _told(error, as_json=as_json)


def log_to_stderr() -> None:
    """Libraries' warnings for people; TALLYSTICK_LOG=DEBUG shows more."""
    level = os.environ.get("TALLYSTICK_LOG", "WARNING").upper()
    if level not in logging.getLevelNamesMapping():
        raise CallerError(
            f"{level!r} is no level", where="TALLYSTICK_LOG", fix="DEBUG, INFO, WARNING or ERROR"
        )
    logging.basicConfig(
        stream=err.file, level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


def _invoke(app: typer.Typer, name: str, arguments: Sequence[str]) -> None:
    for number, text in enumerate(arguments, 1):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageFault(
                "is not UTF-8", where=f"argument {number}", fix="set the terminal to UTF-8"
            ) from None
    command = typer.main.get_command(app)
    with command.make_context(name, list(arguments)) as context:
        command.invoke(context)
    sys.stdout.flush()


def _told(error: TallyError, *, as_json: bool) -> int:
    tell(error, as_json=as_json)
    return error.exit_code


def _usage(error: typer.TyperException, *, as_json: bool) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "tallystick"
    message = " ".join(error.format_message().split())
    if message or as_json:  # empty: no command was named, and the help has been printed
        fault = UsageFault(
            message or "no command is named", where=command, fix=f"see `{command} --help`"
        )
        tell(fault, as_json=as_json)
    return ExitCode.USAGE
