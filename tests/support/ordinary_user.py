"""An ordinary user in an empty home, who types commands; where tests run as root, another user."""

import os
import pty
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
_PROGRAM = Path(sys.executable).with_name("tillbridge")
# Root's own Python may be where nobody else may look: reading is allowed, writing is not.
_READS = "-all,+dac_read_search"
_AS_NOBODY = (
    "setpriv",
    *(f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *(f"--bounding-set={_READS}", f"--inh-caps={_READS}", f"--ambient-caps={_READS}"),
)


class OrdinaryUser:
    """Runs the program in `home`, without any variable of the tests'."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._prefix = _AS_NOBODY if os.geteuid() == 0 else ()
        path = f"{_PROGRAM.parent}:/usr/bin:/bin"
        self._env = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "COLUMNS": "200"}

    def write(self, name: str, text: str) -> Path:
        """Write a file of this user's."""
        path = self.home / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        if self._prefix:
            os.chown(path, NOBODY, NOBODY)
            os.chown(path.parent, NOBODY, NOBODY)
        return path

    def run(self, *arguments: str, folder: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end, without a terminal."""
        command = [*self._prefix, str(_PROGRAM), *arguments]
        return subprocess.run(
            command,
            cwd=self.home / folder,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def run_module(
        self, name: str, *arguments: str, folder: Path, inside: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a module of the tests to its end, in a folder that this user may read.

        `inside` is a command that runs it, before this user has given up root's rights.
        """
        return subprocess.run(
            [*inside, *self._prefix, sys.executable, "-m", name, *arguments],
            cwd=folder,
            env={**self._env, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=290 if inside else 110,
        )

    def run_other(
        self, *command: str, folder: Path, text: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run another program to its end, in a folder of this user's, with `text` as its input."""
        return subprocess.run(
            [*self._prefix, *command],
            cwd=folder,
            env={**self._env, **env},
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )

    @contextmanager
    def terminal(self, *arguments: str) -> Iterator[Iterator[str]]:
        """Run a command in a terminal of its own; yields the lines that it shows, as they come."""
        ours, theirs = pty.openpty()
        env = {**self._env, "TERM": "dumb"}
        process = subprocess.Popen(
            [*self._prefix, str(_PROGRAM), *arguments],
            cwd=self.home,
            env=env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            with os.fdopen(ours, encoding="utf-8", errors="replace") as shown:
                yield (line.rstrip() for line in shown)
                process.terminate()
                process.wait(20)
        finally:
            process.kill()
            process.wait()


@contextmanager
def ordinary_user() -> Iterator[OrdinaryUser]:
    """An ordinary user; skips the test where this machine has none to become."""
    home = Path(tempfile.mkdtemp(prefix="home-"))  # pytest's own folders are root's alone
    try:
        if os.geteuid() == 0:
            os.chown(home, NOBODY, NOBODY)
        user = OrdinaryUser(home)
        try:
            works = user.run("--version").returncode == 0
        except OSError:
            works = False
        if not works:
            pytest.skip("needs setpriv, and a user who may run this Python")
        yield user
    finally:
        shutil.rmtree(home, ignore_errors=True)
