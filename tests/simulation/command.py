"""The command line of the simulator."""

import argparse
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tests.simulation.machine import installed
from tests.simulation.mutants import MUTANTS, planted
from tests.simulation.simulation import Plan, Simulation, make_template, plan_of

_cpu, _clock = time.process_time, time.monotonic
_TOLD_EVERY_S = 60.0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make simulate ARGS=")
    parser.add_argument("--seed", type=int, default=None, help="play this one, and print all of it")
    parser.add_argument("--seeds", type=int, default=20, help="play so many")
    parser.add_argument("--mutants", nargs="*", help="plant these defects, by default all")
    parser.add_argument("--fresh", action="store_true", help="begin with a seed nobody has played")
    parser.add_argument("--jobs", type=int, default=1, help="in so many processes")
    parser.add_argument("--plan", type=Path, nargs="*", help="play the plans in these files")
    parser.add_argument("--first", type=int, default=1, help="from this one on")
    parser.add_argument("--orders", type=int, default=12, help="of each seed")
    parser.add_argument("--seconds", type=float, default=150.0, help="of virtual time")
    parser.add_argument("--digests", action="store_true", help="print a number of each history")
    parser.add_argument("--calm", action="store_true", help="without faults")
    parser.add_argument("--history", action="store_true", help="print it all the same")
    parser.add_argument("--cpu", type=float, default=1e9, help="stop after so many seconds of CPU")
    parser.add_argument("--days", type=float, default=None, help="in place of --seconds")
    asked = parser.parse_args()
    if asked.days is not None:
        asked.seconds = asked.days * 86400
    if asked.fresh:
        asked.first = int(time.time()) % 10**9 * 1000
    return asked


def in_processes(asked: argparse.Namespace) -> int:
    """Play a part of the seeds in each process; 1 where one of them has failed."""
    forked = multiprocessing.get_context("fork")  # importing takes longer than three seeds
    each = -(-asked.seeds // asked.jobs)
    ends = asked.first + asked.seeds
    parts = [
        forked.Process(target=_play_part, args=(asked, first, min(each, ends - first)))
        for first in range(asked.first, ends, each)
    ]
    for part in parts:
        part.start()
    for part in parts:
        part.join()
    return int(any(part.exitcode for part in parts))


def _play_part(asked: argparse.Namespace, first: int, seeds: int) -> None:
    asked.first, asked.seeds = first, seeds
    sys.exit(play(asked))


def main() -> int:
    """Run the seeds that are asked for; 1 where an invariant does not hold."""
    asked = _asked()
    if asked.mutants is not None:
        return find_mutants(asked.mutants or list(MUTANTS), asked.seeds)
    return in_processes(asked) if asked.jobs > 1 else play(asked)


def play(asked: argparse.Namespace) -> int:
    """Play the seeds, or the plans, one after the other; 1 where an invariant does not hold."""
    plans: Iterable[Plan] = (
        plan_of(seed, orders=asked.orders, seconds=asked.seconds, faults=not asked.calm)
        for seed in (
            range(asked.first, asked.first + asked.seeds) if asked.seed is None else [asked.seed]
        )
    )
    if asked.plan:
        plans = [Plan.from_json(each.read_text()) for each in asked.plan]
    folder = _folder()
    failed, orders, played = list[int](), 0, list[int]()
    first: Simulation | None = None  # of those that failed
    began = told = _clock()

    def tell() -> None:
        nonlocal told
        if _clock() < told + _TOLD_EVERY_S:
            return
        told = _clock()
        made, days = orders + len(sim.service.orders), sim.loop.now / 86400
        print(
            f"  {(told - began) / 60:.0f} min: {len(played)} seeds, {made} orders, "
            f"day {days:.1f} of seed {sim.plan.seed}; failed: {failed or 'none'}",
            flush=True,
        )

    try:
        with installed():
            template = make_template(folder)
            cpu = _cpu()
            for plan in plans:
                if _cpu() - cpu > asked.cpu:
                    break
                seed = plan.seed
                sim = Simulation(plan, folder, template)
                sim.on_look = tell
                sim.run()
                played.append(seed)
                orders += len(sim.service.orders)
                if sim.violations:
                    failed.append(seed)
                    print(f"seed {seed}: {sim.violations[0]}", flush=True)
                    first = first or sim
                if asked.digests:
                    print(f"seed {seed}: {sim.digest()} {sim.loop.steps} steps")
                if asked.history:
                    report(sim)
            took = _cpu() - cpu
            if first is not None:
                first = smallest(first, folder, template)
                report(first)
                print("the least that shows it; keep it in tests/simulation/kept:")
                print(first.plan.to_json())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    count, ends = len(played), f"{played[0]} to {played[-1]}"
    print(f"{count} seeds ({ends}), {orders} orders: {took:.1f} s of CPU,")
    print(f"{count / took:.1f} seeds/s, {orders / took:.0f} orders/s; failed: {failed or 'none'}")
    return 1 if failed else 0


def find_mutants(names: list[str], most: int) -> int:
    """Play seeds until each planted defect is found; 1 where one is not."""
    missed = []
    folder = _folder()
    try:
        with installed():
            template = make_template(folder)
            for name in names:
                found = None
                with planted(name):
                    for seed in range(1, most + 1):
                        sim = Simulation(plan_of(seed), folder, template)
                        sim.run()
                        if sim.violations:
                            found = f"seed {seed}: {sim.violations[0]}"
                            break
                missed += [] if found else [name]
                print(f"{name:44} {found or 'NOT FOUND'}"[:200], flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(names) - len(missed)} of {len(names)} found; missed: {missed or 'none'}")
    return 1 if missed else 0


def smallest(sim: Simulation, folder: Path, template: dict[str, bytes]) -> Simulation:
    """Return the run of the least of a plan that still violates the same invariant."""
    name, size = sim.violations[0].name, max(1, len(sim.plan.events) // 2)
    while size:
        at = 0
        while at < len(sim.plan.events):
            fewer = [*sim.plan.events[:at], *sim.plan.events[at + size :]]
            tried = Simulation(replace(sim.plan, events=fewer), folder, template)
            tried.run()
            if any(each.name == name for each in tried.violations):
                sim = tried
            else:
                at += size
        size //= 2
    return sim


def _folder() -> Path:
    shared = Path("/dev/shm")  # a disk that costs nothing
    return Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))


def report(sim: Simulation) -> None:
    """Print a history."""
    print(f"seed {sim.plan.seed}: {sim.plan.settings}")
    for event in sim.plan.events:
        print(f"  {event}")
    for at, what, detail in sim.history:
        print(f"    {at:9.3f} {what} {detail}")
    for line in sim.log_lines[-60:]:
        print(f"      log {line}")
    for violation in sim.violations:
        print(f"  VIOLATED {violation}")
    print(f"  digest {sim.digest()}")
    sys.stdout.flush()
