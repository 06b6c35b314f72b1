"""What the README and the guides tell a reader to type works, as they would type it."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.support.guide_commands import (
    ANSWERS,
    GUIDES,
    ROOT,
    VENDOR_ANSWERS,
    VENDOR_PAGES,
    paths,
    runnable,
    runnable_by_vendors,
)
from tests.support.ordinary_user import ordinary_user
from tillbridge.pos.scaffold import make_package


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


@pytest.mark.skipif(os.name != "posix", reason="the guides are for a shell")
def test_every_command_of_the_pages_for_vendors_works() -> None:
    with ordinary_user() as user:
        done = user.run_module("tests.support.guide_commands", "vendors", folder=ROOT)
        left = list(user.home.iterdir())
    assert done.returncode == 0, done.stderr
    came = json.loads(done.stdout.splitlines()[-1])
    assert [(page, command) for page, command, *_answer in came] == runnable_by_vendors()
    wrong = [each for each in came if each[2] != VENDOR_ANSWERS.get(each[1], (0, ""))[0]]
    assert wrong == []
    assert left == [], "in the home"


@pytest.mark.parametrize("page", [*GUIDES, *VENDOR_PAGES])
def test_every_path_of_the_guides_is_there(page: str, tmp_path: Path) -> None:
    package = make_package("mytill", tmp_path, kind="http").folder
    places = [ROOT, ROOT / "src", package] if page in VENDOR_PAGES else [ROOT]
    named = [each for each in paths(page) if not any((at / each).exists() for at in places)]
    assert named == []


def test_every_button_of_the_guides_is_on_a_page() -> None:
    sources = [
        *(ROOT / "src/tillbridge").rglob("*.html"),
        *(ROOT / "src/tillbridge/web").rglob("*.py"),
        ROOT / "src/tillbridge/setup/sections.toml",
    ]
    shown = "".join(path.read_text("utf-8") for path in sources) + ">Allow<"  # the service's
    named = {
        label
        for page in GUIDES[1:]
        for label in re.findall(r"\*\*([^*\[]+)\*\*", (ROOT / page).read_text("utf-8"))
    }
    assert [each for each in named if f'"{each}"' not in shown and f">{each}<" not in shown] == []
