"""`python -m bench [name ...]`: run the benches, print a table, say which aims are met."""

import argparse
import importlib
import pkgutil
import sys
import time
from collections.abc import Iterator

import bench
from bench.measure import Bench, Measured, Options, line


def registered() -> Iterator[Bench]:
    """Yield the benches of this package: each module that has a `BENCH`."""
    for found in pkgutil.iter_modules(bench.__path__):
        if not found.name.startswith("_"):
            each = getattr(importlib.import_module(f"bench.{found.name}"), "BENCH", None)
            if isinstance(each, Bench):
                yield each


def main() -> int:
    """Run what the command line asks for; return the exit code."""
    benches = {each.name: each for each in registered()}
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures the bridge, as ratios within one run. Files go to $TMPDIR: let it be"
        " on the disk that is meant, since a file system in memory makes commits cost nothing.",
        epilog="benches: " + "; ".join(f"{each.name}: {each.about}" for each in benches.values()),
    )
    parser.add_argument("name", nargs="*", help="which to run; all of them without a name")
    parser.add_argument("--list", action="store_true", help="list the benches")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--long", action="store_true", help="measure longer where it matters")
    parser.add_argument("--strict", action="store_true", help="exit 1 where an aim is missed")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.name if name not in benches]:
        parser.error(f"no bench named {unknown[0]}; there are: {', '.join(benches)}")
    if arguments.list:
        for each in benches.values():
            print(f"{each.name:<14} {each.about}")
        return 0
    options = Options(rounds=max(1, arguments.rounds), long=arguments.long)
    missed = 0
    aims = 0
    for name in arguments.name or benches:
        started = time.monotonic()
        print(f"{name}: {benches[name].about}", flush=True)
        for result in benches[name].run(options):
            print(line(result), flush=True)
            if isinstance(result, Measured) and result.met is not None:
                aims += 1
                missed += not result.met
        print(f"  ({time.monotonic() - started:.0f} s)\n", flush=True)
    print(f"{aims - missed} of {aims} aims met")
    return 1 if missed and arguments.strict else 0


if __name__ == "__main__":
    sys.exit(main())
