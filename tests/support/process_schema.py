"""The process protocol as JSON Schema: docs/adapters/process.schema.json, by `make reference`."""

import json
import sys
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tillbridge.pos.process.vendor import RIG_METHODS, RigHello
from tillbridge.pos.process.wire import METHODS, BridgeHello, ChildHello, Event, Refusal

_SIDES: dict[str, tuple[str, str, list[type[BaseModel]]]] = {
    "from_bridge": (
        "What the bridge writes to the program's stdin.",
        "oneOf",
        [BridgeHello, *(each.request for each in METHODS.values())],
    ),
    "from_program": (
        "What the program writes to its stdout. An answer is of the kind that was asked for.",
        "anyOf",
        [ChildHello, Refusal, Event, *(each.answer for each in METHODS.values())],
    ),
    "to_rig": (
        "What `tillbridge adapter check` writes to the stdin of a rig.",
        "oneOf",
        [RigHello, *(each.request for each in RIG_METHODS.values())],
    ),
    "from_rig": (
        "What a rig writes to its stdout; an error of the kind CannotDo for what it cannot do.",
        "anyOf",
        [ChildHello, *(each.answer for each in RIG_METHODS.values())],
    ),
}


def schema() -> dict[str, Any]:
    """Return the schema: each side's lines under its name."""
    models = dict.fromkeys(model for _text, _how, models in _SIDES.values() for model in models)
    _refs, found = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/$defs/{model}"
    )
    defs: dict[str, Any] = found["$defs"]
    for name, (text, how, messages) in _SIDES.items():
        defs[name] = {"description": text, how: [_ref(each.__name__) for each in messages]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tillbridge: adapters that are programs, protocol 1",
        "description": "One JSON object a line, UTF-8. docs/adapters/process.md tells the rest.",
        "anyOf": [_ref("from_bridge"), _ref("from_program")],
        "$defs": dict(sorted(defs.items())),
    }


def text() -> str:
    """Return the schema as it stands in its file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


if __name__ == "__main__":
    sys.stdout.write(text())
