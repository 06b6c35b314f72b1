"""`python -m tests.soak --minutes M --seed N`: breaks the installed program, and counts."""

import argparse
import asyncio
import logging
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import structlog

from tests.soak.soak import LOSSES, Soak, opened
from tests.support.preloaded import preloaded

#: Defects that kills reveal, and what is not zero then.
CONTROLS = {
    "commit_after_the_200": "not in the database",
    "inbox_is_not_looked_at_after_a_start": "lost",
    "write_begins_unmarked": "doubled",
    "acknowledged_though_the_service_failed": "menus",
}


async def play(folder: Path, asked: argparse.Namespace, defect: str = "") -> Soak:
    """Play rounds for as long as is asked, or until a planted defect is found."""
    started = time.monotonic()
    minutes = 0.0
    async with opened(folder, asked.seed, defect) as soak:
        while not minutes or minutes < asked.minutes:
            seen = len(soak.findings)
            await soak.round(asked.faults)
            minutes = (time.monotonic() - started) / 60
            losses = ", ".join(f"{name} {soak.counts[name]}" for name in LOSSES)
            done = f"{soak.counts['kills']} kills, {soak.counts['orders']} orders"
            print(f"{minutes:6.1f} min: {done}; {losses}", flush=True)
            for finding in soak.findings[seen:]:
                print(f"            {finding}", flush=True)
            if defect and soak.counts[CONTROLS[defect]]:
                break
    return soak


def main() -> int:
    """Return 1 where something was lost, or where a control has lost nothing."""
    parser = argparse.ArgumentParser(prog="make soak ARGS=")
    parser.add_argument("--minutes", type=float, default=10, help="for so long (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="of what happens, and when")
    parser.add_argument("--faults", type=int, default=50, help="of each round (default 50)")
    parser.add_argument(
        "--control", nargs="*", choices=CONTROLS, help="plant these defects, by default all"
    )
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    folder = Path(tempfile.mkdtemp(prefix="tillbridge-soak-"))
    folder.chmod(0o755)  # a database server that another user runs loads these, too
    libraries = [preloaded(name, folder) for name in ("faults", "../../bench/slow_fsync")]
    os.environ["LD_PRELOAD"] = ":".join(map(str, libraries))
    failed = 0
    if asked.control is None:
        soak = asyncio.run(play(folder / "soak", asked))
        failed = len(soak.findings)
        for name, count in soak.counts.items():
            print(f"{name:<20} {count:>7}")
    else:
        for defect in asked.control or CONTROLS:
            print(f"{defect}: has to be found as {CONTROLS[defect]}", flush=True)
            found = asyncio.run(play(folder / defect, asked, defect)).counts[CONTROLS[defect]]
            failed += not found
            print(f"{defect}: {'found' if found else 'NOT FOUND'}", flush=True)
    if failed:
        print(f"The files are in {folder}")
    else:
        shutil.rmtree(folder)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
