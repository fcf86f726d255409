"""Commit to receipt: `python -m ops.bench.commits` (what `make bench` runs).

Plans of ten items against a target that answers in 5 ms: one after the other, then at 50 plans a
second. Beside the figures stands where the time goes, from the records' own log times.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import msgspec

from connectors.contract_file import load_contract
from ops.bench.bare import bare_hop_ms
from ops.bench.stations import Leg, legs
from ops.broker import choose
from ops.cli.common import out
from ops.demo.target_process import DemoTarget
from ops.processes import Piece, Pieces
from streams.topics_admin import create, open_admin
from tallystick.client import Tally
from tallystick.client.waiting import Ending
from tallystick.contracts import Contract
from tallystick.plans import build_plan
from tallystick.records import Plan, Receipt

CONTRACT = Path(__file__).parents[1] / "demo" / "contracts" / "cases-keyed.yaml"
ITEMS = 10
TARGET_ANSWERS_MS = 5
PLANS_A_SECOND = 50
WARM_UP_S = 8.0
"""Load before anything is measured: a broker whose code is not compiled yet is not what runs."""


class Figures(msgspec.Struct):
    """One way of asking, measured."""

    name: str
    commits: int
    p50_ms: float
    p99_ms: float
    receipts: int
    duplicates: int
    legs: list[Leg]
    cpu_ms: dict[str, float]


def _figures(
    name: str,
    times: Sequence[float],
    receipts: int,
    found: list[Leg],
    cpu_s: dict[str, float],
) -> Figures:
    cuts = statistics.quantiles(times, n=100)
    return Figures(
        name=name,
        commits=len(times),
        p50_ms=round(cuts[49], 1),
        p99_ms=round(cuts[98], 1),
        receipts=receipts,
        duplicates=0,
        legs=found,
        cpu_ms={name: round(used * 1_000 / len(times), 2) for name, used in cpu_s.items()},
    )


def _plan(contract: Contract, key: str) -> Plan:
    # A module of its own, so that reading one plan back does not list the others.
    return build_plan(
        commit_key=key,
        module=key,
        contract=contract.ref,
        policies=contract.policies(),
        tool="create_case",
        items=[
            {
                "identity": f"{key}-{n}",
                "payload": {"case_id": f"{key}-{n}", "title": f"case {n}", "steps": ["a", "b"]},
            }
            for n in range(ITEMS)
        ],
    )


def _idle(tally: Tally, contract: Contract, count: int, name: str) -> tuple[list[float], int]:
    times, receipts = [], 0
    for number in range(count):
        plan = _plan(contract, f"{name}-{number}")
        began = time.perf_counter()
        ending = tally.commit(plan, wait_s=30)
        times.append((time.perf_counter() - began) * 1_000)
        receipts += isinstance(ending, Receipt)
    return times, receipts


def _loaded(tally: Tally, contract: Contract, seconds: float, name: str) -> tuple[list[float], int]:
    """Open loop: plans leave by the clock, whether or not earlier ones have ended."""
    times: list[float] = []
    waiting = []
    plans = [_plan(contract, f"{name}-{n}") for n in range(round(seconds * PLANS_A_SECOND))]
    start = time.perf_counter()
    for number, plan in enumerate(plans):
        planned_at = start + number / PLANS_A_SECOND
        time.sleep(max(planned_at - time.perf_counter(), 0))
        pending = tally.submit(plan)

        def note(planned_at: float, _: Future[Ending]) -> None:
            times.append((time.perf_counter() - planned_at) * 1_000)

        pending.future.add_done_callback(partial(note, planned_at))
        waiting.append(pending)
    receipts = sum(isinstance(pending.result(60), Receipt) for pending in waiting)
    return times, receipts


def _cpu(pieces: Sequence[Piece]) -> dict[str, float]:
    """Processor seconds so far: each piece, and this process, which is the caller."""
    return {piece.name: piece.cpu_s for piece in pieces} | {"client": time.process_time()}


def _spent(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}


def measure(bootstrap: str, count: int, seconds: float) -> tuple[list[Figures], float]:
    """Both ways of asking, and the bare hop's p50 in milliseconds."""
    prefix = f"bench{os.getpid()}."
    create(open_admin(bootstrap), prefix, partitions=4)
    with (
        tempfile.TemporaryDirectory() as folder,
        DemoTarget("--latency-ms", str(TARGET_ANSWERS_MS)) as target,
    ):
        os.environ["CASES_URL"] = target.url
        contract = load_contract(CONTRACT)
        pieces = Pieces(bootstrap=bootstrap, prefix=prefix, state_dir=Path(folder))
        started = [
            pieces.worker().start(),
            pieces.dispatcher([CONTRACT]).start(),
            pieces.reader([CONTRACT]).start(),
        ]
        try:
            for piece in started:
                piece.wait_ready()
            with Tally.connect(bootstrap, prefix=prefix) as tally:
                _idle(tally, contract, 20, "warm-up")
                _loaded(tally, contract, WARM_UP_S, "warm-load")
                before = _cpu(started)
                times, receipts = _idle(tally, contract, count, "idle")
                used = _spent(before, _cpu(started))
                idle = _figures("idle", times, receipts, legs(bootstrap, prefix, "idle-"), used)
                before = _cpu(started)
                times, receipts = _loaded(tally, contract, seconds, "load")
                used = _spent(before, _cpu(started))
                found = legs(bootstrap, prefix, "load-")
                load = _figures(f"{PLANS_A_SECOND} plans a second", times, receipts, found, used)
            idle.duplicates = load.duplicates = target.duplicates()
        finally:
            pieces.stop()
    return [idle, load], statistics.median(bare_hop_ms(bootstrap))


def show(figures: list[Figures], bare_ms: float) -> None:
    """Print the figures, each beside its ratio to five bare hops."""
    out.print(f"one bare transactional hop: p50 {bare_ms:.1f} ms (the yardstick of this run)")
    for each in figures:
        ratio = each.p50_ms / (5 * bare_ms)
        out.print(
            f"[bold]{each.name}[/]: p50 {each.p50_ms} ms, p99 {each.p99_ms} ms; "
            f"p50 is {ratio:.2f} of five bare hops; {each.receipts} receipts of "
            f"{each.commits} commits, {each.duplicates} duplicates"
        )
        used = ", ".join(f"{name} {ms:g} ms" for name, ms in each.cpu_ms.items())
        out.print(f"   processor time a commit: {used}")
        for leg in each.legs:
            out.print(f"   {leg.name:<42} p50 {leg.p50_ms:>6.1f} ms   p99 {leg.p99_ms:>6.1f} ms")


def main() -> None:
    """Measure on a real broker and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="", help="a running broker; else one is started")
    parser.add_argument("--commits", type=int, default=200, help="commits when idle")
    parser.add_argument("--seconds", type=float, default=15, help="how long the load lasts")
    asked = parser.parse_args()
    start = choose.start_first(bootstrap=asked.bootstrap)
    with start as broker:
        out.print(f"broker: {broker.kind} at {broker.bootstrap}, {os.cpu_count()} cores")
        show(*measure(broker.bootstrap, asked.commits, asked.seconds))


if __name__ == "__main__":
    main()
