"""The shapes of the status document, as `status --json` and `/api/status` have it.

Instants are ISO 8601.
"""

from typing import Any, Literal, NotRequired, TypedDict

from tillbridge.ledger.figures import FiguresView, TodayView
from tillbridge.stores.closure import ClosureView

Level = Literal["ok", "warning", "down"]


class Verdict(TypedDict):
    """How it is on the whole; `handled`: who takes care of the worst problem is known.

    `effect` is what guests notice of it, "" where that is not known; `text` says it too.
    """

    level: Level
    text: str
    handled: bool
    effect: str


class Acknowledged(TypedDict):
    """Who acknowledged a problem, so that alerts about it have stopped."""

    at: str
    by: str


class ProblemView(TypedDict):
    """An open problem; `store` is "" for the bridge's own, `communities/NAME` for a community."""

    code: str
    severity: str
    store: str
    subject: str
    text: str
    fix: str
    since: str
    acknowledged: Acknowledged | None


class ServiceView(TypedDict):
    """A store at the ordering service, as it has it.

    `pending_changes` are lines for people: what differs from the configuration and is not applied
    yet.
    """

    store_id: str | None
    store_name: str | None
    integrated: bool
    integration_status: str | None
    menu_sync_direction: str | None
    webhook_url: str | None
    auto_accept_orders: bool | None
    location_id: str | None
    connected_at: str | None
    removed_since: str | None
    integration_checked_at: str | None
    pending_changes: list[str]
    integration_under_way: str | None
    secret_since: str | None
    old_secret_until: str | None
    last_contact_at: str | None
    latency_ms: int | None
    consent: str
    consent_expires_at: str | None
    consent_days_left: float | None
    paused: bool
    paused_since: str | None


class PosView(TypedDict):
    """A store's till, and the adapters it is reached by."""

    adapter: str
    online: bool | None
    since: str | None
    detail: str
    last_seen_at: str | None
    latency_ms: int | None
    adapters: list[dict[str, str]]


class MenuView(TypedDict):
    """A store's menu at the service; `pending` counts changes that it has not accepted yet.

    `off_sale` counts items and variants that guests cannot order now, whoever took them off.
    """

    acknowledged_items: int
    off_sale: int
    pending: int
    refused_items: int
    held: bool
    dismissed: bool
    held_reasons: list[str]
    held_since: str | None
    last_synced_at: str | None


class OrdersView(TypedDict):
    """How a store's orders are doing; `untold` counts those with reports still to be sent."""

    waiting: int
    by_state: dict[str, int]
    oldest_waiting_s: int | None
    untold: int
    figures: dict[str, FiguresView]
    today: TodayView


class TablesView(TypedDict):
    """A store's tables; `codes_changed` names those whose printed QR code is dead."""

    active: int
    held: bool
    held_reasons: list[str]
    held_since: str | None
    last_synced_at: str | None
    codes_changed: list[str]


class SettingsView(TypedDict):
    """What of a store's settings is still to be sent."""

    pending: list[str]
    last_sent_at: str | None


class TaxView(TypedDict):
    """Where the taxes of till, service and orders differ."""

    checked_at: str | None
    differences: list[str]


class OpeningView(ClosureView):
    """Whether a store takes orders and who says so; `told`: what was last sent to the service."""

    told: str | None
    next_change_at: str | None
    settings: SettingsView
    hours_today: list[str] | None
    tax: TaxView


class StoreView(TypedDict):
    """A store."""

    service: ServiceView
    pos: PosView
    menu: MenuView
    orders: OrdersView
    tables: TablesView
    store: OpeningView


class CatalogueView(TypedDict):
    """A community's catalogue as it was read last."""

    stores: int
    categories: int
    items: int
    as_of: str | None
    read_at: str | None
    read_whole_at: str | None


class WebhookView(TypedDict):
    """A community's subscription; `unhandled` counts deliveries."""

    webhook_id: str | None
    url: str | None
    events: list[str]
    checked_at: str | None
    unhandled: int


class CommunityView(TypedDict):
    """A community; `orders` has `by_status`, `hours` has `pushed_at` by store."""

    community_id: str
    catalogue: CatalogueView
    webhook: WebhookView
    orders: dict[str, dict[str, int]]
    hours: dict[str, dict[str, str | None]]


class BridgeView(TypedDict):
    """The bridge itself; `uptime_s` and `pid` while it runs."""

    version: str
    compatibility: dict[str, Any]
    running: bool
    uptime_s: int | None
    pid: int | None


class MemberView(TypedDict):
    """One of several bridges on one database; `serves` says since when, by store or community."""

    version: str
    url: str
    started_at: str | None
    last_seen_at: str | None
    alive: bool
    serves: dict[str, str | None]


class StatusDocument(TypedDict):
    """The status."""

    verdict: Verdict
    problems: list[ProblemView]
    stores: dict[str, StoreView]
    bridge: BridgeView
    communities: NotRequired[dict[str, CommunityView]]
    bridges: NotRequired[dict[str, MemberView]]
