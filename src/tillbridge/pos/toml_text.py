"""Values as they stand in a TOML file."""

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any


def toml_lines(table: Mapping[str, Any]) -> list[str]:
    """Return a table's lines, `key = value` each."""
    return [f"{toml_key(str(key))} = {toml_value(value)}" for key, value in table.items()]


def toml_key(name: str) -> str:
    """Return a key; quoted where it must be."""
    plain = name.replace("_", "").replace("-", "")
    return name if plain.isascii() and plain.isalnum() else toml_value(name)


def toml_value(value: Any) -> str:  # noqa: ANN401 -- a value of any kind
    """Return a value on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case Mapping():
            return f"{{ {', '.join(toml_lines(value))} }}"
        case str() | PurePath():
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case _:
            return json.dumps(str(value))
