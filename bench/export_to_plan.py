"""Reading, guarding, diffing and planning a large CSV of which ten rows changed."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.export_store import prepare
from bench.measure import Bench, Measured, Options, Result, Skipped

_AIMS = {20_000: 2, 200_000: 1}  # times what csv.reader takes; planning itself takes some 10 ms


def run(options: Options) -> Iterator[Result]:
    """Measure each size in a process of its own."""
    for items in _AIMS:
        with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as folder:
            prepare(Path(folder), items)
            yield from _told(_planner(Path(folder), options.rounds), items)


def _planner(folder: Path, rounds: int) -> dict[str, float | None]:
    command = [sys.executable, "-m", "bench.export_planner", str(folder), str(rounds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float | None] = json.loads(done.stdout.splitlines()[-1])
    return found


def _told(found: dict[str, float | None], items: int) -> Iterator[Result]:
    rows = f"{items:,} rows"
    plan, read, ratio = found["plan_s"], found["csv_s"], found["ratio"]
    hold, peak, size = found["hold_ms"], found["peak_bytes"], found["file_bytes"]
    assert plan is not None
    assert read is not None
    assert ratio is not None
    assert hold is not None
    assert size is not None
    note = f"({plan * 1000:.0f} ms; csv.reader {read * 1000:.0f} ms)"
    yield Measured(f"plan beside csv.reader, {rows}", ratio, "x", "at most", _AIMS[items], note)
    what = f"peak memory beside the file, {rows}"
    if peak is None:
        yield Skipped(what, "only Linux tells a process's peak")
    else:
        note = f"({peak / 2**20:.1f} MiB; file {size / 2**20:.1f} MiB)"
        yield Measured(what, peak / size, "x", "at most", 3, note)
    yield Measured(f"longest hold of the event loop, {rows}", hold, "ms", "at most", 50)


BENCH = Bench("export", "from a large export with ten changes to a plan, in processor time", run)
