"""What one bridge with many stores takes: start, threads, memory, idle processor time."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.footprint import HAS_PROC, AtRest, Harness
from bench.measure import Bench, Measured, Options, Result, Skipped

_MANY = 150
_VERY_MANY = 1000
# What each store begins with is done by then, on a busy machine too.
_SETTLED_AFTER_S = {1: 30.0, _MANY: 30.0, _VERY_MANY: 90.0}
_IDLE_S = 30


def run(options: Options) -> Iterator[Result]:
    """Start it with 150 stores, and with 1,000 where it may take longer; then let it idle."""
    if not HAS_PROC:
        yield Skipped("many stores", "read from /proc, which is Linux")
        return
    alone = _at_rest(1)
    yield Measured("one store: processor time until it is ready", alone.ready_processor_s, "s")
    for stores in (_MANY, _VERY_MANY) if options.long else (_MANY,):
        seen = _at_rest(stores)
        aims = stores == _MANY
        name = f"{stores:,} stores: "

        def measured(what: str, value: float, unit: str, aim: float | None) -> Measured:
            return Measured(f"{name}{what}", value, unit, "at most", aim if aims else None)  # noqa: B023 -- called here

        yield measured("spawn until it is ready", seen.ready_s, "s", 3)
        yield measured("processor time until it is ready", seen.ready_processor_s, "s", None)
        yield measured("threads", seen.threads, "", 64)
        yield measured("resident memory", seen.resident, "MiB", 110)
        each = 1024 * (seen.resident - alone.resident) / (stores - 1)
        yield measured("memory of each further store", each, "KiB", None)
        yield measured(f"processor time, {_IDLE_S} s of idling", seen.processor, "%", 2)


def _at_rest(stores: int) -> AtRest:
    with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as name:
        return Harness(Path(name), stores).at_rest(_IDLE_S, _SETTLED_AFTER_S[stores])


BENCH = Bench("stores", "start, threads, memory and idle processor time with 150 stores", run)
