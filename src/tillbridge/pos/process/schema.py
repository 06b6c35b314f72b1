"""The protocol as JSON Schema: `python -m tillbridge.pos.process.schema` prints it.

`docs/adapters/process.schema.json` is that, and a test holds it to the code.
"""

import json
import sys
from typing import Any

from pydantic.json_schema import models_json_schema

from tillbridge.pos.process.rig_wire import RIG_METHODS, RIG_RESULTS, RigHello
from tillbridge.pos.process.wire import (
    ANSWERS,
    METHODS,
    BridgeHello,
    ChildHello,
    Event,
    Message,
    Refusal,
)

_REF = "#/$defs/{model}"


def schema() -> dict[str, Any]:
    """Return the schema: `from_bridge` and `from_program` are the lines of either side."""
    models: list[type[Message]] = [BridgeHello, ChildHello, Refusal, Event, RigHello]
    models += ANSWERS.values()
    models += [each.params for each in METHODS.values()]
    models += [*RIG_METHODS.values(), *(each for each in RIG_RESULTS.values() if each)]
    unique = list(dict.fromkeys(models))
    _refs, definitions = models_json_schema(
        [(model, "validation") for model in unique], ref_template=_REF
    )
    defs: dict[str, Any] = definitions["$defs"]
    requests = {name: _request(name, _ref(each.params)) for name, each in METHODS.items()}
    rig_requests = {name: _request(name, _ref(params)) for name, params in RIG_METHODS.items()}
    defs |= {f"{name}_request": request for name, request in requests.items()}
    defs |= {f"rig_{name}_request": request for name, request in rig_requests.items()}
    defs |= {
        f"rig_{name}_answer": _answer(_ref(found) if (found := RIG_RESULTS.get(name)) else None)
        for name in RIG_METHODS
    }
    defs["from_bridge"] = {
        "description": "What the bridge writes to the program's stdin.",
        "oneOf": [_ref(BridgeHello), *(_named(f"{name}_request") for name in requests)],
    }
    said: list[type[Message]] = [ChildHello, Refusal, Event, *ANSWERS.values()]
    defs["from_program"] = {
        "description": "What the program writes to its stdout. An answer is of the kind that was "
        "asked for.",
        "anyOf": [_ref(each) for each in said],
    }
    defs["to_rig"] = {
        "description": "What `tillbridge adapter check` writes to the stdin of a rig.",
        "oneOf": [_ref(RigHello), *(_named(f"rig_{name}_request") for name in rig_requests)],
    }
    defs["from_rig"] = {
        "description": "What a rig writes to its stdout: its hello, and an answer to each request; "
        "an error of the kind CannotDo for what it cannot do.",
        "anyOf": [_ref(ChildHello), *(_named(f"rig_{name}_answer") for name in RIG_METHODS)],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tillbridge: adapters that are programs, protocol 1",
        "description": "One JSON object a line, UTF-8. docs/adapters/process.md tells the rest.",
        "anyOf": [_named("from_bridge"), _named("from_program")],
        "$defs": dict(sorted(defs.items())),
    }


def text() -> str:
    """Return the schema as it stands in its file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _ref(model: type[Message]) -> dict[str, str]:
    return _named(model.__name__)


def _named(name: str) -> dict[str, str]:
    return {"$ref": _REF.format(model=name)}


def _answer(result: dict[str, str] | None) -> dict[str, Any]:
    error = {
        "type": "object",
        "properties": {"kind": {"type": "string"}, "message": {"type": "string"}},
        "required": ["kind", "message"],
    }
    return {
        "type": "object",
        "properties": {
            "type": {"const": "answer"},
            "id": {"type": "integer"},
            "result": {"type": "null"} if result is None else result,
            "error": error,
        },
        "required": ["type", "id"],
        "additionalProperties": False,
    }


def _request(name: str, params: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "type": {"const": "request"},
            "id": {"type": "integer"},
            "method": {"const": name},
            "params": params,
        },
        "required": ["type", "id", "method", "params"],
        "additionalProperties": False,
    }


if __name__ == "__main__":
    sys.stdout.write(text())
