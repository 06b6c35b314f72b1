"""`tillbridge adapter ...` as a process, with this checkout's program."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tillbridge(*arguments: str, cwd: Path) -> tuple[int, str, str]:
    """Run the command; return its exit code, and what it wrote to stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "tillbridge", "adapter", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    return done.returncode, done.stdout, done.stderr
