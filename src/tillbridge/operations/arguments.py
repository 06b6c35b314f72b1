"""Kinds of arguments that several operations take."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Argument

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from tillbridge.operations.bridge import Bridge


async def next_opening(bridge: "Bridge", store: str) -> int:
    """Return when the store opens on its next day, in ms since the epoch."""
    from tillbridge.ledger.facts import get_fact
    from tillbridge.model.restaurant import hours_from_json, next_day_opens

    hours = await bridge.ledger.read(
        lambda connection: hours_from_json(get_fact(connection, store, "store_hours"))
    )
    return next_day_opens(hours, _zone(bridge, store), bridge.clock.now_ms())


def _zone(bridge: "Bridge", store: str) -> "ZoneInfo | None":
    from zoneinfo import ZoneInfo

    name = bridge.store(store).settings.timezone
    return ZoneInfo(name) if name else None


async def until_of_store(bridge: "Bridge", arguments: Mapping[str, Any], typed: str) -> int:
    """Return the instant that was typed, in the store's time. Raises ConfigError."""
    store = arguments["store"]
    if typed.strip().lower() == "opening":
        return await next_opening(bridge, store)
    return _until(bridge, typed, _zone(bridge, store))


async def until_of_community(bridge: "Bridge", arguments: Mapping[str, Any], typed: str) -> int:
    """Return the instant that was typed, in the time of the first store there. As above."""
    from zoneinfo import ZoneInfo

    settings = bridge.settings
    known = settings.communities.get(arguments["community"])
    member = next(iter((known.stores if known else None) or settings.stores))
    name = settings.stores[member].timezone
    return _until(bridge, typed, ZoneInfo(name) if name else None)


def _until(bridge: "Bridge", typed: str, zone: "ZoneInfo | None") -> int:
    from tillbridge.core.spans import until_ms

    try:
        return until_ms(typed, now_ms=bridge.clock.now_ms(), zone=zone)
    except ValueError as slip:
        raise ConfigError(f"{slip}.", fix=_("Give a time to come, or none at all.")) from None


async def _moment_ms(_bridge: "Bridge", _arguments: Mapping[str, Any], typed: str) -> int:
    """Return the instant that was typed, in this machine's time. Raises ConfigError."""
    from datetime import datetime

    try:
        return round(datetime.fromisoformat(typed).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise ConfigError(
            _("{text} is no time: say 2026-11-21T18:30.").format(text=typed),
            fix=_("Give a time, or none at all."),
        ) from None


StoreName = Annotated[
    str,
    Argument("STORE", _("The store's name in bridge.toml."), complete="stores", audit="store"),
]
ItemId = Annotated[
    str,
    Argument(
        "EXTERNAL_ID",
        _("The item's id in the till (external_id)."),
        complete="items",
        audit="target",
    ),
]
Until = Annotated[
    int | None,  # ms since the epoch
    Argument(
        "TIME",
        _("Until when: 18:30, opening, tomorrow, 2h, 2026-11-21T18:30. Else until restored."),
        audit="until_ms",
        resolve=until_of_store,
    ),
]
Moment = Annotated[
    int | None,  # ms since the epoch
    Argument("TIME", _("As it was then: 2026-11-21T18:30."), resolve=_moment_ms),
]
Full = Annotated[bool, Argument(help=_("Everything, not only what differs."), audit="full")]
