"""What a vendor does in an afternoon: make a package, check it, try it, run its tests."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.adapter_command import tillbridge

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vendor")
    code, out, err = tillbridge("new", "corner_shop", "--in", str(folder), cwd=folder)
    assert code == 0, err
    assert "Next:" in out
    return folder / "corner_shop"


@pytest.mark.slow(reason="in short, the tutorial of files makes one, checks it and its level")
def test_a_generated_adapter_passes_its_checks_as_it_is(package: Path) -> None:
    code, out, err = tillbridge("check", ".", "--json", cwd=package)
    assert code == 0, out + err
    said = json.loads(out)
    assert (said["adapter"], said["passed"], said["level"]) == ("corner_shop", True, "silver")
    standings = {each["check"]: each["standing"] for each in said["checks"]}
    assert {standings[each] for each in ("reads", "killed", "readme", "sample", "cases")} == {
        "passed"
    }
    assert standings["lost_answer"] == "exempt"
    assert standings["news"] == "todo"


def test_a_generated_adapter_passes_its_own_tests(package: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=package,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d\d passed", done.stdout)


@pytest.mark.parametrize(
    "tool",
    [
        ["ruff", "check", "--no-cache", "--config", str(REPOSITORY / "pyproject.toml")],
        ["ruff", "format", "--check", "--no-cache", "--config", str(REPOSITORY / "pyproject.toml")],
    ],
    ids=["lint", "format"],
)
def test_what_is_generated_is_as_clean_as_the_harness(package: Path, tool: list[str]) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            *tool,
            "--config",
            "lint.per-file-ignores={'**'=['ARG002', 'D', 'INP001', 'S101', 'PLR2004']}",
            ".",
        ],
        cwd=package,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_trying_shows_what_is_read(package: Path) -> None:
    code, out, _err = tillbridge("try", ".", "--once", cwd=package)
    assert code == 0
    assert "17  Tomato soup   4.50" in out
    assert "items.csv, row 4" in out
    code, out, _err = tillbridge("try", ".", "--once", "--json", cwd=package)
    said = json.loads(out)
    assert said["catalogue"]["items"][0] == {
        "external_id": "17",
        "name": "Tomato soup",
        "price": 450,
    }
    assert said["health"] == {
        "online": False,
        "detail": "The folder for orders is not there.",
    }


def test_a_broken_adapter_fails_and_is_told_what_to_do(package: Path) -> None:
    source = package / "src/tillbridge_corner_shop/tickets.py"
    whole = source.read_text("utf-8")
    source.write_text(
        whole.replace("if (found := self.find(key)) is not None:", "if False:")
        .replace("return found\n", "return Ticket(key)\n", 1)
        .replace("{quote(key, safe='')}.json\"", '{time.time_ns()}.json"')
        .replace("import os\n", "import os\nimport time\n"),
        "utf-8",
    )
    try:
        code, out, _err = tillbridge("check", ".", "--only", "same_order_twice", cwd=package)
    finally:
        source.write_text(whole, "utf-8")
    assert code == 1
    assert "same order twice, one ticket" in out
    assert "Write the key with the ticket" in out


def test_a_promise_that_is_not_kept_is_told(package: Path) -> None:
    path = package / "src/tillbridge_corner_shop/quality.toml"
    whole = path.read_text("utf-8")
    path.write_text(whole.replace('news           = "todo"', 'news           = "done"'), "utf-8")
    try:
        code, out, _err = tillbridge("check", ".", cwd=package)
    finally:
        path.write_text(whole, "utf-8")
    assert code == 1
    assert "quality.toml says that news is done, and it could not be tried" in out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('level        = "silver"', 'level        = "gold"'), "claims the level gold"),
        (('killed           = "done"', 'killd = "done"'), "killd is no rule"),
        (('"health", ', '"helth", '), "helth is no capability"),
        (("a folder gives no answers that could be lost", "no"), "lost_answer must be"),
    ],
)
def test_a_quality_file_that_is_not_right_is_a_fault_of_usage(
    package: Path, change: tuple[str, str], words: str
) -> None:
    path = package / "src/tillbridge_corner_shop/quality.toml"
    whole = path.read_text("utf-8")
    assert change[0] in whole
    path.write_text(whole.replace(*change), "utf-8")
    try:
        code, _out, err = tillbridge("check", ".", cwd=package)
    finally:
        path.write_text(whole, "utf-8")
    assert code == 2
    assert words in err


def test_the_list_names_levels(tmp_path: Path) -> None:
    code, out, _err = tillbridge("list", "--json", cwd=tmp_path)
    assert code == 0
    folder = next(each for each in json.loads(out)["adapters"] if each["name"] == "folder")
    assert folder["level"] == "gold"
    assert "tickets" in folder["capabilities"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("new", "Not A Name"), 2, "cannot be the name of an adapter"),
        (("check", "no_such_adapter"), 2, "is not installed"),
        (("check", "folder", "--only", "no_such_check"), 2, "There is no check"),
        (("try", "folder", "--once"), 2, "bridge.toml"),
        (("try", "folder", "--once", "--currency", "euro"), 2, 'Did you mean "EUR" (Euro)?'),
    ],
)
def test_mistakes_end_with_what_to_do(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    found, out, err = tillbridge(*arguments, cwd=tmp_path)
    assert found == code
    assert words in " ".join((out + err).split())
