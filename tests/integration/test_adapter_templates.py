"""What `adapter new` makes passes its checks at once, for every kind of till."""

import json
from pathlib import Path

import pytest

from tests.support.adapter_command import tillbridge
from tillbridge.pos.scaffold import KINDS, make_package

LEVELS = {"files": "silver", "http": "silver", "sql": "gold", "process": "gold"}
BY_TUTORIALS = pytest.mark.slow(reason="the tutorials make and check one; in short, they do")
ALL_OF_IT = pytest.mark.slow(
    reason="starts its program some two hundred times; in short it is killed while it writes, below"
)
ELSEWHERE = {"files": BY_TUTORIALS, "http": BY_TUTORIALS, "process": ALL_OF_IT}


@pytest.mark.parametrize(
    "kind", [pytest.param(each, marks=ELSEWHERE.get(each, ())) for each in KINDS]
)
def test_what_is_made_works_as_it_is(kind: str, tmp_path: Path) -> None:
    code, out, err = tillbridge("new", "corner_shop", "--kind", kind, "--in", ".", cwd=tmp_path)
    assert code == 0, err
    assert "tillbridge adapter check corner_shop" in out
    made = "".join(path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file())
    assert "mytill" not in made.lower(), "a name of the template is left"
    code, out, err = tillbridge("check", "corner_shop", "--json", cwd=tmp_path)
    said = json.loads(out)
    assert (code, said["passed"], said["level"]) == (0, True, LEVELS[kind]), out + err
    killed = next(each for each in said["checks"] if each["check"] == "killed")
    assert int(killed["text"].split()[1]) > 10


def test_a_program_that_is_made_survives_being_killed(tmp_path: Path) -> None:
    make_package("corner_shop", tmp_path, "process")
    wanted = [word for check in ("content", "killed") for word in ("--only", check)]
    code, out, err = tillbridge("check", "corner_shop", "--json", *wanted, cwd=tmp_path)
    said = json.loads(out)
    assert (code, said["counts"]["passed"]) == (0, 2), out + err
    assert int(said["checks"][-1]["text"].split()[1]) > 10


def test_a_kind_that_there_is_not_is_told(tmp_path: Path) -> None:
    code, _out, err = tillbridge("new", "corner_shop", "--kind", "rest", cwd=tmp_path)
    assert code == 2
    assert "http" in err


def test_a_sample_that_is_missing_is_told_with_what_belongs_there(tmp_path: Path) -> None:
    folder = make_package("corner_shop", tmp_path, "http").folder
    (folder / "sample.toml").unlink()
    code, _out, err = tillbridge("try", ".", "--once", cwd=folder)
    assert code == 2
    assert "sample.toml does not exist" in err
    assert "[stores.main.pos]" in err
    assert "Errno" not in err


def test_a_till_that_is_away_is_shown_with_the_adapters_own_remedy(tmp_path: Path) -> None:
    folder = make_package("corner_shop", tmp_path, "sql").folder
    code, out, err = tillbridge("try", ".", "--once", cwd=folder)
    assert code == 0, err
    assert "The till does not answer." in out
    assert "Look whether the option database" in out
