"""Kinds of arguments that several operations take."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Argument

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from tillbridge.daemon.store_services import StoreServices
    from tillbridge.operations.bridge import Bridge


async def store_named(
    bridge: "Bridge", _arguments: Mapping[str, Any], name: str
) -> "StoreServices":
    """Return a store. Raises ConfigError, which names those there are."""
    return bridge.store(name)


async def connected_store(
    bridge: "Bridge", _arguments: Mapping[str, Any], name: str
) -> "StoreServices":
    """Return a store. Raises ConfigError as above, BridgeError where it is not connected."""
    found = bridge.store(name)
    if await found.connected_as() is None:
        raise BridgeError(
            _("The store {store} is not connected yet.").format(store=name),
            fix=_("Run: tillbridge connect {store}").format(store=name),
        )
    return found


async def next_opening(bridge: "Bridge", store: "StoreServices") -> int:
    """Return when the store opens on its next day, in ms since the epoch."""
    from tillbridge.model.restaurant import hours_from_json, next_day_opens

    hours = hours_from_json(await bridge.ledger.get_fact(store.name, "store_hours"))
    return next_day_opens(hours, _zone(store.settings.timezone), bridge.clock.now_ms())


def _zone(name: str | None) -> "ZoneInfo | None":
    from zoneinfo import ZoneInfo

    return ZoneInfo(name) if name else None


async def until_of_store(bridge: "Bridge", arguments: Mapping[str, Any], typed: str) -> int:
    """Return the instant that was typed, in the store's time. Raises ConfigError."""
    store = arguments["store"]
    if typed.strip().lower() == "opening":
        return await next_opening(bridge, store)
    return _until(bridge, typed, _zone(store.settings.timezone))


async def until_of_community(bridge: "Bridge", arguments: Mapping[str, Any], typed: str) -> int:
    """Return the instant that was typed, in the time of the first store there. As above."""
    settings = bridge.settings
    known = settings.communities[arguments["community"].context.name]
    member = next(iter(known.stores or settings.stores))
    return _until(bridge, typed, _zone(settings.stores[member].timezone))


def _until(bridge: "Bridge", typed: str, zone: "ZoneInfo | None") -> int:
    from tillbridge.core.formats import until_ms

    try:
        return until_ms(typed, now_ms=bridge.clock.now_ms(), zone=zone)
    except ValueError as slip:
        raise ConfigError(
            f"{slip}.", fix=_("Give a time in the future, or leave it out.")
        ) from None


def ends_at(text: str, resolve: "Callable[..., Awaitable[int]]" = until_of_store) -> Argument:
    """Return the argument for when something ends, in ms since the epoch."""
    return Argument("TIME", text, audit="until_ms", resolve=resolve)


async def moment_of_store(bridge: "Bridge", arguments: Mapping[str, Any], typed: str) -> int:
    """Return the past instant that was typed, in the store's time. Raises ConfigError."""
    from tillbridge.core.formats import since_ms

    zone = _zone(arguments["store"].settings.timezone)
    try:
        return since_ms(typed, now_ms=bridge.clock.now_ms(), zone=zone)
    except (ValueError, OverflowError):
        raise ConfigError(
            _("{text} is not a time. Write it like 2026-11-21T18:30.").format(text=typed),
            fix=_("Correct the time, or leave it out."),
        ) from None


_STORE = Argument("STORE", _("The store's name in bridge.toml."), complete="stores", audit="store")
StoreName = Annotated[str, _STORE]
Store = Annotated["StoreServices", replace(_STORE, resolve=store_named)]
ConnectedStore = Annotated["StoreServices", replace(_STORE, resolve=connected_store)]
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
    int | None,
    ends_at(
        _(
            "Until when: 18:30, opening, tomorrow, 2h, 2026-11-21T18:30. Default: until you "
            "restore it."
        )
    ),
]
Moment = Annotated[
    int | None,  # ms since the epoch
    Argument(
        "TIME",
        _("As it was then: 18:30 (the last time it was), today, 2h (ago), 2026-11-21T18:30."),
        resolve=moment_of_store,
    ),
]
Full = Annotated[bool, Argument(help=_("Send everything, not only what differs."), audit="full")]
