"""Builds the bundle for Windows on any system: `python packaging/windows/bundle.py dist`.

The zip holds the program and its tills as wheels, every library of the hashed lock as wheels for
64-bit Windows and each Python that install.ps1 takes, the scripts, the sample configuration and the
docs. Built twice from one commit it is the same file, byte for byte.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import libraries

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")  # those of install.ps1
_OURS = "tillbridge"
_ENTRY = re.compile(r"^(\S+==[^\\\n]+?)\s*\\?\n((?:[ \t]+--hash=\S+\s*\\?\n?)+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pin:
    """One library of a lock: its requirement, with its marker, and the text of its hashes."""

    requirement: Requirement
    hashes: str

    @property
    def name(self) -> str:
        """Its name, as names are compared."""
        return canonicalize_name(self.requirement.name)

    def is_for(self, python: str) -> bool:
        """Whether 64-bit Windows with this Python needs it."""
        marker = self.requirement.marker
        return marker is None or marker.evaluate(windows(python))

    def __str__(self) -> str:
        """Return it as it stands in a lock."""
        hashes = " \\\n".join(f"    {each}" for each in re.findall(r"--hash=\S+", self.hashes))
        return f"{self.requirement} \\\n{hashes}\n"


def windows(python: str) -> dict[str, str]:
    """Return what markers are asked about: 64-bit Windows with this Python."""
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{python}.0",
        "os_name": "nt",
        "platform_machine": "AMD64",
        "platform_python_implementation": "CPython",
        "platform_release": "10",
        "platform_system": "Windows",
        "platform_version": "10.0.19045",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "win32",
        "extra": "",
    }


def pins(lock: Path) -> list[Pin]:
    """Return everything that a lock holds."""
    return _pins(lock.read_text("utf-8"))


def _pins(text: str) -> list[Pin]:
    return [Pin(Requirement(what), hashes) for what, hashes in _ENTRY.findall(text)]


def needed() -> list[Pin]:
    """Return what the program and its tills need on Windows, whichever Python it is."""
    text = libraries.whole_lock(ROOT, windows(PYTHONS[-1]))
    return sorted(_pins(text), key=lambda pin: pin.name)


def fetch(wanted: Sequence[Pin], python: str, into: Path) -> None:
    """Download the wheels for one Python. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "lock.txt"
        # Without markers: pip would ask them about the machine that builds.
        lines = [
            str(Pin(Requirement(f"{pin.requirement.name}{pin.requirement.specifier}"), pin.hashes))
            for pin in wanted
            if pin.is_for(python)
        ]
        lock.write_text("".join(lines), "utf-8")
        _pip(
            "download",
            "--no-deps",
            "--require-hashes",
            "--only-binary=:all:",
            "--platform=win_amd64",
            f"--python-version={python}",
            "--implementation=cp",
            f"--dest={into}",
            f"--requirement={lock}",
        )


def build_ours(into: Path) -> None:
    """Build the wheels of the program and its tills."""
    tills = [str(project.parent) for project in sorted(ROOT.glob("adapters/*/pyproject.toml"))]
    _pip("wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={into}", str(ROOT), *tills)


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": _epoch()}
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env=environment)


def _epoch() -> str:
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return given
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return told or "315532800"  # 1980: the first that a zip can hold


def contents(folder: Path, wanted: Sequence[Pin]) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the bundle, by its name in it."""
    here = Path(__file__).parent
    for script in ("install.ps1", "uninstall.ps1"):
        text = (here / script).read_text("utf-8").replace("\n", "\r\n")
        # Windows PowerShell reads a script without this mark as the machine's code page.
        yield script, b"\xef\xbb\xbf" + text.encode()
    yield "README.md", (here / "README.md").read_bytes()
    yield "LICENSE", (ROOT / "LICENSE").read_bytes()
    yield "NOTICE", (ROOT / "NOTICE").read_bytes()
    yield "bridge.toml", _sample().encode()
    yield "requirements.txt", "".join(str(pin) for pin in wanted).encode()
    for page in sorted((ROOT / "docs").glob("*.md")):
        yield f"docs/{page.name}", page.read_bytes()
    for kind in ("program", "wheelhouse"):
        for wheel in sorted((folder / kind).glob("*.whl")):
            yield f"{kind}/{wheel.name}", wheel.read_bytes()


def _sample() -> str:
    """Return the sample configuration, with its data where Windows keeps data."""
    text = (ROOT / "config/bridge.toml").read_text("utf-8")
    text = text.replace('# data_dir = "/var/lib/tillbridge"', 'data_dir = "data"')
    return text.replace("\n", "\r\n")


def build(target: Path, pythons: Sequence[str] = PYTHONS) -> Path:
    """Write the bundle into the folder `target`; return its path."""
    wanted = needed()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_ours(folder / "program")
        for number, python in enumerate(pythons, 1):
            print(f"libraries for Python {python} ({number} of {len(pythons)}) ...", flush=True)
            fetch(wanted, python, folder / "wheelhouse")
        (program,) = (folder / "program").glob(f"{_OURS}-*.whl")
        version = program.name.split("-")[1]
        target.mkdir(parents=True, exist_ok=True)
        bundle = target / f"tillbridge-{version}-windows.zip"
        with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in sorted(contents(folder, wanted)):
                entry = zipfile.ZipInfo(f"tillbridge-{version}/{path}")
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
    return bundle


def main() -> None:
    """Build what the command line asks for."""
    parser = argparse.ArgumentParser(description="Build the bundle for Windows.")
    parser.add_argument("target", type=Path, help="the folder it is written to")
    parser.add_argument(
        "--python", action="append", metavar="VERSION", help=f"without it: {', '.join(PYTHONS)}"
    )
    arguments = parser.parse_args()
    bundle = build(arguments.target, arguments.python or PYTHONS)
    print(f"{bundle}: {bundle.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
