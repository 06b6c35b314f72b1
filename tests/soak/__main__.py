"""`python -m tests.soak --minutes M --seed N`: breaks the installed program, and counts."""

import argparse
import asyncio
import logging
import os
import shutil
import sys
import tempfile
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import structlog

from tests.soak.broken_bridge import UNFENCED
from tests.soak.several import opened_several
from tests.soak.soak import LOSSES, Soak, opened
from tests.support.preloaded import preloaded

#: Defects that kills reveal, and what is not zero then.
CONTROLS = {
    "commit_after_the_200": "not in the database",
    "inbox_is_not_looked_at_after_a_start": "lost",
    "write_begins_unmarked": "doubled",
    "acknowledged_though_the_service_failed": "menus",
}
#: Those of several bridges.
CONTROLS_OF_SEVERAL = {
    UNFENCED: "doubled",
    "write_begins_unmarked": "doubled",
    "commit_after_the_200": "not in the database",
    "restoring_is_not_sent": "clicks undone",
}


async def play(folder: Path, asked: argparse.Namespace, defect: str = "") -> Soak:
    """Play rounds for as long as is asked, or until a planted defect is found."""
    started = time.monotonic()
    minutes = 0.0
    opening: AbstractAsyncContextManager[Soak] = opened(folder, asked.seed, defect)
    if asked.bridges:
        opening = opened_several(
            folder, asked.seed, stores=asked.stores, long_s=asked.long_s, defect=defect
        )
    async with opening as soak:
        while not minutes or minutes < asked.minutes:
            seen = len(soak.findings)
            await soak.round(asked.faults)
            minutes = (time.monotonic() - started) / 60
            losses = ", ".join(f"{name} {soak.counts[name]}" for name in LOSSES)
            done = f"{soak.counts['kills']} kills, {soak.counts['orders']} orders"
            print(f"{minutes:6.1f} min: {done}; {losses}", flush=True)
            for finding in soak.findings[seen:]:
                print(f"            {finding}", flush=True)
            if defect and soak.counts[_controls(asked)[defect]]:
                break
    return soak


def _controls(asked: argparse.Namespace) -> dict[str, str]:
    return CONTROLS_OF_SEVERAL if asked.bridges else CONTROLS


def main() -> int:
    """Return 1 where something was lost, or where a control has lost nothing."""
    parser = argparse.ArgumentParser(prog="make soak ARGS=")
    parser.add_argument("--minutes", type=float, default=10, help="for so long (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="of what happens, and when")
    parser.add_argument("--faults", type=int, default=50, help="of each round (default 50)")
    parser.add_argument(
        "--control",
        nargs="*",
        choices={**CONTROLS, **CONTROLS_OF_SEVERAL},
        help="plant these defects, by default all",
    )
    several = parser.add_argument_group("several bridges on one PostgreSQL")
    several.add_argument("--bridges", action="store_true", help="three, and a pair of servers")
    several.add_argument("--stores", type=int, default=12, help="so many (default 12)")
    several.add_argument(
        "--long-s", type=float, default=40, help="how long one is frozen or cut off (default 40)"
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
        for defect in asked.control or _controls(asked):
            loss = _controls(asked)[defect]
            print(f"{defect}: has to be found as {loss}", flush=True)
            found = asyncio.run(play(folder / defect, asked, defect)).counts[loss]
            failed += not found
            print(f"{defect}: {'found' if found else 'NOT FOUND'}", flush=True)
    if failed:
        print(f"The files are in {folder}")
    else:
        shutil.rmtree(folder)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
