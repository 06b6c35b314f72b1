"""The sample programs pass the conformance suite, and break it where they are broken."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.adapter_command import tillbridge

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "docs/examples"


def test_a_sample_passes_all_checks_and_reaches_its_level(tmp_path: Path) -> None:
    folder = shutil.copytree(SAMPLES / "process-shell", tmp_path / "my adapter")  # with a blank
    code, out, err = tillbridge("check", ".", "--json", cwd=folder)
    assert code == 0, out + err
    said = json.loads(out)
    assert (said["passed"], said["level"]) == (True, "silver")
    killed = next(each for each in said["checks"] if each["check"] == "killed")
    assert killed["outcome"] == "passed"
    assert int(killed["text"].split()[1]) > 30


def test_a_sample_can_be_tried(tmp_path: Path) -> None:
    code, out, err = tillbridge("try", "docs/examples/process-shell", "--once", cwd=ROOT)
    assert code == 0, err
    assert "17  Tomato soup" in out
    assert "menu.tsv, row 3" in out


def test_a_program_that_writes_twice_fails_and_is_told_what_to_do(tmp_path: Path) -> None:
    folder = shutil.copytree(SAMPLES / "process-shell", tmp_path / "kiosk")
    source = folder / "kiosk.sh"
    whole = source.read_text("utf-8")
    broken = whole.replace(
        'if [ ! -e "$folder/tickets/$key.json" ]; then', "key=$key.$id\n    if true; then", 1
    )
    assert broken != whole
    source.write_text(broken, "utf-8")
    code, out, _err = tillbridge("check", ".", "--only", "same_order_twice", cwd=folder)
    assert code == 1
    assert "x same order twice, one ticket: kiosk.sh:" in out
    line = int(out.partition("kiosk.sh:")[2].partition(" ")[0])
    assert "write_ticket" in broken.splitlines()[line - 1]
    assert "find_ticket must find" in out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('name = "kiosk"\nsummary = "x"\ncommand = []\n', "command"),
        ('name = "kiosk"\nsummary = "x"\ncomand = ["sh"]\n', "comand"),
        ("name = [", "process.toml"),
    ],
)
def test_a_process_toml_that_is_wrong_is_told(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "process.toml").write_text(text, "utf-8")
    code, _out, err = tillbridge("check", ".", cwd=tmp_path)
    assert code == 2
    assert says in err


def test_the_adapter_itself_has_nothing_to_check(tmp_path: Path) -> None:
    code, _out, err = tillbridge("check", "process", cwd=tmp_path)
    assert code == 2
    assert "the one with process.toml" in err
