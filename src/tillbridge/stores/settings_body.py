"""The store settings body, and what of it has to be sent. Specification: Store settings body. Pure.

The body is forwarded verbatim to the merchant catalogue service; no call reads it back, so what
was accepted last is all that one can compare with.
"""

import json
from collections.abc import Mapping
from typing import Any

from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.model.hours import Span, week_json
from tillbridge.model.restaurant import Restaurant

Body = dict[str, Any]
Week = tuple[tuple[Span, ...], ...]


def settings_body(
    restaurant: Restaurant | None, weekly: Week | None, *, end_of_day: str = "24:00"
) -> Body:
    """Return the camelCase body: what is known, and what is passed through.

    Raises ConfigError where something that is passed through has a name of its own already.
    """
    body: Body = {}
    if restaurant is not None:
        address, delivery = restaurant.address, restaurant.delivery
        radius = None if delivery.radius_km is None else _number(delivery.radius_km)
        body = _told(
            {
                "name": restaurant.name,
                "description": restaurant.description,
                "imageUrl": restaurant.image,
                "address": _told(
                    {
                        "street_address": address.street,
                        "city": address.city,
                        "state": address.state,
                        "country": address.country,
                        "zip": address.zip,
                    }
                ),
                "deliverySettings": _told(
                    {
                        "enabled": delivery.enabled,
                        "min_order_amount": delivery.minimum,
                        "delivery_fee": delivery.fee,
                        "radius_km": radius,
                    }
                ),
                "contactDetails": _told({"phone": restaurant.phone, "email": restaurant.email}),
            }
        )
    if weekly is not None:
        body["availability"] = week_json(weekly, end_of_day=end_of_day)
    if restaurant is not None:
        _add(body, restaurant.pass_through, "pass_through")
    return body


def changed_part(body: Body, acknowledged: Mapping[str, Any] | None) -> Body:
    """Return the fields at the top that differ from what was accepted, each of them whole."""
    known = acknowledged or {}
    return {
        key: value
        for key, value in body.items()
        if key not in known or not _same(known[key], value)
    }


def no_longer_said(body: Body, acknowledged: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return what was accepted once and stands in no file now: the service keeps it."""
    gone = []
    for key, before in (acknowledged or {}).items():
        if key not in body:
            gone.append(key)
        elif isinstance(before, Mapping) and isinstance(body[key], Mapping):
            gone += [f"{key}.{inner}" for inner in before if inner not in body[key]]
    return tuple(gone)


def _same(one: object, other: object) -> bool:
    """Whether two values are the same in JSON: true is not 1 there."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _told(values: Mapping[str, Any]) -> Body:
    """Leave out what is not said, and objects of which nothing is."""
    return {key: value for key, value in values.items() if value is not None and value != {}}


def _add(body: Body, more: Mapping[str, Any], path: str) -> None:
    for key, value in more.items():
        place = f"{path}.{key}"
        if key not in body:
            body[key] = value
        elif isinstance(body[key], dict) and isinstance(value, Mapping):
            _add(body[key], value, place)
        else:
            raise ConfigError(
                _("{place} says again what the file says in words of its own.").format(place=place),
                fix=_("Remove one of the two."),
            )


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
