"""How much of the program one act passes: functions, files, writes and reads of the ledger.

The real daemon runs with a profiler that notes every function of `src/tillbridge` while one act
goes through it, in whatever thread; the act is done once before, so that nothing is counted that
happens the first time only. Methods and properties count; what has no name (lambdas,
comprehensions) and what is generated (a dataclass's `__init__`) does not, nor does a library.

What a log line, a text or a metric passes counts as well as the act itself. Timers are set far
apart, so that what runs in the background stays out, apart from the two loops that never rest: the
receiver's deadlines and the watch of the till's folders.
"""

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Bench, Measured, Options, Result
from tests.support.bridge_process import until
from tests.support.world import World, make_world

# Loaded by the daemon's interpreter before anything else. While the file `on` exists, functions
# entered are noted; they are written to `seen` once it is gone.
_TRACER = """
import json, os, sys, threading, time
ON, SEEN = os.environ["TRACE_ON"], os.environ["TRACE_SEEN"]
entered, counts, recording = set(), {}, False
LEDGER = {"Ledger.write": "writes", "Ledger.read": "reads"}

def note(frame, event, _argument):
    if recording and event == "call":
        code = frame.f_code
        if "src/tillbridge/" in code.co_filename:
            key = code.co_filename.rpartition("src/tillbridge/")[2], code.co_qualname
            if key not in entered and code.co_name[0] != "<":
                entered.add(key)
            kind = LEDGER.get(code.co_qualname)
            if kind:  # a coroutine is entered again each time it goes on: by frame
                counts.setdefault(kind, set()).add(frame)

def watch():
    global recording
    while True:
        time.sleep(0.02)
        there = os.path.exists(ON)
        if recording and not there:
            recording = False
            with open(SEEN + ".new", "w") as file:
                calls = {kind: len(frames) for kind, frames in counts.items()}
                json.dump({"entered": sorted(entered), **calls}, file)
            os.replace(SEEN + ".new", SEEN)
            entered.clear(); counts.clear()
        recording = there

if "run" in sys.argv or "run" in getattr(sys, "orig_argv", ()):
    threading.setprofile(note)
    sys.setprofile(note)
    threading.Thread(target=watch, daemon=True).start()
"""
_QUIET = "idle_read_s = 0\nstore_look_s = 3600\nintegration_check_s = 3600"
_SETTLE_S = 1.0
_UNITS = ("functions", "files", "writes", "reads")


@dataclass(frozen=True, slots=True)
class Journey:
    """What one act has passed."""

    functions: tuple[str, ...]
    files: int
    writes: int
    reads: int


async def traced(folder: Path, act: Callable[[World], Awaitable[None]]) -> Journey:
    """Run the daemon, let `act` happen twice, and return what the second time passed."""
    tracer, on, seen = folder / "tracer", folder / "on", folder / "seen.json"
    tracer.mkdir(parents=True)
    (tracer / "sitecustomize.py").write_text(_TRACER, "utf-8")
    async with make_world(folder / "shop") as world:
        world.write_config(top=_QUIET)
        config = world.config.read_text("utf-8")
        quiet = 'updates_dir = "updates"\npoll_s = 3600\nhealth_s = 3600'
        config = config.replace('updates_dir = "updates"', quiet)
        config += "\n[diagnostics]\nprobe_every_s = 0\nservice_probe_every_s = 0\n"
        world.config.write_text(config, "utf-8")
        world.bridge.env |= {
            "PYTHONPATH": str(tracer),
            "TRACE_ON": str(on),
            "TRACE_SEEN": str(seen),
        }
        await world.bridge.start()
        code, out, err = await world.connect()
        if code:
            raise RuntimeError(out + err)
        await world.menu_is_on_sale()
        await act(world)
        await asyncio.sleep(_SETTLE_S)
        on.touch()
        await asyncio.sleep(0.1)
        await act(world)
        await asyncio.sleep(_SETTLE_S)
        on.unlink()
        await until("the trace is there", seen.exists)
        found = json.loads(seen.read_text("utf-8"))
    entered = [tuple(each) for each in found["entered"]]
    return Journey(
        tuple(f"{file} {name}" for file, name in entered),
        len({file for file, _name in entered}),
        found.get("writes", 0),
        found.get("reads", 0),
    )


async def delivery(world: World) -> None:
    """Let a guest order, and the service hear that it is accepted."""
    order = await world.order("p1")
    await world.reaches(order, "accepted")


async def price_change(world: World) -> None:
    """Let the till export another price, and the service get it."""
    before = len(await world.calls("/items/p2"))
    prices = {"2.50": "2.95", "2.95": "3.10"}
    world.till.change("p2", price=prices[world.till.rows["p2"]["price"]])

    async def patched() -> bool:
        return len(await world.calls("/items/p2")) > before

    await until("the service has the price", patched)


# Each journey with its aims: functions, files, writes and reads of the ledger.
_JOURNEYS = (
    ("from a delivery to accepted", delivery, (130, 30, 5, 2)),
    ("from an export to the PATCH", price_change, (200, 40, 3, 4)),
)


def _run(options: Options) -> Iterator[Result]:
    for about, act, aims in _JOURNEYS:
        with tempfile.TemporaryDirectory() as folder:
            journey = asyncio.run(traced(Path(folder), act))
        if options.long:
            print("\n".join(f"    {each}" for each in journey.functions))
        passed = (len(journey.functions), journey.files, journey.writes, journey.reads)
        for value, unit, aim in zip(passed, _UNITS, aims, strict=True):
            yield Measured(f"{about}: {unit}", value, unit, "at most", aim)


BENCH = Bench("journeys", "what one act passes of the program (--long lists it)", _run)
