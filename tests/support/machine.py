"""A small Debian machine: made once, changed in a copy, entered by chroot or booted with systemd.

Needs root, mmdebstrap and (to boot) systemd-nspawn; what is missing skips the test with a reason.
`make deb-test` and `make systemd-test` ask for it, since it takes minutes and a Debian mirror.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASKED_BY = "TILLBRIDGE_MACHINE_TESTS"
MIRROR = os.environ.get("DEBIAN_MIRROR", "")  # without it the one that mmdebstrap knows
PACKAGES = ("systemd", "systemd-sysv", "dbus", "python3", "adduser", "procps", "tzdata")
_REBOOTED = 133  # what systemd-nspawn ends with
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def needs(*programs: str) -> None:
    """Skip the test where it was not asked for, or cannot be done here."""
    if not os.environ.get(ASKED_BY):
        pytest.skip("takes minutes and a mirror: make deb-test, systemd-test, compose-test")
    if os.geteuid() != 0:
        pytest.skip("only root makes and enters machines")
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def build_package(folder: Path, *, version: str = "", epoch: int = 1_700_000_000) -> Path:
    """Build the Debian package of these sources into `folder`."""
    command = [sys.executable, str(ROOT / "packaging/deb/build.py"), "--out", str(folder)]
    done = subprocess.run(
        [*command, *(["--version", version] if version else [])],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Path(done.stdout.strip().splitlines()[-1])


def fresh_root(folder: Path, *, suite: str = "bookworm") -> Path:
    """Return a new root file system of Debian in `folder`; the first one is fetched and kept."""
    key = hashlib.sha256(" ".join((suite, MIRROR, *PACKAGES)).encode()).hexdigest()[:12]
    kept = ROOT / "build" / "machine" / f"{suite}-{key}.tar"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        beside = kept.with_suffix(".new.tar")
        made = subprocess.run(
            [
                "mmdebstrap",
                "--quiet",
                "--variant=apt",
                f"--include={','.join(PACKAGES)}",
                suite,
                str(beside),
                *([MIRROR] if MIRROR else []),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            pytest.skip(f"no Debian could be made here: {made.stderr.strip()[-300:]}")
        beside.replace(kept)
    root = folder / "root"
    root.mkdir()
    subprocess.run(["tar", "-C", str(root), "-xf", str(kept)], check=True)
    return root


class Chroot:
    """A root that is entered without being booted."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, *command: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in it; unless `ok` is false, it has to end with 0."""
        done = subprocess.run(
            ["chroot", str(self.root), "/usr/bin/env", "-i", _PATH, "LC_ALL=C.UTF-8", *command],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert not ok or done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
        return done

    def install(self, package: Path, *, ok: bool = True) -> subprocess.CompletedProcess[str]:
        """Install a package file, without a network and without a terminal."""
        shutil.copy(package, self.root / "package.deb")
        return self.run("dpkg", "--install", "/package.deb", ok=ok)


class Machine:
    """A root that runs: systemd is its first process. It shares this machine's network."""

    def __init__(self, root: Path, log: Path, binds: tuple[str, ...] = ()) -> None:
        self.root = root
        self.log = log
        self._binds = binds
        self._nspawn = self._boot()

    def _boot(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            return subprocess.Popen(
                [
                    "systemd-nspawn",
                    "--quiet",
                    "--boot",
                    "--register=no",
                    "--keep-unit",
                    "--machine=tillbridge-test",
                    f"--directory={self.root}",
                    *(f"--bind={bind}" for bind in self._binds),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def first_process(self) -> int:
        """The id, here, of its systemd; 0 where there is none."""
        for status in Path("/proc").glob("[0-9]*/status"):
            with suppress(OSError, StopIteration):
                lines = status.read_text().splitlines()
                parent = next(line for line in lines if line.startswith("PPid:")).split()[1]
                inside = next(line for line in lines if line.startswith("NSpid:")).split()
                if parent == str(self._nspawn.pid) and len(inside) > 2 and inside[-1] == "1":
                    return int(status.parent.name)
        return 0

    def command(self, *command: str) -> list[str]:
        """Return the command line that runs this in it, as root."""
        return [
            *("nsenter", "-t", str(self.first_process), "-m", "-u", "-i", "-n", "-p", "--"),
            *("/usr/bin/env", "-i", _PATH, "LC_ALL=C.UTF-8", *command),
        ]

    def run(self, *command: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in it as root; unless `ok` is false, it has to end with 0."""
        done = subprocess.run(
            self.command(*command),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
            start_new_session=True,  # in the background systemctl would stop at its terminal
        )
        assert not ok or done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
        return done

    def is_up(self) -> bool:
        """Whether it has come to the end of its start. One that was rebooted is switched on."""
        if self._nspawn.poll() == _REBOOTED:
            self._nspawn = self._boot()
        if not self.first_process:
            return False
        told = self.run("systemctl", "is-system-running", ok=False)
        return told.stdout.strip() in {"running", "degraded"}

    def ended(self) -> bool:
        """Whether there is no such machine any more."""
        return self._nspawn.poll() is not None

    def end(self) -> None:
        """Pull the plug."""
        if not self.ended():
            first = self.first_process
            if first:
                with suppress(ProcessLookupError):
                    os.kill(first, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._nspawn.wait(10)
            if not self.ended():
                self._nspawn.kill()
                self._nspawn.wait(10)


@contextmanager
def booted(root: Path, log: Path, binds: tuple[str, ...] = ()) -> Iterator[Machine]:
    """Boot a root; skips the test where namespaces are refused."""
    machine = Machine(root, log, binds)
    try:
        if not wait_for(lambda: machine.ended() or machine.is_up(), within_s=90) or machine.ended():
            pytest.skip(f"no machine can be booted here: {log.read_text(errors='replace')[-500:]}")
        yield machine
    finally:
        machine.end()


def wait_for(look: Callable[[], bool], *, within_s: float) -> bool:
    """Return whether it came true in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if look():
            return True
        time.sleep(0.2)
    return False
