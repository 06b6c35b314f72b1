"""What a bench hands back, and how it is shown."""

import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure. `rounds`: interleaved rounds, of which the median counts."""

    rounds: int = 5
    long: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """One number with its aim. `aim` None: it is told for information."""

    what: str
    value: float
    unit: str = "x"  # "x" for a ratio
    bound: Literal["at least", "at most"] = "at least"
    aim: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None where there is none."""
        if self.aim is None:
            return None
        return self.value >= self.aim if self.bound == "at least" else self.value <= self.aim


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that could not be measured here, and why."""

    what: str
    why: str


Result = Measured | Skipped


@dataclass(frozen=True, slots=True)
class Bench:
    """A bench: a module of this package registers one as `BENCH`."""

    name: str
    about: str
    run: Callable[[Options], Iterable[Result]]


def commit_ms(folder: str) -> float:
    """Return how long a small write takes until it is on this disk (median, ms).

    What it takes changes by a factor of ten where others share the disk.
    """
    took = []
    with (Path(folder) / "written").open("wb", buffering=0) as file:
        for _ in range(200):
            started = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            took.append(time.perf_counter() - started)
    return statistics.median(took) * 1000


def line(result: Result) -> str:
    """Return one line of the table."""
    if isinstance(result, Skipped):
        return f"  {result.what:<58} {'-':>12}  skipped: {result.why}"
    shown = f"{result.value:,.3g}" if abs(result.value) < 100 else f"{result.value:,.0f}"
    verdict = ""
    if result.aim is not None:
        verdict = f"{'met' if result.met else 'MISSED'} (aim: {result.bound} {result.aim:g})"
    return f"  {result.what:<58} {shown:>9} {result.unit:<5} {verdict} {result.note}".rstrip()
