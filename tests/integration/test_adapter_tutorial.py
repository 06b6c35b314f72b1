"""The tutorials of docs/adapters work as they are printed: commands, changes, answers."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(sh|diff|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("page", "changes"), [("tutorial.md", 2), ("tutorial-files.md", 4)])
def test_a_tutorial_leads_from_nothing_to_gold(page: str, changes: int, tmp_path: Path) -> None:
    if shutil.which("patch") is None:
        pytest.skip("needs patch, with which a reader applies the changes")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    program = bin_ / "tillbridge"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tillbridge "$@"\n')
    # Into a folder of this test, and nothing from a network.
    pip = bin_ / "pip"
    pip.write_text(
        f'#!/bin/sh\nexec {sys.executable} -m pip "$@" -q --no-index --no-deps '
        f"--no-build-isolation --target {tmp_path / 'installed'}\n"
    )
    for each in (program, pip):
        each.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT / 'src'}:{tmp_path / 'installed'}",
    }
    folder, said = tmp_path, ""
    kinds = []
    for kind, text in BLOCK.findall((ROOT / "docs/adapters" / page).read_text("utf-8")):
        kinds.append(kind)
        if kind == "text":
            for line in text.splitlines():
                assert line in said, said
            continue
        command = ["patch", "-p0", "--no-backup-if-mismatch"] if kind == "diff" else ["sh", "-e"]
        done = subprocess.run(
            command,
            input=text if kind == "diff" else f"{text}\npwd > {tmp_path}/where\n",
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, f"{text}\n{said}"
        assert "Hunk" not in said, said
        if kind == "sh":
            folder = Path((tmp_path / "where").read_text().strip())
    assert kinds.count("diff") == changes
    assert kinds.count("text") >= 5
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout
