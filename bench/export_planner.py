"""The process that `export_to_plan` measures: plans an export, and reads it with csv.reader.

Run as `python -m bench.export_planner FOLDER ROUNDS`; prints one JSON object. A fresh process, so
that memory is its own; the peak is what the kernel saw (VmHWM) above what was there before.
"""

import asyncio
import csv
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from bench.export_store import CHANGED, STORE, open_pos, write_menu
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import MenuSettings
from tillbridge.core.clock import Clock
from tillbridge.ledger import menu
from tillbridge.ledger.ledger import Ledger
from tillbridge.menu.compare import Overlay, compare
from tillbridge.menu.guard import Rules
from tillbridge.menu.plan import Assessment, guard_and_plan
from tillbridge.model.catalogue import CatalogueChanges

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
RULES = Rules(MenuSettings(), AssumptionSettings(), "USD")


async def measured(folder: Path, rounds: int) -> dict[str, float | None]:
    """Return medians of processor time (s), peak bytes beyond the start, and the longest hold."""
    ledger = await Ledger.open(folder / "data", clock=Clock())
    pos = open_pos(folder)
    # The daemon keeps these between two readings.
    known = await ledger.read(lambda connection: menu.known_fingerprints(connection, STORE))

    async def plan() -> Assessment:
        return await _planned(ledger, await pos.read_changes(known))

    try:
        await _warm_up(folder, ledger)
        before = _reset_peak()
        hold_ms, assessment = await _watched(plan)
        peak = None if before is None else _kib("VmHWM") * 1024 - before
        _check(assessment)
        took: dict[str, list[float]] = {"plan": [], "csv": []}
        for _round in range(rounds):
            started = time.process_time()  # of all threads; others on the machine do not count
            await plan()
            took["plan"].append(time.process_time() - started)
            started = time.process_time()
            _read(folder / "menu.csv")
            took["csv"].append(time.process_time() - started)
    finally:
        await pos.close()
        await ledger.close()
    ratios = [plan / read for plan, read in zip(took["plan"], took["csv"], strict=True)]
    return {
        "plan_s": statistics.median(took["plan"]),
        "csv_s": statistics.median(took["csv"]),
        "ratio": statistics.median(ratios),
        "hold_ms": hold_ms,
        "peak_bytes": peak,
        "file_bytes": (folder / "menu.csv").stat().st_size,
    }


async def _planned(ledger: Ledger, reading: CatalogueChanges) -> Assessment:
    overlay = Overlay(1, {})
    comparison = await ledger.read(lambda connection: compare(connection, STORE, reading, overlay))
    return await asyncio.to_thread(guard_and_plan, comparison, RULES, overlay.now_ms)


async def _warm_up(folder: Path, ledger: Ledger) -> None:
    """Plan something small first: what is made once is not what a large export takes."""
    small = folder / "small"
    (small / "orders").mkdir(parents=True)
    write_menu(small / "menu.csv", 50)
    pos = open_pos(small)
    await _planned(ledger, await pos.read_changes(frozenset()))
    await pos.close()


def _check(assessment: Assessment) -> None:
    """Refuse to measure something that does not do its job."""
    (step,) = assessment.plan.steps
    if step.kind != "batch" or len(step.update) != CHANGED or assessment.reasons:
        raise SystemExit(f"the plan is not ten updates: {assessment.plan.kind}")


def _read(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        for _row in csv.reader(file):
            pass


async def _watched(
    work: Callable[[], Awaitable[Assessment]],
) -> tuple[float, Assessment]:
    """Return how long the loop was held at most, in ms, and what the work gave."""
    longest = 0.0
    step_s = 0.001

    async def tick() -> None:
        nonlocal longest
        while True:
            started = time.perf_counter()
            await asyncio.sleep(step_s)
            longest = max(longest, time.perf_counter() - started - step_s)

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0.05)
    longest = 0.0
    try:
        result = await work()
    finally:
        ticker.cancel()
        with suppress(asyncio.CancelledError):
            await ticker
    return longest * 1000, result


def _reset_peak() -> int | None:
    """Let the kernel count the peak anew; return what is resident now. None: not on Linux."""
    try:
        _CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return None
    return _kib("VmRSS") * 1024


def _kib(name: str) -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise KeyError(name)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured(Path(sys.argv[1]), int(sys.argv[2])))))
