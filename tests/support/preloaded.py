"""Libraries of C that stand between a program and the system (LD_PRELOAD)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def preloaded(name: str, folder: Path) -> Path:
    """Return the library made in `folder` of `name`.c, a path from this one, or skip the test."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler and LD_PRELOAD: a disk is watched, or broken, there")
    source = Path(__file__).parent / f"{name}.c"
    library = folder / f"{source.stem}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library
