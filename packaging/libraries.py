"""The libraries of the program and all its tills, from the locks, for whatever is packaged.

`python libraries.py SOURCE TARGET` writes that lock for Linux into the file TARGET. Each line keeps
its hashes and its marker.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

LINUX: Mapping[str, str] = {"sys_platform": "linux"}
_BLOCK = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


def normalised(name: str) -> str:
    """Return a distribution's name as locks write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def blocks(lock: Path) -> dict[str, str]:
    """Return the lines of a lock that are about each distribution, hashes included, by its name."""
    found = _BLOCK.finditer(lock.read_text("utf-8"))
    return {normalised(each["name"]): each[0] for each in found}


def locked(lock: Path, names: Iterable[str]) -> str:
    """Return the lines of a lock, hashes included, that are about these distributions."""
    known = blocks(lock)
    return "".join(known[name] for name in names)


def of_adapters(root: Path, environment: Mapping[str, str] = LINUX) -> list[str]:
    """Return what the adapters in this repository need beside the program itself.

    Their extras too: who installs a package cannot choose some. `environment` is what markers ask
    about.
    """
    known = {*blocks(root / "requirements/run.txt"), "tillbridge"}
    needed = {
        normalised(each.name)
        for file in root.glob("adapters/*/pyproject.toml")
        for each in _wanted(tomllib.loads(file.read_text("utf-8"))["project"])
        if each.marker is None or each.marker.evaluate(dict(environment))
    }
    return sorted(needed - known)


def whole_lock(root: Path, environment: Mapping[str, str] = LINUX) -> str:
    """Return the lock of the program and all its adapters."""
    program = (root / "requirements/run.txt").read_text("utf-8")
    return program + locked(root / "requirements/dev.txt", of_adapters(root, environment))


def _wanted(project: Mapping[str, Any]) -> Iterator[Requirement]:
    extras = project.get("optional-dependencies", {}).values()
    yield from map(Requirement, chain(project["dependencies"], *extras))


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(whole_lock(Path(sys.argv[1])), "utf-8")
