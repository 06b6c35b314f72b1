"""The tables [stores.NAME], [stores.NAME.*] and [communities.NAME]."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from tillbridge.config.values import CurrencyCode, Percent, Seconds, Section, TimeOfDay
from tillbridge.core.i18n import _
from tillbridge.model.order import ReasonCode

MenuSyncDirection = Literal["none", "quiqqy_to_pos", "pos_to_quiqqy", "bidirectional"]


class AdapterSection(Section):
    """A table whose other keys are options of an adapter, checked by the adapter's own model."""

    model_config = ConfigDict(extra="allow")

    @property
    def options(self) -> dict[str, Any]:
        """The adapter's own keys, to be checked by its options model."""
        return dict(self.model_extra or {})


class PosSettings(AdapterSection):
    """The table [stores.NAME.pos]."""

    adapter: str = Field(min_length=1)
    """The adapter's name: folder, or one that is installed. Its options go into the same table."""
    poll_s: Seconds = 2
    """How often files are checked in addition to change events, and how often an adapter without
    files is read."""
    health_s: Seconds = 5
    """How often the bridge checks the POS."""
    hangs_after_s: Seconds = 90
    """A call to the adapter that takes longer than this is the problem adapter.hangs until it
    returns."""


class OrderSettings(AdapterSection):
    """The table [stores.NAME.orders]."""

    adapter: str | None = Field(None, min_length=1)
    """The adapter that writes orders. Default: the one of [stores.NAME.pos]."""
    accept: Literal["when_written", "when_confirmed"] = "when_written"
    """Accept an order when its ticket is written, or when the POS confirms it."""
    accept_within_s: Seconds = 120
    """After this long, an order that the POS has not taken is cancelled with the matching reason
    code."""
    retry_s: Seconds = 2
    """How long the bridge waits after a failed write of a ticket; the wait doubles each time."""
    retry_cap_s: Seconds = 15
    """The longest wait between two tries to write a ticket."""
    write_timeout_s: Seconds = 20
    """After this long without an answer to a write, the bridge asks the POS whether it has the
    order before it writes again."""
    unknown_item: Literal["write_and_warn", "cancel"] = "write_and_warn"
    """What to do with an order that contains an unknown item (cancel: ITEM_OUT_OF_STOCK)."""
    price_differs: Literal["write_and_warn", "cancel"] = "write_and_warn"
    """What to do with an order whose prices differ from the menu at the time (cancel:
    PRICE_MISMATCH)."""
    unconfirmed_reason: ReasonCode = Field(ReasonCode.OTHER, strict=False)
    """The reason code for an order that the kitchen did not confirm in time."""
    pause_after_s: Annotated[float, Field(ge=0)] = 30
    """The store is paused when the POS has been offline this long; 0 never pauses it."""
    resume_after_s: Annotated[float, Field(ge=0)] = 5
    """The bridge reopens a store that it has paused when the POS has been back this long."""
    max_pauses_per_hour: int = Field(4, ge=1)
    """After this many pauses in an hour the store stays paused until the POS is steady for 10
    minutes."""


class FallbackSettings(AdapterSection):
    """The table [stores.NAME.fallback]."""

    adapter: str = Field(min_length=1)
    """The adapter that prints an order that the till cannot take: printer. Its options go into the
    same table."""
    after_s: Seconds = 60
    """After this long, an order that the till has not taken is printed, with NOT IN TILL."""


class MenuSettings(Section):
    """The table [stores.NAME.menu]."""

    settle_ms: int = Field(150, ge=0, le=60_000)
    """A changed export is read once it has been quiet this long."""
    max_removed_percent: Percent = 10
    """Hold an update that removes more of the items than this (and more than 5)."""
    max_price_change_percent: Annotated[float, Field(ge=0)] = 50
    """Hold an update that changes more than a fifth of the prices by more than this."""
    max_changed_percent: Percent = 20
    """Hold an update that removes sizes, choices, taxes, categories or names from more of the items
    than this (and more than 5), or adds as many dishes a second time."""
    max_added_percent: Annotated[float, Field(ge=0)] = 50
    """Hold an update that makes the menu longer by more than this (and more than 20 items)."""
    max_sold_out_percent: Percent = 80
    """Report a problem if more of the menu than this (and more than 5 items) is sold out. The items
    are taken off sale all the same."""
    approve_first: bool = False
    """Whether a person approves the first menu of a storefront before guests see it."""
    full_compare: TimeOfDay = "03:30"
    """When the whole menu is read and compared each day, in the store's local time."""
    full_push_percent: Percent = 50
    """Send the whole menu when more of its items than this have changed (and more than
    background_threshold)."""


class TableSettings(Section):
    """The table [stores.NAME.tables]."""

    max_removed_percent: Percent = 50
    """Hold a floor plan update that removes more of the tables than this (and more than 5)."""
    title: str | None = Field(None, min_length=1, max_length=80)
    """The text above a printed QR code. Default: the store's name at the service."""


class ScheduleSettings(Section):
    """The table [stores.NAME.schedule]."""

    follow_hours: bool = False
    """Whether the store takes orders within its opening hours only."""
    last_orders_min: int = Field(0, ge=0, le=240)
    """With follow_hours, ordering stops this many minutes before closing."""
    pauses: list[str] = Field(default_factory=list)
    """Times without orders: "friday 19:00-21:00" every week, "2026-12-31 18:00-24:00" once."""


class StoreSettings(Section):
    """The table [stores.NAME]."""

    store_id: str | None = None
    """The store's ID at the service; not needed if the merchant has only one store."""
    location_id: str = Field(min_length=1)
    """Your own ID of the location; sent as external_store_id."""
    currency: CurrencyCode
    """ISO 4217 code of the store's currency."""
    timezone: str | None = None
    """IANA name of the store's time zone. Default: this machine's."""
    menu_sync_direction: MenuSyncDirection = "pos_to_quiqqy"
    """Which way menus go; pos_to_quiqqy or bidirectional lets the bridge push."""
    auto_accept_orders: bool = False
    """Whether the service accepts orders by itself as soon as they are placed."""
    notification_email: str | None = None
    """Where the service sends e-mail about this store."""
    settings_file: Path | None = Field(None, strict=False)
    """A file with the store's name, address and other settings for the service; see
    docs/store.md."""
    hours_file: Path | None = Field(None, strict=False)
    """A file with the restaurant's opening hours; see docs/store.md."""
    pos: PosSettings
    """Where the catalogue, tables and (unless orders says otherwise) orders live."""
    orders: OrderSettings = Field(default_factory=OrderSettings.model_construct)
    """How orders are written and accepted."""
    fallback: FallbackSettings | None = None
    """The printer that stands in for a till that cannot take an order."""
    menu: MenuSettings = Field(default_factory=MenuSettings.model_construct)
    """How menus are read, guarded and pushed."""

    schedule: ScheduleSettings = Field(default_factory=ScheduleSettings.model_construct)
    """When the store takes no orders by plan."""

    tables: TableSettings = Field(default_factory=TableSettings.model_construct)
    """How the floor plan is guarded and printed."""

    @property
    def pos_adapter(self) -> tuple[str, dict[str, Any]]:
        """The adapter of the POS, and its options.

        Where orders go through the same adapter it is one till: what [..orders] says of it is
        added to what [..pos] says.
        """
        more = {} if self.order_adapter else self.orders.options
        return self.pos.adapter, {**self.pos.options, **more}

    @property
    def order_adapter(self) -> tuple[str, dict[str, Any]] | None:
        """The other adapter that writes orders, and its options; None: that of the POS does."""
        if self.orders.adapter in {None, self.pos.adapter}:
            return None
        return str(self.orders.adapter), self.orders.options

    @property
    def adapters(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Every adapter of the store: its table here, its name, its options."""
        yield "pos", *self.pos_adapter
        if self.order_adapter is not None:
            yield "orders", *self.order_adapter
        if self.fallback is not None:
            yield "fallback", self.fallback.adapter, self.fallback.options

    @field_validator("timezone")
    @classmethod
    def _known_timezone(cls, name: str | None) -> str | None:
        if name is not None:
            from zoneinfo import ZoneInfo  # noqa: PLC0415 -- few files name a time zone

            try:
                ZoneInfo(name)
            except (KeyError, ValueError, OSError):
                raise ValueError(
                    _('must be an IANA time zone name, for example "Europe/Prague"')
                ) from None
        return name


class CommunitySettings(Section):
    """The table [communities.NAME]."""

    community_id: str = Field(min_length=1)
    """The community's ID at the service."""
    stores: list[str] = Field(default_factory=list)
    """Your member stores, by their names in this file; [] means all of them."""
    events: list[str] = Field(default_factory=list)
    """The events that are subscribed to; [] means all of them."""
    webhook_name: str = Field("tillbridge", min_length=1, max_length=200)
    """The name of the webhook subscription at the service."""
    push_hours: bool = True
    """Whether the stores' opening hours (hours_file) are sent to the community."""
    sync_s: Seconds = 60
    """How often the bridge reads what has changed in the catalogue."""
    full_sync_s: Seconds = 86_400
    """How often the bridge reads the whole catalogue."""
    check_s: Seconds = 600
    """How often the bridge checks the webhook subscription and its deliveries."""
    child_within_s: Seconds = 120
    """After this long, a missing part of a community order is a problem."""
