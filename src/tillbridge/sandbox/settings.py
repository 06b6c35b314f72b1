"""What the sandbox starts with, and a setting for what the specification does not show."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

UnknownUpdate = Literal["not_found", "upsert"]
WrongAudience = Literal["auth.invalid_token", "request.forbidden"]


def default_tax_config() -> dict[str, Any]:
    """A store-wide sales tax of 8.25 % in two components, on top of the displayed prices."""
    return {
        "enabled": True,
        "tax_level": "store",
        "pricing_mode": "exclusive",
        "default_tax_id": "tax_sales",
        "taxes": [
            {
                "tax_id": "tax_sales",
                "name": "Sales tax",
                "components": [
                    {"agency": "State", "rate": 6.25, "compound": False},
                    {"agency": "City", "rate": 2.0, "compound": False},
                ],
            }
        ],
    }


@dataclass(frozen=True, slots=True)
class AppSeed:
    """A partner application. No `redirect_uris` means that any loopback address is allowed."""

    client_id: str = "app_123"
    client_secret: str = "sandbox-secret"  # noqa: S105 (shown on the first page; opens nothing real)
    redirect_uris: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreSeed:
    """A store of a merchant; `delivery_fee` in minor units of `currency`."""

    store_id: str = "st_main"
    name: str = "Main Street"
    description: str | None = "The sandbox's first store"
    status: str = "active"
    currency: str = "USD"
    location_id: str | None = None
    delivery_fee: int = 0
    tax_config: Mapping[str, Any] = field(default_factory=default_tax_config)


@dataclass(frozen=True, slots=True)
class MerchantSeed:
    """A merchant organization and its stores."""

    email: str = "owner@example.net"
    stores: tuple[StoreSeed, ...] = (StoreSeed(),)


@dataclass(frozen=True, slots=True)
class CommunitySeed:
    """A community (hub) and its member stores, by id. `client_id` None is the first app.

    Without `store_ids` the first store of the first merchant is its member.
    """

    community_id: str = "com_food_hall"
    name: str = "Food hall"
    store_ids: tuple[str, ...] = ()
    client_id: str | None = None


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Every knob of the sandbox.

    Durations ending in `_s` are seconds on the sandbox's clock, unless said otherwise.
    `docs/sandbox.md` has a line on each of them; a test holds the two together.
    """

    # Seeds
    apps: tuple[AppSeed, ...] = (AppSeed(),)
    merchants: tuple[MerchantSeed, ...] = (MerchantSeed(),)
    communities: tuple[CommunitySeed, ...] = (CommunitySeed(),)

    # The server
    api_prefix: str = "/v2"
    public_url: str | None = None
    max_body_bytes: int = 64 * 1024 * 1024
    request_log_size: int = 10_000
    request_log_body_bytes: int = 1024 * 1024
    clock_speed: float = 1.0
    rate_limit: int | None = None
    rate_window_s: float = 60.0
    fault_seed: int = 1

    # Authentication
    auto_consent: bool = False
    access_token_s: int = 3600
    refresh_token_s: int = 7 * 24 * 3600
    auth_code_s: int = 600
    app_token_s: int = 3600
    community_audience: str = "communities"
    reporting_audience: str = "reporting"
    scope_field: str = "scope"
    wrong_audience_code: WrongAudience = "auth.invalid_token"

    # Integrations and stores
    rotation_field: str = "rotate_webhook_secret"
    rotation_returns_secret: bool = False
    settings_accept_unknown: bool = True
    status_changed_to_pos: bool = False

    # Menus
    sync_item_limit: int = 100
    job_duration_s: float = 3.0
    job_running_status: str = "processing"
    job_retention_s: float = 3600.0
    batch_update_unknown: UnknownUpdate = "not_found"
    snooze_returns: bool = True

    # Orders
    order_status_field: str = "status"
    pos_offline_pauses_store: bool = False

    # Communities
    community_external_ids: bool = True
    community_tells_removed: bool = True
    hours_past_midnight: bool = False
    subscription_secret_field: str = "secret"  # noqa: S105 (the name of a field)
    subscription_test_event: str = "webhook.test"

    # Webhooks. The time-out is real time: a fast clock must not fail a healthy receiver
    webhook_timeout_s: float = 10.0
    webhook_retry_delays_s: tuple[float, ...] = (60.0, 300.0, 1800.0, 7200.0, 21600.0)
    webhook_concurrency: int = 32
    webhook_log_size: int = 10_000
