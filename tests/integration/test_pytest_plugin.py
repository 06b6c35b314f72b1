"""The conformance suite as a plugin of pytest, in a vendor's own repository."""

import json
import os
import subprocess
import sys
import venv
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tillbridge.pos.scaffold import make_package

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs/adapters/report.schema.json").read_text("utf-8"))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return make_package("corner_shop", tmp_path).folder


def run(*arguments: str, cwd: Path, program: tuple[str, ...] = ("pytest",)) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", *program, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_ADDOPTS": ""},
    )
    return done.returncode, done.stdout + done.stderr


QUICK = ("-q", "-p", "no:cacheprovider", "-p", "no:asyncio")


def report_of(path: Path) -> dict[str, Any]:
    said = json.loads(path.read_text("utf-8"))
    jsonschema.Draft202012Validator(SCHEMA).validate(said)
    return dict(said)


def test_an_adapter_is_tried_without_a_line_of_code(package: Path) -> None:
    (package / "tests/test_corner_shop.py").unlink()
    code, out = run(
        *QUICK, "--tillbridge-adapter", ".", "--tillbridge-report", "r.json", cwd=package
    )
    assert code == 0, out
    assert "passed     killed while writing, one ticket: killed" in out
    assert "exempt     timed out but applied" in out
    assert "level: silver" in out
    said = report_of(package / "r.json")
    assert (said["adapter"], said["passed"], said["level"]) == ("corner_shop", True, "silver")
    assert len(said["checks"]) == 31


def test_it_is_tried_at_each_run_where_the_configuration_says_so(package: Path) -> None:
    project = package / "pyproject.toml"
    text = project.read_text("utf-8")
    project.write_text(text + 'tillbridge_adapter = ["."]\n', "utf-8")
    (package / "tests/test_corner_shop.py").write_text(
        "def test_mine(tillbridge_till):\n"
        "    tillbridge_till.sell([], 'EUR')\n"
        "    assert not tillbridge_till.open().read_catalogue().items\n",
        "utf-8",
    )
    code, out = run(*QUICK, "-n", "2", "-k", "mine or reads or large_menu", cwd=package)
    assert code == 0, out
    assert "passed     reads 5,000 items" in out
    assert "level: none (not all was tried)" in out
    assert "3 passed" in out


def test_a_broken_adapter_fails_in_words_and_in_both_reports(package: Path) -> None:
    source = package / "src/tillbridge_corner_shop/adapter.py"
    text = source.read_text("utf-8")
    source.write_text(text.replace("return Item(external_id, name,", "return Item(name, name,"))
    code, out = run(
        *QUICK,
        *("--tillbridge-adapter", ".", "--tillbridge-report", "r.json", "--junitxml", "j.xml"),
        "-m",
        "tillbridge",
        cwd=package,
    )
    assert code == 1
    assert "What to do: " in out
    assert "Traceback" not in out
    said = report_of(package / "r.json")
    failed = {each["check"] for each in said["checks"] if each["standing"] == "failed"}
    assert {"reads", "identity"} <= failed
    assert (said["passed"], said["level"], said["claimed_level"]) == (False, "none", "silver")
    suite = ET.parse(package / "j.xml").getroot().find("testsuite")
    assert suite is not None
    assert {case.get("name") for case in suite if case.find("failure") is not None} == failed


@pytest.mark.parametrize(
    ("rule", "value", "says"),
    [
        ("lost_answer", '"done"', "quality.toml says that lost_answer is done"),
        ("offline", '{ exempt = "it is never off by itself" }', "offline is exempt, and it passes"),
    ],
)
def test_a_promise_that_is_not_kept_fails(package: Path, rule: str, value: str, says: str) -> None:
    path = package / "src/tillbridge_corner_shop/quality.toml"
    lines = path.read_text("utf-8").splitlines()
    path.write_text(
        "\n".join(f"{rule} = {value}" if line.startswith(f"{rule} ") else line for line in lines)
    )
    code, out = run(*QUICK, "--tillbridge-adapter", ".", "-k", rule, cwd=package)
    assert code == 1
    assert says in out


def test_an_adapter_that_is_not_there_is_told_before_anything_is_run(tmp_path: Path) -> None:
    code, out = run(*QUICK, "--tillbridge-adapter", "foldre", cwd=tmp_path)
    assert code == 4
    assert "Did you mean 'folder'?" in out


def test_without_the_option_it_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    assert not [n for n in sys.modules if n.startswith('tillbridge.adapter')]\n"
    )
    code, out = run(*QUICK, cwd=tmp_path)
    assert (code, "1 passed" in out, "level" in out) == (0, True, False), out


def test_the_command_writes_the_same_report_and_junit(package: Path) -> None:
    code, out = run(
        *("adapter", "check", ".", "--report", "r.json", "--junit", "j.xml"),
        cwd=package,
        program=("tillbridge",),
    )
    assert code == 0, out
    said = report_of(package / "r.json")
    suite = ET.parse(package / "j.xml").getroot().find("testsuite")
    assert suite is not None
    assert suite.get("tests") == str(len(said["checks"]))
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "13")
    code, out = run(
        *("adapter", "check", ".", "--only", "readme", "--report", "no/where.json"),
        cwd=package,
        program=("tillbridge",),
    )
    assert code == 1
    assert "no/where.json" in out


def test_it_works_in_a_fresh_environment_with_the_package_installed(
    package: Path, tmp_path: Path
) -> None:
    """As a vendor has it: a virtual environment of its own, in which the adapter is a wheel."""
    home = tmp_path / "venv"
    venv.create(home, symlinks=os.name != "nt")
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    # What tillbridge needs, and pip, is not fetched again: the new environment sees it in this one.
    ours = [each for each in sys.path if each.endswith("site-packages")]
    (site,) = home.glob("lib/python*/site-packages") if os.name != "nt" else [home / "Lib"]
    (site / "ours.pth").write_text("\n".join([*ours, str(ROOT / "src")]) + "\n")

    def vendor(*arguments: str, cwd: Path) -> str:
        done = subprocess.run(
            [str(python), "-m", *arguments],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    pip = ("pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation")
    vendor(*pip, str(package), cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    vendor(
        *("pytest", *QUICK, "--tillbridge-adapter", "corner_shop"),
        *("--tillbridge-report", "r.json"),
        cwd=elsewhere,
    )
    said = report_of(elsewhere / "r.json")
    assert (said["passed"], said["level"]) == (True, "silver")
    readme = next(each for each in said["checks"] if each["check"] == "readme")
    assert readme["outcome"] == "not tried"
    assert "corner_shop" in vendor("tillbridge", "adapter", "list", cwd=elsewhere)
