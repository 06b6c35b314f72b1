"""The settings of `bridge.toml`: their names, types, defaults and meaning.

Reading the file, and telling a person what is wrong with it, is in `tillbridge.configfile`.
Durations are in seconds (`_s`) or milliseconds (`_ms`). Each field's description becomes the JSON
Schema in `config/` and the reference in `docs/configuration.md`.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from tillbridge.model.order import ReasonCode

MenuSyncDirection = Literal["none", "quiqqy_to_pos", "pos_to_quiqqy", "bidirectional"]


def _http_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = "must be a URL that begins with http:// or https://"
        raise ValueError(msg)
    if parts.username or parts.password:
        msg = "must not hold a user name or password"
        raise ValueError(msg)
    return text.rstrip("/")


def _listener(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004 -- the highest port
        msg = 'must be "address:port", for example "127.0.0.1:8088"'
        raise ValueError(msg)
    return text


def _time_of_day(text: str) -> str:
    hours, _, minutes = text.partition(":")
    if not (hours.isdigit() and minutes.isdigit() and len(hours) == len(minutes) == 2):  # noqa: PLR2004 -- HH:MM
        msg = 'must be a time of day as "HH:MM"'
        raise ValueError(msg)
    if int(hours) > 23 or int(minutes) > 59:  # noqa: PLR2004 -- the last minute of a day
        msg = 'must be a time of day from "00:00" to "23:59"'
        raise ValueError(msg)
    return text


HttpUrl = Annotated[str, AfterValidator(_http_url)]
Listener = Annotated[str, AfterValidator(_listener)]
TimeOfDay = Annotated[str, AfterValidator(_time_of_day)]
Seconds = Annotated[float, Field(gt=0)]
Percent = Annotated[float, Field(ge=0, le=100)]


class Section(BaseModel):
    """A table of the file: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class BridgeSettings(Section):
    """[bridge]"""

    data_dir: Path = Field(
        Path("/var/lib/tillbridge"),
        description="Folder of the ledger, the key file and back-ups. TILLBRIDGE_DATA_DIR overrides it.",
    )
    log_format: Literal["auto", "json", "console"] = Field(
        "auto", description="How logs are written; auto is console on a terminal and JSON elsewhere."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least severe log lines that are written."
    )
    keep_personal_data_days: int = Field(
        30, ge=1, description="Customers' personal data in handled orders is removed after this many days."
    )
    keep_history_days: int = Field(
        400, ge=30, description="Handled orders (without personal data) and pushes are forgotten after this many days."
    )
    drain_s: Seconds = Field(
        8, le=9, description="On SIGTERM, how long work that has begun may take to finish."
    )


class SecretSource(Section):
    """Where a secret comes from: exactly one of file, env and credential."""

    file: Path | None = Field(None, description="A file that holds the secret; relative to this file.")
    env: str | None = Field(None, description="The environment variable that holds the secret.")
    credential: str | None = Field(None, description="The systemd credential (LoadCredential) that holds it.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.file, self.env, self.credential)) != 1:
            msg = "give exactly one of file, env and credential"
            raise ValueError(msg)
        return self


class ServiceSettings(Section):
    """[service]"""

    base_url: HttpUrl = Field(description="The ordering service's versioned API root, with /v2 at its end.")
    client_id: str = Field(min_length=1, description="The app's client id, from the service's console.")
    client_secret: SecretStr | SecretSource = Field(
        description="The app's secret: { file = ... }, { env = ... }, { credential = ... } or text."
    )
    redirect_uri: HttpUrl = Field(
        "http://127.0.0.1:8089/oauth/callback",
        description="Where the service sends the merchant back after consent; registered with the service.",
    )
    timeout_s: Seconds = Field(15, description="How long one call to the service may take.")
    max_attempts: int = Field(
        5, ge=1, description="How often one call is tried when the service fails, before it waits for the next round."
    )
    backoff_first_s: Seconds = Field(
        0.5, description="Upper bound of the first wait after a failure of the service; it doubles, with full jitter."
    )
    backoff_cap_s: Seconds = Field(60, description="The longest wait between two tries.")
    job_poll_s: Seconds = Field(2, description="How often a menu sync job is asked for its state.")
    refresh_early_s: Seconds = Field(60, description="Access tokens are refreshed this long before they expire.")
    consent_warn_days: float = Field(
        2, ge=0, description="The page warns when the merchant's consent ends within this many days."
    )


class ReceiverSettings(Section):
    """[receiver]"""

    listen: Listener = Field("127.0.0.1:8088", description="Where webhooks are received; port 0 picks a free one.")
    public_url: HttpUrl = Field(
        description="The address under which the internet reaches the receiver; deliveries go to {public_url}/webhooks/{store}."
    )
    max_body_bytes: int = Field(1_048_576, ge=1024, description="Larger deliveries are refused with 413.")
    max_connections: int = Field(256, ge=1, description="Connections beyond this many are closed at once.")
    head_timeout_s: Seconds = Field(5, description="How long a sender may take for a request's head.")
    body_timeout_s: Seconds = Field(8, description="How long a sender may take for a request's body.")
    keepalive_s: Seconds = Field(30, description="How long an idle connection is kept open.")


class StatusPageSettings(Section):
    """[status_page]"""

    listen: Listener = Field("127.0.0.1:8089", description="Where the technician's page is served.")


class AssumptionSettings(Section):
    """[assumptions] What the specification does not show; see docs/assumptions.md."""

    delivery_success_status: int = Field(
        200, ge=200, le=299, description="What the receiver answers for a delivery that is committed or already known."
    )
    accept_body: dict[str, Any] = Field(default_factory=dict, description="Body of POST /pos/orders/{id}/accept.")
    status_body: dict[str, Any] = Field(
        default_factory=lambda: {"status": "{status}"},
        description='Body of POST /pos/orders/{id}/status; "{status}" stands for the state.',
    )
    preparing_status: str = Field("preparing", description="What the status body calls the state preparing.")
    ready_body: dict[str, Any] = Field(default_factory=dict, description="Body of POST /pos/orders/{id}/ready.")
    rotate_secret_field: str = Field(
        "rotate_webhook_secret", description="Field of PUT /pos/integrations/{id} that asks for a new webhook secret."
    )
    background_threshold: int = Field(
        100, ge=1, description="About how many items make the service take a full push as a background job."
    )
    batch_max_items: int = Field(
        1000, ge=1, description="The most items that are sent in one batch or availability call."
    )
    service_restores_snoozed: bool = Field(
        default=False,
        description="Whether the service ends a snooze by itself. If not, the bridge tells it when one ends (harmless either way).",
    )
    authorize_email: bool = Field(
        default=True, description="Whether the authorize URL carries the merchant's e-mail (notification_email)."
    )


class _AdapterChoice(BaseModel):
    """[stores.NAME.pos] and [stores.NAME.orders]: the adapter's name; its own options stand beside it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    adapter: str = Field(min_length=1, description="The adapter's name, as `tillbridge adapter list` shows it.")

    @property
    def options(self) -> dict[str, Any]:
        """The adapter's own keys, to be checked by its options model."""
        return dict(self.model_extra or {})


class PosSettings(_AdapterChoice):
    """[stores.NAME.pos]"""

    poll_s: Seconds = Field(
        2, description="How often files are looked at beside change events, and an adapter without files is read."
    )
    health_s: Seconds = Field(5, description="How often the POS is probed.")


class OrderSettings(BaseModel):
    """[stores.NAME.orders]"""

    model_config = ConfigDict(extra="allow", frozen=True)

    adapter: str | None = Field(
        None, min_length=1, description="The adapter that writes orders; without it the one of [stores.NAME.pos] does."
    )
    accept: Literal["when_written", "when_confirmed"] = Field(
        "when_written",
        description="Accept an order when its ticket is written, or when the POS confirms it.",
    )
    accept_within_s: Seconds = Field(
        120, description="An order the POS has not taken by then is cancelled with the reason code that fits."
    )
    retry_s: Seconds = Field(2, description="How long after a failed write of a ticket the next try comes; it doubles.")
    retry_cap_s: Seconds = Field(15, description="The longest wait between two tries to write a ticket.")
    write_timeout_s: Seconds = Field(
        20, description="A POS that has not answered a write by then may have it: it is asked before the next write."
    )
    unknown_item: Literal["write_and_warn", "cancel"] = Field(
        "write_and_warn",
        description="What to do with an order that names an item the ledger does not know (cancel: ITEM_OUT_OF_STOCK).",
    )
    price_differs: Literal["write_and_warn", "cancel"] = Field(
        "write_and_warn",
        description="What to do with an order whose prices are not the menu's when it was placed (cancel: PRICE_MISMATCH).",
    )
    unconfirmed_reason: ReasonCode = Field(
        ReasonCode.OTHER, description="The reason code for an order that the kitchen did not confirm in time."
    )
    pause_after_s: Annotated[float, Field(ge=0)] = Field(
        30, description="A POS offline for this long pauses the store; 0 never pauses it."
    )
    resume_after_s: Annotated[float, Field(ge=0)] = Field(
        5, description="A POS that is back for this long resumes the store the bridge paused."
    )
    max_pauses_per_hour: int = Field(
        4, ge=1, description="After this many pauses in an hour the store stays paused until the POS is steady for 10 minutes."
    )

    @property
    def options(self) -> dict[str, Any]:
        """The order adapter's own keys, to be checked by its options model."""
        return dict(self.model_extra or {})


class MenuSettings(Section):
    """[stores.NAME.menu]"""

    settle_ms: int = Field(
        150, ge=0, le=60_000, description="A changed export is read once it has been quiet this long."
    )
    max_removed_percent: Percent = Field(
        10, description="Hold a plan that removes more of the items than this (and more than 5)."
    )
    max_price_change_percent: Annotated[float, Field(ge=0)] = Field(
        50, description="Hold a plan that moves more than a fifth of the prices by more than this."
    )
    full_compare: TimeOfDay = Field(
        "03:30", description="When the whole menu is read and compared each day, in the store's local time."
    )
    full_push_percent: Percent = Field(
        50, description="Push the menu whole when more of its items than this changed (and more than a job's threshold)."
    )


class StoreSettings(Section):
    """[stores.NAME]"""

    store_id: str | None = Field(
        None, description="The store's id at the service; where the merchant has one store it is found."
    )
    location_id: str = Field(min_length=1, description="Your own id of the location; sent as external_store_id.")
    currency: str = Field(pattern=r"^[A-Z]{3}$", description="ISO 4217 code of the store's currency.")
    timezone: str | None = Field(None, description="IANA name of the store's time zone; else this machine's.")
    menu_sync_direction: MenuSyncDirection = Field(
        "pos_to_quiqqy", description="Which way menus go; pos_to_quiqqy or bidirectional lets the bridge push."
    )
    auto_accept_orders: bool = Field(
        default=False, description="Whether the service accepts orders by itself as soon as they are placed."
    )
    notification_email: str | None = Field(None, description="Where the service writes to about this store.")
    pos: PosSettings = Field(description="Where the catalogue, tables and (unless orders says otherwise) orders live.")
    orders: OrderSettings = Field(default_factory=OrderSettings, description="How orders are written and accepted.")
    menu: MenuSettings = Field(default_factory=MenuSettings, description="How menus are read, guarded and pushed.")

    @field_validator("timezone")
    @classmethod
    def _known_timezone(cls, name: str | None) -> str | None:
        if name is not None:
            from zoneinfo import ZoneInfo  # noqa: PLC0415 -- most commands never need it

            try:
                ZoneInfo(name)
            except (KeyError, ValueError, OSError):
                msg = 'must be an IANA time zone name, for example "Europe/Prague"'
                raise ValueError(msg) from None
        return name


class Settings(Section):
    """The whole of bridge.toml."""

    bridge: BridgeSettings = Field(default_factory=BridgeSettings)
    service: ServiceSettings
    receiver: ReceiverSettings
    status_page: StatusPageSettings = Field(default_factory=StatusPageSettings)
    assumptions: AssumptionSettings = Field(default_factory=AssumptionSettings)
    stores: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")], StoreSettings] = Field(min_length=1)
