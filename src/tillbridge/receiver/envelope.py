"""The envelope of a delivery. Specification: Events, POS envelope and Community envelope."""

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic_core import from_json

_LONGEST_NAME = 512


class NotAnEnvelope(ValueError):
    """The body is no JSON, or not the envelope of an event. The text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What the receiver has to know of a delivery; ids are "" where it tells none."""

    event_type: str
    event_id: str
    store_id: str
    location_id: str
    community_id: str = ""


def read_envelope(body: bytes) -> Envelope:
    """Return the envelope around an event; what the event says is for others to judge.

    Needs `event_type`, `event_id` and `data`. Raises NotAnEnvelope.
    """
    event = _json(body)
    if not isinstance(event, dict):
        raise NotAnEnvelope("the body is not an object")
    if "data" not in event:
        raise NotAnEnvelope("the field data is missing")
    return Envelope(
        event_type=_name(event, "event_type"),
        event_id=_name(event, "event_id"),
        store_id=_told(event.get("store_id")),
        location_id=_told(event.get("location_id")),
        community_id=_told(event.get("community_id")),
    )


def _json(body: bytes) -> Any:  # noqa: ANN401 -- any JSON value
    try:
        return from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        pass  # stricter than it has to be: a byte order mark, half of a surrogate pair
    try:
        return _decoder.decode(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        # No cause: a body may hold a customer's data, and this goes into a log.
        raise NotAnEnvelope("the body is not JSON") from None


def _name(event: dict[str, Any], field: str) -> str:
    value = event.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME:
        raise NotAnEnvelope(f"the field {field} is missing or no text")
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which no database takes
        raise NotAnEnvelope(f"the field {field} is no text") from None
    return value


def _told(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_decoder = json.JSONDecoder(parse_constant=_refuse)  # NaN and Infinity are no JSON
