"""What of the store's settings would be sent, in a person's words. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tillbridge.core.i18n import _
from tillbridge.model.hours import WEEKDAYS
from tillbridge.model.money import to_major

_MONEY = frozenset({"min_order_amount", "delivery_fee"})


def settings_lines(
    part: Mapping[str, Any], accepted: Mapping[str, Any] | None, currency: str
) -> list[str]:
    """Return a line for each field that would be sent and differs; `accepted` is as it was."""
    return list(_lines(part, accepted or {}, currency))


def _lines(part: Mapping[str, Any], before: Mapping[str, Any], currency: str) -> Iterator[str]:
    for key, value in part.items():
        old = before.get(key)
        if key == "availability" and isinstance(value, Mapping):
            yield from _week(value, old if isinstance(old, Mapping) else {})
        elif isinstance(value, Mapping):
            inside = old if isinstance(old, Mapping) else {}
            for inner, each in value.items():
                if inner not in inside or inside[inner] != each:
                    yield _line(f"{key}.{inner}", each, inside.get(inner), currency)
        else:
            yield _line(key, value, old, currency)


def _week(week: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    for day in WEEKDAYS:
        if day in week and week[day] != before.get(day):
            now, was = _day(week[day]), _day(before[day]) if day in before else ""
            change = _("{now} (was {was})").format(now=now, was=was) if was else now
            yield _("hours on {day}: {change}").format(day=day, change=change)


def _day(spans: Any) -> str:  # noqa: ANN401 -- what was accepted once
    told = [f"{each['open']}-{each['close']}" for each in spans]
    return ", ".join(told) or _("closed")


def _line(key: str, value: object, before: object, currency: str) -> str:
    name = key.rpartition(".")[2]
    now = _value(name, value, currency)
    if before is None:
        return f"{key}: {now}"
    was = _value(name, before, currency)
    return _("{key}: {now} (was {was})").format(key=key, now=now, was=was)


def _value(name: str, value: object, currency: str) -> str:
    if name in _MONEY and isinstance(value, int) and not isinstance(value, bool):
        return f"{to_major(value, currency)} {currency}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
