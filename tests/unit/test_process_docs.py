"""docs/adapters/process.md and its schema say what the code does."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support import process_schema
from tillbridge.pos.process.adapter import ProcessOptions
from tillbridge.pos.process.program import ProgramSupervisor
from tillbridge.pos.process.wire import METHODS, BridgeHello, request_of
from tillbridge.pos.scaffold import make_package

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/adapters/process.md").read_text("utf-8")
SCHEMA = json.loads((ROOT / "docs/adapters/process.schema.json").read_text("utf-8"))


def side(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{name}"})


def test_the_published_schema_is_what_the_code_says() -> None:
    published = (ROOT / "docs/adapters/process.schema.json").read_text("utf-8")
    assert published == process_schema.text(), "run: make reference"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_example_on_the_page_is_by_the_schema() -> None:
    blocks = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    lines = [json.loads(line) for block in blocks for line in block.splitlines()]
    assert len(lines) >= 8
    both = jsonschema.Draft202012Validator(SCHEMA)
    for line in lines:
        both.validate(line)


def test_every_option_and_method_is_told() -> None:
    assert all(f"| `{name}` |" in PAGE for name in ProcessOptions.model_fields)
    part = PAGE.split("<!-- methods:", 1)[1].split("<!-- /methods -->", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|(.*?)\|", part, re.MULTILINE)
    told = {name: (capability, re.findall(r"`(\w+)`", params)) for name, capability, params in rows}
    assert told == {
        name: (method.capability, list(method.params.model_fields))
        for name, method in METHODS.items()
    }


def test_what_the_bridge_writes_is_by_the_schema_and_in_its_order() -> None:
    hello = BridgeHello(
        store="main", currency="EUR", decimals=2, location_id="l", base_dir="/", options={}
    )
    side("from_bridge").validate(hello.model_dump())
    line = request_of(7, "cancel_ticket", {"key": "ö", "reason": "", "order": {"id": "ö"}})
    side("from_bridge").validate(json.loads(line))
    start = b'{"type":"request","id":7,"method":"cancel_ticket","params":{"key":"\\u00f6"'
    assert line.startswith(start)
    assert line.endswith(b"}}\n")


@pytest.mark.parametrize(
    ("message", "right"),
    [
        ({"type": "answer", "id": 1, "result": None}, True),
        ({"type": "answer", "id": 1, "error": {"kind": "StoreClosed"}}, True),
        ({"type": "answer", "id": 1, "error": {"kind": "Closed"}}, False),
        ({"type": "answer", "result": {}}, False),
        ({"type": "event", "event": "tables_changed"}, True),
        ({"type": "event", "event": "x"}, False),
        ({"type": "hello", "protocol": 1, "name": "", "capabilities": []}, False),
    ],
)
def test_the_schema_tells_right_from_wrong(message: dict[str, Any], right: bool) -> None:
    assert side("from_program").is_valid(message) is right


def test_nothing_of_it_is_imported_by_a_bridge_that_does_not_use_it() -> None:
    code = (
        "import sys, tillbridge.daemon;"
        "from tillbridge.pos.loader import find_adapter; find_adapter('folder');"
        "print([n for n in sys.modules if n.startswith('tillbridge.pos.process')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
    assert ProgramSupervisor.__doc__  # it is there for those who do


def test_what_a_rig_answers_is_by_the_schema(tmp_path: Path) -> None:
    item = {"external_id": "1", "name": "Soup", "price": 450}
    asked = {
        "options": {},
        "sell": {"items": [item], "currency": "EUR", "decimals": 2},
        "rename": {"external_id": "1", "name": "Broth"},
        "exports": {},
        "furnish": {"tables": [{"external_id": "t", "name": "One"}]},
        "tickets": {},
        "lose_next_answer": {},
    }
    hello = {"type": "hello", "protocol": 1, "role": "rig", "folder": str(tmp_path)}
    lines = [
        {"type": "request", "id": number, "method": name, "params": params}
        for number, (name, params) in enumerate(asked.items())
    ]
    for line in (hello, *lines):
        side("to_rig").validate(line)
    rig = make_package("corner", tmp_path / "adapter", "process").folder / "rig.py"
    said = subprocess.run(
        [sys.executable, str(rig)],
        input="".join(f"{json.dumps(line)}\n" for line in (hello, *lines)),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    side("ChildHello").validate(json.loads(said[0]))
    for name, answer in zip(asked, said[1:], strict=True):
        side("from_rig").validate(json.loads(answer))
        side(f"rig_{name}_answer").validate(json.loads(answer))
