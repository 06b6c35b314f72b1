"""Writes the lock of the program with all its tills: `python locks.py SOURCE TARGET`.

It is the program's lock, and what the tills need beside it from the lock of development. Every line
keeps its hashes and its marker. Runs with nothing but Python.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

_ENTRY = re.compile(r"^([A-Za-z0-9._-]+)(==[^\n]*\n(?:[ \t]+--hash=[^\n]*\n)+)", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def entries(lock: Path) -> dict[str, str]:
    """Return the text of each library of a lock, by its name."""
    found = _ENTRY.findall(lock.read_text("utf-8"))
    return {_plain(name): name + rest for name, rest in found}


def of_the_tills(source: Path) -> Iterable[str]:
    """Yield the names of what the tills need beside the program."""
    for project in sorted(source.glob("adapters/*/pyproject.toml")):
        for text in tomllib.loads(project.read_text("utf-8"))["project"].get("dependencies", ()):
            name = _NAME.match(text)
            if name is not None and _plain(name[0]) != "tillbridge":
                yield _plain(name[0])


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(source: Path, target: Path) -> None:
    """Write the lock."""
    run = entries(source / "requirements/run.txt")
    everything = entries(source / "requirements/dev.txt")
    for name in of_the_tills(source):
        run.setdefault(name, everything[name])
    target.write_text("".join(run[name] for name in sorted(run)), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
