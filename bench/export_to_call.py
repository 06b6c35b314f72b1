"""From the rename of a changed export of 1,000 items to the availability call arriving."""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.export_caller import ITEMS
from bench.export_store import prepare
from bench.measure import Bench, Measured, Options, Result, Skipped


def run(options: Options) -> Iterator[Result]:
    """Measure with a quiet folder, then while other files in it keep changing, then idle."""
    rounds = 4 * options.rounds
    with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as folder:
        prepare(Path(folder), ITEMS)
        command = [sys.executable, "-m", "bench.export_caller", folder, str(rounds)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    for name, what in (("quiet_ms", "quiet folder"), ("noisy_ms", "other files change")):
        worst = f"(worst of {rounds}: {max(found[name]):.0f} ms)"
        value = statistics.median(found[name])
        yield Measured(
            f"rename to call beyond settle_ms, {what}", value, "ms", "at most", 60, worst
        )
    yield Measured("idle flow: processor time", found["idle_percent"], "%")
    if found["wakeups_per_s"] is None:
        yield Skipped("idle flow: wake-ups", "only Linux tells them")
    else:
        yield Measured("idle flow: wake-ups", found["wakeups_per_s"], "/s")


BENCH = Bench("86", "from a renamed export of 1,000 items to the availability call", run)
