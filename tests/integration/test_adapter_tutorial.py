"""The tutorials of docs/adapters work as they are printed: commands, changes, answers.

The reader is an ordinary user in an empty home.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.ordinary_user import OrdinaryUser, ordinary_user

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(sh|diff|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def user() -> Iterator[OrdinaryUser]:
    with ordinary_user() as made:
        yield made


@pytest.mark.parametrize(("page", "changes"), [("tutorial.md", 2), ("tutorial-files.md", 4)])
def test_a_tutorial_leads_from_nothing_to_gold(
    page: str, changes: int, tmp_path: Path, user: OrdinaryUser
) -> None:
    if shutil.which("patch") is None:
        pytest.skip("needs patch, with which a reader applies the changes")
    installed, where = user.home / ".installed", user.home / ".where"
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    program = bin_ / "tillbridge"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tillbridge "$@"\n')
    # Into a folder of this test, and nothing from a network.
    pip = bin_ / "pip"
    pip.write_text(
        f'#!/bin/sh\nexec {sys.executable} -m pip "$@" -q --no-index --no-deps '
        f"--no-build-isolation --target {installed}\n"
    )
    for each in (program, pip):
        each.chmod(0o755)
    run = partial(
        user.run_other, PATH=f"{bin_}:/usr/bin:/bin", PYTHONPATH=f"{ROOT / 'src'}:{installed}"
    )
    folder, said = user.home, ""
    kinds = []
    for kind, text in BLOCK.findall((ROOT / "docs/adapters" / page).read_text("utf-8")):
        kinds.append(kind)
        if kind == "text":
            for line in text.splitlines():
                assert line in said, said
            continue
        if kind == "diff":
            done = run("patch", "-p0", "--no-backup-if-mismatch", folder=folder, text=text)
        else:
            done = run("sh", "-e", folder=folder, text=f"{text}\npwd > {where}\n")
        said = done.stdout + done.stderr
        assert done.returncode == 0, f"{text}\n{said}"
        assert "Hunk" not in said, said
        if kind == "sh":
            folder = Path(where.read_text().strip())
    assert kinds.count("diff") == changes
    assert kinds.count("text") >= 5
    # All of it has just been checked; so that its tests still find it, some are enough.
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-k", "reads or plain")
    done = run(sys.executable, "-m", "pytest", *options, folder=folder)
    assert done.returncode == 0, done.stdout
    assert [each.name for each in user.home.glob("[!.]*")] == ["mytill"]
