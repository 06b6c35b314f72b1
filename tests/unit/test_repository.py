"""What must hold for the repository itself, whoever changes it."""

import importlib.metadata
import io
import os
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tillbridge

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted(ROOT.glob("requirements/*.txt"))
# In parts, so that this file does not name them.
REGISTRY_HOSTS = [
    "py" + "pi.org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "npm" + "js.com",
    "deb." + "debian.org",
    "docker" + ".io",
]
SILENCER = re.compile(r"#\s*(?:noqa|type:\s*ignore)\b(?P<rest>.*)")
NAMED_WITH_REASON = re.compile(
    r"(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|\[[a-z-]+(?:,\s*[a-z-]+)*\])(.+)"
)


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def pins(lock: Path) -> dict[str, str]:
    """The version each name is pinned to."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", lock.read_text("utf-8"), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def tracked_files() -> Iterator[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", "-z"],
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file():
            yield path


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_requirement_of_a_lock_carries_hashes(lock: Path) -> None:
    lines = [line for line in lock.read_text("utf-8").splitlines() if not line.startswith("#")]
    requirements = re.split(r"\n(?=\S)", "\n".join(lines))
    assert pins(lock)
    for requirement in requirements:
        assert re.match(r"[a-z0-9.-]+==\S+ ", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_no_lock_names_an_index(lock: Path) -> None:
    text = lock.read_text("utf-8")
    for trace in ("://", "--index", "--extra-index", "--find-links", "--trusted-host", " @ "):
        assert trace not in text


def test_developers_run_what_users_run() -> None:
    run, dev = pins(ROOT / "requirements/run.txt"), pins(ROOT / "requirements/dev.txt")
    assert run.items() <= dev.items()


def test_the_locks_are_as_new_as_the_project() -> None:
    declared = project()
    wanted = {
        "run": declared["project"]["dependencies"],
        "dev": declared["dependency-groups"]["dev"],
        "lock": declared["dependency-groups"]["lock"],
    }
    for name, requirements in wanted.items():
        pinned = pins(ROOT / f"requirements/{name}.txt")
        for requirement in map(Requirement, requirements):
            version = pinned.get(canonicalize_name(requirement.name), "none")
            assert version != "none", f"run make lock: {requirement} is not in {name}.txt"
            assert requirement.specifier.contains(version), f"run make lock: {requirement}"


def test_no_tracked_file_names_a_package_registry() -> None:
    naming = [
        f"{path.relative_to(ROOT)}: {host}"
        for path in tracked_files()
        for host in REGISTRY_HOSTS
        if host.encode() in path.read_bytes()
    ]
    assert naming == []


def test_the_version_is_written_once() -> None:
    declared = project()
    assert declared["project"]["dynamic"] == ["version"]
    assert "version" not in declared["project"]
    assert declared["tool"]["hatch"]["version"] == {"path": "src/tillbridge/__init__.py"}
    assert importlib.metadata.version("tillbridge") == tillbridge.__version__


def test_the_changelog_knows_the_version_or_what_comes_next() -> None:
    headings = re.findall(
        r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert headings[0] in {"Unreleased", tillbridge.__version__}


def test_every_rule_left_out_says_why() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    lint = text[text.index("[tool.ruff.lint]") : text.index("[tool.ruff.lint.flake8-bugbear]")]
    rules = re.findall(r"^ +\"[A-Z]+\d*\",.*$", lint, re.MULTILINE)
    assert rules
    assert [rule for rule in rules if not re.search(r"# \S", rule)] == []


def test_every_silenced_finding_in_the_source_names_its_rule_and_its_reason() -> None:
    bare = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        source = io.StringIO(path.read_text("utf-8"))
        for token in tokenize.generate_tokens(source.readline):
            silencer = SILENCER.search(token.string) if token.type == tokenize.COMMENT else None
            if silencer is None:
                continue
            named = NAMED_WITH_REASON.match(silencer["rest"])
            if named is None or len(re.findall(r"\w{2,}", named[1])) < 2:
                bare.append(f"{path.relative_to(ROOT)}:{token.start[0]}: {token.string}")
    assert bare == []


def test_what_is_left_to_make_slow_says_what_covers_it_in_make_test() -> None:
    texts = {
        path: path.read_text("utf-8")
        for folder in ("tests", "adapters")
        for path in (ROOT / folder).rglob("test_*.py")
    }
    bare = re.compile(r"mark\.slow\b(?!\(\s*reason=)")
    assert [path for path, text in texts.items() if bare.search(text)] == []


def test_the_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert project()["project"]["license"] == "Apache-2.0"
    for part in (
        "Apache License\n",
        "Version 2.0, January 2004",
        "9. Accepting Warranty",
        "END OF TERMS",
    ):
        assert part in text


def test_the_program_says_that_it_is_typed() -> None:
    assert (ROOT / "src/tillbridge/py.typed").exists()


def test_the_promised_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert {"setup", "demo", "test", "check", "bench", "lock", "help", "clean"} <= targets


def test_every_decision_has_a_number_of_its_own_and_says_it() -> None:
    decisions = sorted((ROOT / "docs/decisions").glob("0*.md"))
    numbers = [int(path.name[:4]) for path in decisions]
    assert len(set(numbers)) == len(numbers), "a number that is given away is never used twice"
    for number, path in zip(numbers, decisions, strict=True):
        assert path.read_text("utf-8").startswith(f"# {number}. "), path.name


def test_every_picture_is_taken_by_make_screenshots_shown_and_small() -> None:
    from tests.support.screenshots import PICTURES

    folder = ROOT / "docs/images"
    taken = {picture.name for picture in PICTURES}
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.relative_to(folder).as_posix() for path in files} == taken
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    beside = [name for name in taken if name.startswith("guide/") and name.endswith("-dark.png")]
    assert [name for name in taken - {*beside} if f"images/{name}" not in pages] == []
    readme = (ROOT / "README.md").read_text("utf-8")
    for name in ("status.png", "order.png", "menu-hold.png", "board.png"):
        assert f"docs/images/{name}" in readme
    assert sum(path.stat().st_size for path in files) < 1_000_000


def test_what_shares_something_costly_stays_with_one_worker(tmp_path: Path) -> None:
    """pytest and xdist agree on groups: without that every worker starts the same servers."""
    (tmp_path / "test_grouped.py").write_text(
        "import os\nimport pathlib\nimport pytest\n\n"
        "@pytest.mark.xdist_group('costly')\n"
        "@pytest.mark.parametrize('number', range(8))\n"
        "def test_it(number):\n"
        "    with pathlib.Path(__file__).with_name('workers').open('a') as told:\n"
        "        told.write(os.environ['PYTEST_XDIST_WORKER'] + '\\n')\n"
    )
    options = project()["tool"]["pytest"]["ini_options"]["addopts"]
    command = [sys.executable, "-m", "pytest", "-n", "2", *options, str(tmp_path)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    told = (tmp_path / "workers").read_text().split()
    assert len(told) == 8
    assert len({*told}) == 1


@pytest.mark.parametrize("target", ["deb-test", "systemd-test", "compose-test"])
def test_machines_are_made_one_at_a_time(target: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHON": sys.executable},
    )
    workers = re.findall(r"-n (\S+)", done.stdout.splitlines()[-1])
    assert workers[-1] == "0", "the last word counts"
