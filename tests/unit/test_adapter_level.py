"""The level of an adapter is known without importing it."""

import subprocess
import sys

from tillbridge.adapter.conformance import read_quality
from tillbridge.pos.kit import find_kit
from tillbridge.pos.loader import adapters_of, level_of


def test_a_level_is_what_the_quality_file_says() -> None:
    for name in ("folder", "clover"):
        kit = find_kit(name)
        assert level_of(name) == read_quality(kit.package / "quality.toml").level


def test_nothing_is_said_of_what_is_not_there() -> None:
    assert level_of("no_such_adapter") == ""
    assert level_of("process") == ""
    assert level_of("no_such_module_at_all:ADAPTER") == ""


def test_a_store_has_one_adapter_or_two() -> None:
    level = level_of("folder")
    one = [{"name": "folder", "level": level, "part": ""}]
    assert adapters_of("folder", None) == adapters_of("folder", "folder") == one
    two = adapters_of("folder", "no_such_adapter")
    assert [(each["name"], each["part"]) for each in two] == [
        ("folder", "menu"),
        ("no_such_adapter", "orders"),
    ]


def test_knowing_it_imports_no_adapter_and_no_suite() -> None:
    code = (
        "import sys; from tillbridge.pos.loader import level_of; level_of('clover');"
        "print([n for n in sys.modules if 'clover' in n or 'conformance' in n])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
