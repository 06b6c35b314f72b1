"""`python -m tests.fuzz [--seconds N] [target...]`: looks for inputs without a documented answer.

With atheris it is guided by coverage, and goes on with what earlier runs found (dist/fuzz); without
it inputs are changed at random. A finding is written into tests/fuzz/corpus, and its place printed.
"""

import argparse
import logging
import os
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import structlog

try:
    import atheris
except ImportError:  # there is no wheel for this Python
    atheris = None

_STARTS = "_FUZZ_TARGET"
_TURNS = 4
_FOUND = 3  # the exit code of a process that has found something
_INSTRUMENTED = [
    "tillbridge",
    *(f"tillbridge_{name}" for name in ("aloha", "clover", "loyverse", "sql", "square")),
]


def main() -> int:
    """Fuzz each target in a process of its own. Returns 1 if there was a finding."""
    parser = argparse.ArgumentParser("make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=None, help="of the changes; another each time")
    parser.add_argument("--jobs", type=int, default=1, help="so many targets at once (default 1)")
    parser.add_argument("--turn", type=int, help=f"one target of {_TURNS}: builds take turns")
    parser.add_argument("--list", action="store_true", help="print the targets")
    parser.add_argument("targets", nargs="*", help="all of them if none is named")
    asked = parser.parse_args()
    if name := os.environ.get(_STARTS):
        return _one(name, asked.seconds, asked.seed)
    from tests.fuzz.targets import TARGETS

    if asked.list or set(asked.targets) - TARGETS.keys():
        print("\n".join(TARGETS))
        return not asked.list
    names = asked.targets or list(TARGETS)
    if asked.turn is not None:
        names = names[asked.turn % _TURNS :: _TURNS]
    command = [sys.executable, "-m", "tests.fuzz", "--seconds", str(asked.seconds)]
    command += [] if asked.seed is None else ["--seed", str(asked.seed)]

    def has_findings(name: str) -> bool:
        print(f"== {name}", flush=True)
        env = {**os.environ, _STARTS: name}
        return subprocess.run(command, env=env, check=False).returncode != 0

    with ThreadPoolExecutor(asked.jobs) as jobs:
        found = sum(jobs.map(has_findings, names))
    print(f"{found} targets with findings" if found else "no findings")
    return found > 0


class _Findings:
    """Plays inputs, and writes down each finding once by the place where it was raised."""

    def __init__(self, target: Any) -> None:  # noqa: ANN401 -- a Target, imported when atheris listens
        self._target = target
        self._seen: set[tuple[object, ...]] = set()
        self.executions = 0

    def __len__(self) -> int:
        return len(self._seen)

    def play(self, data: bytes) -> None:
        self.executions += 1
        try:
            self._target.play(data)
        except Exception as failure:  # noqa: BLE001 -- whatever it is, it is what is looked for
            frames = traceback.extract_tb(failure.__traceback__)
            last = frames[-1]
            place = (type(failure), last.filename, last.lineno)
            if place not in self._seen:
                self._seen.add(place)
                print(f"FINDING, kept as {self._target.keep(data)}", flush=True)
                traceback.print_exception(failure, limit=-6, file=sys.stdout)


def _one(name: str, seconds: int, seed: int | None) -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if atheris is None:
        return _unguided(name, seconds, seed)
    with redirect_stderr(StringIO()), atheris.instrument_imports(include=_INSTRUMENTED):
        from tests.fuzz.targets import TARGETS
    from tests.fuzz.mutations import mutated

    target = TARGETS[name]
    findings = _Findings(target)
    inputs = target.inputs()
    kept = Path("dist/fuzz", name)
    kept.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        (kept / f"seed-{number}").write_bytes(data)

    def change(data: bytes, most: int, number: int) -> bytes:
        random = Random(number)
        if random.random() < 0.5:  # its own way, which remembers what was compared
            return bytes(atheris.Mutate(data, most))
        return mutated(data, inputs, random)[:most]

    print(f"{len(inputs)} inputs of {name} to begin with, atheris", flush=True)
    until, begun = time.monotonic() + seconds, time.monotonic()

    def play(data: bytes) -> None:
        findings.play(data)
        if time.monotonic() > until:
            _tell(name, findings, time.monotonic() - begun)
            sys.stdout.flush()
            os._exit(_FOUND if len(findings) else 0)  # libFuzzer would call the end a crash

    options = ["-max_len=65536", "-timeout=25", "-rss_limit_mb=3000", "-verbosity=0"]
    options += [] if seed is None else [f"-seed={seed}"]
    atheris.Setup([sys.argv[0], *options, str(kept)], play, custom_mutator=change)
    atheris.Fuzz()
    return 0


def _unguided(name: str, seconds: int, seed: int | None) -> int:
    from tests.fuzz.mutations import mutated
    from tests.fuzz.targets import TARGETS

    findings, inputs = _Findings(TARGETS[name]), TARGETS[name].inputs()
    seed = Random().randrange(1 << 32) if seed is None else seed
    random = Random(seed)
    print(
        f"{len(inputs)} inputs of {name} to begin with, changed at random, --seed {seed}",
        flush=True,
    )
    begun = time.monotonic()
    for data in inputs:
        findings.play(data)
    while time.monotonic() - begun < seconds:
        findings.play(mutated(random.choice(inputs), inputs, random))
    _tell(name, findings, time.monotonic() - begun)
    return _FOUND if len(findings) else 0


def _tell(name: str, findings: _Findings, took_s: float) -> None:
    pace = findings.executions / max(took_s, 0.001)
    print(f"{name}: {findings.executions} executions, {pace:.0f}/s, {len(findings)} findings")


sys.exit(main())
