"""The JSON Schema of `bridge.toml`, for editors that complete and check while one writes."""

from typing import Any

from tillbridge.config import Settings


def json_schema() -> dict[str, Any]:
    """Return the schema, made from the settings' models."""
    schema = Settings.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "bridge.toml of tillbridge",
        "description": "Configuration of tillbridge; docs/configuration.md explains it.",
    }
