"""`tillbridge adapter ...` as a process, with this checkout's program."""

from pathlib import Path

from tests.support.fork_server import run

ROOT = Path(__file__).resolve().parents[2]


def tillbridge(*arguments: str, cwd: Path) -> tuple[int, str, str]:
    """Run the command; return its exit code, and what it wrote to stdout and stderr."""
    done = run("adapter", *arguments, cwd=cwd, within_s=280)
    return done.returncode, done.stdout, done.stderr
