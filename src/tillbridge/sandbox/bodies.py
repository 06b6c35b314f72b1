"""The request bodies of the specification, field by field.

Which fields are required is the sandbox's choice where the specification does not say (see
docs/sandbox.md). Fields that the specification leaves without a name are named by the settings.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from datetime import UTC, date, datetime
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias
from zoneinfo import ZoneInfo

from pydantic import ConfigDict, Field, create_model, model_validator

from tillbridge.sandbox.validation import (
    NO_LIST,
    AnyBody,
    Body,
    Count,
    Date,
    Email,
    Id,
    Instant,
    Json,
    Money,
    Number,
    OptionalText,
    Text,
    Url,
    UrlOrEmpty,
    Zone,
    at,
    expect,
    wrong,
)

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MenuSyncDirection = Literal["none", "quiqqy_to_pos", "pos_to_quiqqy", "bidirectional"]
StoreState = Literal["active", "inactive"]
ReasonCode = Literal[
    "ITEM_OUT_OF_STOCK", "STORE_CLOSED", "POS_OFFLINE", "CAPACITY", "PRICE_MISMATCH", "OTHER"
]
Lifecycle = Literal["created", "accepted", "preparing", "ready", "completed", "cancelled"]
CommunityEvent = Literal["order.created", "order.status_changed", "*"]

# Onboarding and tokens

_Phone = Annotated[
    str,
    Field(pattern=r"^(\+[1-9][0-9 ().-]{5,20})?$"),
    expect("a phone number in international format (+...)"),
]
_Locale = Annotated[
    str,
    Field(pattern=r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*$"),
    expect("a language-region tag, such as en-US"),
]


class Address(Body):
    """Of a merchant or a store."""

    street_address: OptionalText = ""
    city: OptionalText = ""
    state: OptionalText = ""
    country: OptionalText = ""
    zip: OptionalText = ""


class Signup(Body):
    """POST /pos/signup_url."""

    email: Email
    redirect_uri: Url
    state: Text
    location_id: Id | None = None
    store_name: Text | None = None
    first_name: OptionalText | None = None
    last_name: OptionalText | None = None
    business_phone: _Phone | None = None
    address: Address | None = None
    locale: _Locale | None = None
    flow_type: Literal["login", "signup"] | None = None
    client_id: Text | None = None


class TokenByCode(Body):
    """POST /oauth2/token of a merchant's authorization code."""

    grant_type: Literal["authorization_code"]
    code: Text
    redirect_uri: Text
    client_id: Text
    client_secret: Text


class TokenByCredentials(Body):
    """POST /oauth2/token of the app itself."""

    grant_type: Literal["client_credentials"]
    client_id: Text
    client_secret: Text
    audience: Text | None = None
    scope: Text | None = None


class _AnyGrant(Body):
    model_config = ConfigDict(extra="ignore")

    grant_type: Literal["authorization_code", "client_credentials"]


class Refresh(Body):
    """POST /oauth2/refresh."""

    grant_type: Literal["refresh_token"]
    refresh_token: Text


# Stores and integrations


class _Changeable(Body):
    webhook_url: Url | None = None
    notification_email: Email | None = None
    menu_sync_direction: MenuSyncDirection | None = None
    auto_accept_orders: bool | None = None


class Integrate(_Changeable):
    """POST /pos/integrate-store/{store_id}."""

    webhook_url: Url
    external_store_id: Id | None = None


class IntegrationUpdate(_Changeable):
    """PUT /pos/integrations/{store_id}."""

    rotate: bool = False


class StoreStatus(Body):
    """PUT /pos/stores/{store_id}/status."""

    status: StoreState


_Time = Annotated[
    str, Field(pattern=r"^(([01]\d|2[0-3]):[0-5]\d|24:00)$"), expect("a time of day as HH:MM")
]


class Opening(Body):
    """From when to when, on one day."""

    open: _Time
    close: _Time


_DAYS: dict[str, Any] = dict.fromkeys(WEEKDAYS, (list[Opening], ...))
_SOME_DAYS: dict[str, Any] = dict.fromkeys(WEEKDAYS, (list[Opening], NO_LIST))
#: Every weekday is required, so that nobody closes a day by forgetting it.
Weekly: Any = create_model("Weekly", __base__=Body, **_DAYS)
#: The opening hours of a store's settings; a day that is left out is closed.
Availability: Any = create_model("Availability", __base__=Body, **_SOME_DAYS)


class DeliverySettings(Body):
    """Of a store."""

    enabled: bool | None = None
    min_order_amount: Money | None = None
    delivery_fee: Money | None = None
    radius_km: Number | None = None


class ContactDetails(Body):
    """Of a store."""

    phone: OptionalText | None = None
    email: Email | None = None


class StoreSettings(Body):
    """PUT /pos/stores/{store_id}/settings, in camelCase."""

    name: Text | None = None
    description: OptionalText | None = None
    imageUrl: UrlOrEmpty | None = None  # noqa: N815 (the specification's name)
    address: Address | None = None
    availability: Availability | None = None
    deliverySettings: DeliverySettings | None = None  # noqa: N815 (the specification's name)
    contactDetails: ContactDetails | None = None  # noqa: N815 (the specification's name)


class VerbatimStoreSettings(StoreSettings):
    """As `StoreSettings`, with whatever else the merchant catalogue service knows."""

    model_config = ConfigDict(extra="allow")


# Menus


class Category(Body):
    """A heading of a menu."""

    external_id: Id
    name: Text


class AddOn(Body):
    """What is sold with an item only."""

    external_id: Id
    name: Text
    price: Money


class AddOnGroup(Body):
    """A choice among add-ons."""

    external_id: Id
    name: Text
    min_select: Count | None = None
    max_select: Count | None = None
    required: bool | None = None
    add_ons: list[Id] = NO_LIST


class Variant(Body):
    """A kind of an item."""

    external_id: Id
    variant_name: Text
    price: Money
    available: bool = True


class TaxComponent(Body):
    """One rate of an item's tax, in percent."""

    agency: Text
    rate: Number


class ItemTax(Body):
    """The tax of an item."""

    name: Text
    components: list[TaxComponent]


class ItemPatch(Body):
    """PATCH /pos/stores/{store_id}/items/{ext_item_id}: only what is sent changes."""

    external_id: Id | None = None
    name: Text | None = None
    description: OptionalText | None = None
    price: Money | None = None
    image_url: UrlOrEmpty | None = None
    available: bool | None = None
    categories: list[Id] = NO_LIST
    addon_groups: list[Id] = NO_LIST
    variant_type: Text | None = None
    variants: list[Variant] = NO_LIST
    tax: ItemTax | None = None
    product_type: Text | None = None


class Item(ItemPatch):
    """An item as it is pushed."""

    external_id: Id
    name: Text
    price: Money


class _Shared(Body):
    categories: list[Category] = NO_LIST
    add_ons: list[AddOn] = NO_LIST
    addon_groups: list[AddOnGroup] = NO_LIST


class Menu(_Shared):
    """An element of menus[]."""

    external_id: Id
    name: Text
    description: OptionalText | None = None
    items: list[Item] = NO_LIST


class MenusPush(Body):
    """POST /pos/stores/{store_id}/menus in the preferred shape."""

    menus: Annotated[list[Menu], Field(min_length=1)]
    add_ons: list[AddOn] = NO_LIST
    addon_groups: list[AddOnGroup] = NO_LIST


class FlatPush(_Shared):
    """POST /pos/stores/{store_id}/menus in the flat shape."""

    menu_name: Text
    items: list[Item]


class Batch(_Shared):
    """POST /pos/stores/{store_id}/menus/batch."""

    add: list[Item] = NO_LIST
    update: list[Item] = NO_LIST
    delete: list[Id] = NO_LIST


class AvailabilityEntry(Body):
    """One item or add-on, on or off."""

    external_id: Id
    available: bool
    snooze_until: Instant | None = None


class AvailabilityBatch(Body):
    """POST /pos/stores/{store_id}/items/availability."""

    items: Annotated[list[AvailabilityEntry], Field(min_length=1)]


class Table(Body):
    """A table of the floor plan."""

    external_id: Id
    name: Text
    seats: Count | None = None
    zone: OptionalText = ""


class Tables(Body):
    """POST /pos/stores/{store_id}/tables."""

    tables: list[Table]


# Orders


class OrderStatus(Body):
    """POST /pos/orders/{order_id}/status."""

    status: Lifecycle


class Cancel(Body):
    """POST /pos/orders/{order_id}/cancel."""

    reason: Annotated[Text, Field(max_length=1000)]
    reason_code: ReasonCode
    message: OptionalText | None = None


# Communities


class CatalogueQuery(Body):
    """The query of GET /communities/{communityId}/catalogue."""

    store_id: str | None = None
    updated_since: Instant | None = None


class CommunityItemPatch(Body):
    """On, off, or off until an instant; on and snoozed contradict each other."""

    available: bool | None = None
    snoozed_until: Instant | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_together(cls, value: Json) -> Json:
        if value == {}:
            raise at("", "must say available or snoozed_until")
        if isinstance(value, dict) and value.get("available") is True and "snoozed_until" in value:
            problem = "means nothing beside available true, which clears any snooze"
            raise at("snoozed_until", problem)
        return value


class Override(Body):
    """A dated exception."""

    date: Date
    closed: bool
    reason: OptionalText = ""


class Hours(Body):
    """PUT /communities/{communityId}/stores/{storeId}/hours."""

    timezone: Zone
    weekly: Weekly
    overrides: list[Override] = NO_LIST


_Events: TypeAlias = Annotated[list[CommunityEvent], Field(min_length=1)]


class SubscriptionUpdate(Body):
    """PUT /webhooks/{webhookId}."""

    name: Annotated[Text, Field(max_length=200)] | None = None
    url: Url | None = None
    events: _Events | None = None
    is_active: bool | None = None


class Subscribe(SubscriptionUpdate):
    """POST /communities/{communityId}/webhooks."""

    name: Annotated[Text, Field(max_length=200)]
    url: Url


# Opening hours: what is refused, and whether a store is open now

_DAY = 24 * 60
_WEEK = 7 * _DAY


def check_hours(body: Mapping[str, Any], *, past_midnight: bool) -> None:
    """Refuse hours that end before they begin, overlap, or speak of one date twice."""
    check_week(body["weekly"], "weekly", past_midnight=past_midnight)
    seen: set[str] = set()
    for index, override in enumerate(body.get("overrides", ())):
        if override["date"] in seen:
            raise wrong(f"overrides[{index}].date", f"{override['date']} appears twice")
        seen.add(override["date"])


def check_week(week: Mapping[str, Any], field: str, *, past_midnight: bool) -> None:
    """Refuse a week whose times end before they begin, or overlap; `field` is what holds it."""
    spans: list[tuple[int, int, str]] = []
    for index, (day, entries) in enumerate((day, week.get(day, ())) for day in WEEKDAYS):
        for position, entry in enumerate(entries):
            path = f"{field}.{day}[{position}]"
            opens, closes = _minutes(entry["open"]), _minutes(entry["close"])
            if opens >= _DAY:
                raise wrong(f"{path}.open", "must be before 24:00")
            if closes <= opens and not past_midnight:
                raise wrong(f"{path}.close", f"must be later than {entry['open']}")
            if closes == opens:
                raise wrong(f"{path}.close", "must differ from open; a whole day is 00:00 to 24:00")
            closes += _DAY if closes < opens else 0
            spans.append((index * _DAY + opens, index * _DAY + closes, path))
    spans.sort()
    following = [
        *spans[1:],
        *((start + _WEEK, end + _WEEK, path) for start, end, path in spans[:1]),
    ]
    for (_, end, path), (start, _, other) in zip(spans, following, strict=True):
        if start < end and path != other:
            raise wrong(other, f"overlaps {path}")


def is_open(hours: Mapping[str, Any] | None, now_ms: int) -> bool:
    """Whether a store with these hours is open at an instant; without hours it always is."""
    if hours is None:
        return True
    local = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(ZoneInfo(hours["timezone"]))
    minute = local.hour * 60 + local.minute
    today, yesterday = local.date(), date.fromordinal(local.date().toordinal() - 1)
    return any(opens <= minute < closes for opens, closes in _spans(hours, today)) or any(
        minute + _DAY < closes for _, closes in _spans(hours, yesterday)
    )


def _spans(hours: Mapping[str, Any], day: date) -> Iterator[tuple[int, int]]:
    for override in hours.get("overrides", ()):
        if override["date"] == day.isoformat() and override["closed"]:
            return
    for entry in hours["weekly"][WEEKDAYS[day.weekday()]]:
        opens, closes = _minutes(entry["open"]), _minutes(entry["close"])
        yield opens, closes + (_DAY if closes < opens else 0)


def _minutes(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


# Models that look at the body, or at the settings


def menu_push(body: Json) -> type[MenusPush] | type[FlatPush]:
    """The preferred shape (`menus[]`), or the flat one."""
    return MenusPush if isinstance(body, dict) and "menus" in body else FlatPush


def token_request(scope_field: str) -> Callable[[Json], type[TokenByCode | TokenByCredentials]]:
    """One endpoint, two bodies: `grant_type` says which. The name of the scope's field is ours."""
    by_credentials = renamed(TokenByCredentials, "scope", scope_field)

    def choose(body: Json) -> Any:  # noqa: ANN401 (one of the three)
        match body:
            case {"grant_type": "client_credentials"}:
                return by_credentials
            case {"grant_type": "authorization_code"}:
                return TokenByCode
        return _AnyGrant

    return choose


@cache
def renamed(model: type[AnyBody], field: str, name: str) -> type[AnyBody]:
    """The model with another name for one field in the body; its attribute stays."""
    info = copy(model.model_fields[field])
    info.alias = info.validation_alias = info.serialization_alias = name
    fields: dict[str, Any] = {field: (info.annotation, info)}
    return create_model(model.__name__, __base__=model, **fields)
