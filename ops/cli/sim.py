"""`tallystick sim`: run simulated worlds by seed (a development command; needs the tests)."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from ops.cli.common import Json, err, fail, out, plain, print_json
from tallystick.errors import CallerError


def sim(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 200,
    first: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="Run this one alone.")] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="With --seed: print what happened, made short.")
    ] = False,
    json: Json = False,
) -> None:
    """Try to break the ledger in simulated worlds, each from one seed; exit 1 if one breaks.

    A development command: run it in a checkout. A failing seed names the command that repeats it.

    Examples:

    ```sh
    tallystick sim --seeds 2000 --json
    tallystick sim --seed 112 --trace
    ```
    """
    explore = _explorer(as_json=json)
    if seed is not None and trace:
        _show(explore, seed)
        return
    wanted = range(first, first + seeds) if seed is None else (seed,)
    summary = explore.explore(wanted, _say_failure)
    fields = summary.as_fields()
    if json:
        print_json(fields)
    else:
        for name in ("seeds", "violations", "known_gaps", "seeds_per_second"):
            out.print(f"{name}: {fields[name]}", markup=False)
    if summary.failures:
        raise typer.Exit(1)


def _explorer(*, as_json: bool) -> Any:
    """The simulator lives among the tests, which an installed package does not have."""
    if find_spec("tests") is None or find_spec("tests.simulation") is None:
        fail(
            CallerError(
                "the simulator is not installed",
                where="tallystick sim",
                fix="run it in a checkout of the source, from its root",
            ),
            as_json=as_json,
        )
    return import_module("tests.simulation.explore")


def _show(explore: Any, seed: int) -> None:
    left_out = explore.shrink(seed) if explore.run_seed(seed)[1].broken else frozenset()
    if left_out:
        err.print(f"{len(left_out)} faults and actions left out, it still breaks", markup=False)
    for line in explore.tell(seed, left_out):
        out.print(plain(line), markup=False)


def _say_failure(seed: int, broken: list[str]) -> None:
    err.print(f"seed {seed}: {plain(broken[0])}", markup=False)
    err.print(f"  again: tallystick sim --seed {seed} --trace", markup=False)
