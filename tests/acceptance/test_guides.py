"""What the README and the guides tell a reader to type works, as they would type it."""

import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.guide_commands import ANSWERS, GUIDES, ROOT, paths, runnable

NOBODY = 65534


@cache
def ordinary_user() -> dict[str, Any]:
    """Return how a process is started as a user who is not root, where this machine lets it."""
    if os.name != "posix" or os.geteuid() != 0:
        return {}
    user: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    probe = [sys.executable, "-c", "import tests.support.guide_commands"]
    try:
        subprocess.run(probe, cwd=ROOT, check=True, capture_output=True, **user)
    except (OSError, subprocess.CalledProcessError):
        return {}  # root's own Python, in a home that is closed to others
    return user


def test_every_command_of_the_guides_works() -> None:
    # Not tmp_path: others may not look into it, and the names of sockets must be short.
    with tempfile.TemporaryDirectory() as made:
        home, user = Path(made) / "home", ordinary_user()
        home.mkdir()
        if user:
            for folder in (Path(made), home):
                os.chown(folder, NOBODY, NOBODY)
        kept = {
            name: value for name, value in os.environ.items() if not re.match("TILLB|XDG", name)
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.guide_commands"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
            env={**kept, "HOME": str(home), "TMPDIR": made},
            **user,
        )
        left = list(home.iterdir())
    assert done.returncode == 0, done.stderr
    came = json.loads(done.stdout.splitlines()[-1])
    assert list(came) == runnable()
    expected = {command: ANSWERS.get(command, (0, ""))[0] for command in came}
    wrong = {each: said for each, said in came.items() if said[0] != expected[each]}
    assert wrong == {}
    assert left == [], "in the home"


@pytest.mark.parametrize("page", GUIDES)
def test_every_path_of_the_guides_is_there(page: str) -> None:
    assert [each for each in paths(page) if not (ROOT / each).exists()] == []


def test_every_button_of_the_guides_is_on_a_page() -> None:
    sources = [
        *(ROOT / "src/tillbridge").rglob("*.html"),
        *(ROOT / "src/tillbridge/web").rglob("*.py"),
    ]
    shown = "".join(path.read_text("utf-8") for path in sources) + ">Allow<"  # the service's
    named = {
        label
        for page in GUIDES[1:]
        for label in re.findall(r"\*\*([^*\[]+)\*\*", (ROOT / page).read_text("utf-8"))
    }
    assert [each for each in named if f'"{each}"' not in shown and f">{each}<" not in shown] == []
