"""`tallystick demo`: the main job, once, against a target that does its worst."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from ops.broker import choose
from ops.broker.kinds import BrokerKind
from ops.cli.broker import Kind
from ops.cli.common import Json, err, guarded, out, print_json
from ops.cli.endings import exit_code, show
from ops.demo.story import Total, tell
from tallystick.errors import ExitCode


def demo(
    kind: Annotated[
        Kind, typer.Option("--kind", help="The broker: embedded needs nothing but Python.")
    ] = Kind.EMBEDDED,
    bootstrap: Annotated[
        str, typer.Option("--bootstrap", "-b", help="With --kind external: its address.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Carry out three commits while acknowledgements, a worker and contents are lost.

    Examples:

    ```sh
    tallystick demo
    tallystick demo --kind apache
    tallystick demo --json
    ```
    """
    began = time.monotonic()

    def action() -> Total:
        with err.status("starting the broker"):
            start = (
                choose.start_first(bootstrap=bootstrap)
                if kind is Kind.AUTO
                else choose.start(BrokerKind(kind.value), bootstrap=bootstrap)
            )
        with start as broker:
            screen = err if as_json else out
            screen.print(f"broker: [bold]{broker.kind}[/] at {broker.bootstrap}")
            return tell(
                broker,
                say=lambda line: screen.print(f"   {line}", style="dim"),
                act=lambda line: screen.print(f"\n[bold]{line}[/]"),
                show=(lambda _: None) if as_json else show,
            )

    total = guarded(action, as_json=as_json)
    total.seconds = round(time.monotonic() - began, 1)
    summary = {
        name: getattr(total, name)
        for name in (
            "planned",
            "verified",
            "duplicates",
            "receipts",
            "partials",
            "broker",
            "seconds",
        )
    }
    if as_json:
        print_json(summary)
    else:
        words = ", ".join(f"{name} {value}" for name, value in summary.items())
        out.print(f"\n[bold]{words}[/]")
    held = total.duplicates == 0 and total.planned == total.verified
    raise typer.Exit(exit_code(total.endings[-1]) if held else ExitCode.FAILED)
