"""The wheels that go into the package: of the hashed lock, for every Python it is to run with."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import libraries

# Debian 12 has 3.11, Ubuntu 24.04 3.12, Debian 13 3.13: one package serves them all, since
# compiled modules carry their Python's name.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_GLIBC = ("manylinux_2_17", "manylinux2014", "manylinux_2_28")  # Debian 12 has 2.36


def fetch(root: Path, into: Path, machine: str) -> None:
    """Fetch the locked wheels, where they are not there yet: the only step with a network."""
    text = libraries.whole_lock(root)
    lock, fetched = into / "lock.txt", into / "fetched.txt"
    if fetched.exists() and fetched.read_text("utf-8") == text:
        return
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    lock.write_text(text, "utf-8")
    for python in PYTHONS:
        _pip(
            "download",
            "--require-hashes",
            "--only-binary=:all:",
            "--python-version",
            python,
            *(f"--platform={glibc}_{machine}" for glibc in _GLIBC),
            f"--find-links={into}",
            "--dest",
            str(into),
            "--requirement",
            str(lock),
        )
    lock.replace(fetched)


def build_own(root: Path, into: Path, environment: dict[str, str]) -> list[Path]:
    """Build the wheels of the program and its adapters; the same bytes from the same sources."""
    into.mkdir(parents=True, exist_ok=True)
    for source in (root, *sorted(each.parent for each in root.glob("adapters/*/pyproject.toml"))):
        _pip(
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "--wheel-dir",
            str(into),
            str(source),
            environment=environment,
        )
    return sorted(into.glob("*.whl"))


def unpack(wheels: Sequence[Path], into: Path) -> None:
    """Unpack wheels into one folder of modules.

    Those of one distribution for several Pythons differ in their compiled modules alone; ValueError
    where they do not.
    """
    for wheel in sorted(wheels, key=lambda each: each.name):
        with zipfile.ZipFile(wheel) as archive:
            for name, content in _files(archive):
                target = into / name
                if target.exists():
                    if target.read_bytes() != content and ".dist-info/" not in name:
                        message = f"{wheel.name} has another {name} than its sisters."
                        raise ValueError(message)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


def _files(archive: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    for entry in archive.infolist():
        name = entry.filename
        if entry.is_dir() or ".data/" in name:  # scripts and manual pages of libraries
            continue
        # Written by an installer about what it installed, and where.
        if name.endswith((".dist-info/RECORD", ".dist-info/WHEEL")):
            continue
        yield name, archive.read(entry)


def _pip(*arguments: str, environment: dict[str, str] | None = None) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, env=environment)
