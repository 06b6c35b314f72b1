"""What the README and the guides tell a reader to type works, as they would type it."""

import json
import os
import re

import pytest

from tests.support.guide_commands import ANSWERS, GUIDES, ROOT, paths, runnable
from tests.support.ordinary_user import ordinary_user


@pytest.mark.skipif(os.name != "posix", reason="the guides are for a shell")
def test_every_command_of_the_guides_works() -> None:
    with ordinary_user() as user:
        done = user.run_module("tests.support.guide_commands", folder=ROOT)
        left = list(user.home.iterdir())
    assert done.returncode == 0, done.stderr
    came = json.loads(done.stdout.splitlines()[-1])
    assert list(came) == runnable()
    expected = {command: ANSWERS.get(command, (0, ""))[0] for command in came}
    wrong = {each: said for each, said in came.items() if said[0] != expected[each]}
    assert wrong == {}
    assert left == [], "in the home"


@pytest.mark.parametrize("page", GUIDES[:-1])  # a vendor's are in a package of their own
def test_every_path_of_the_guides_is_there(page: str) -> None:
    assert [each for each in paths(page) if not (ROOT / each).exists()] == []


def test_every_button_of_the_guides_is_on_a_page() -> None:
    sources = [
        *(ROOT / "src/tillbridge").rglob("*.html"),
        *(ROOT / "src/tillbridge/web").rglob("*.py"),
        ROOT / "src/tillbridge/setup/sections.py",
    ]
    shown = "".join(path.read_text("utf-8") for path in sources) + ">Allow<"  # the service's
    named = {
        label
        for page in GUIDES[1:-1]
        for label in re.findall(r"\*\*([^*\[]+)\*\*", (ROOT / page).read_text("utf-8"))
    }
    assert [each for each in named if f'"{each}"' not in shown and f">{each}<" not in shown] == []
