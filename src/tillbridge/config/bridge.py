"""The whole of `bridge.toml` as one model; the tables of the bridge, of alerts and of the fleet."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, StringConstraints

from tillbridge.config.secrets import Secret, SecretSource
from tillbridge.config.store import CommunitySettings, StoreSettings
from tillbridge.config.values import (
    HeartbeatUrl,
    HttpUrl,
    Listener,
    QuietHours,
    Seconds,
    Section,
    TimeOfDay,
)


class BridgeSettings(Section):
    """The table [bridge]."""

    data_dir: Path | None = Field(None, strict=False)
    """The folder of the database, its key and the backups. Default: data/ beside this file, or
    /var/lib/tillbridge for a file of root's. TILLBRIDGE_DATA_DIR overrides it."""
    name: str | None = Field(None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")
    """What this bridge is called among those that use one database ([ledger] url). Default: the
    name of the machine."""
    serve: list[str] = Field(default_factory=list)
    """The stores and communities that this bridge serves, and no other one of those that use one
    database: for a till that only this machine reaches. Default: any."""
    log_format: Literal["auto", "json", "console"] = "auto"
    """The format of the log; auto means readable text on a terminal and JSON elsewhere."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe log lines that are written."""
    language: str | None = Field(None, pattern=r"^[a-z]{2}(-[A-Z]{2})?$")
    """The language of what the bridge sends by itself, such as alerts: "de", or "de-AT" for a
    country's formats. Default: the environment's (LANG). The page follows the browser."""
    keep_log_bytes: int = Field(4_000_000, ge=0)
    """How many bytes of the log are kept in the data folder, for the page, `tillbridge logs` and
    support-bundle; 0 keeps none."""
    keep_personal_data_days: int = Field(30, ge=1)
    """Customers' personal data in handled orders is removed after this many days."""
    keep_history_days: int = Field(400, ge=30)
    """Handled orders (without personal data) and menu updates are deleted after this many days."""
    keep_backups: int = Field(7, ge=1)
    """How many backups stay in the data folder; older ones are deleted."""
    backup_at: TimeOfDay | None = None
    """When the database is backed up each day, in this machine's time. Default: only on request."""
    update_url: HttpUrl | None = None
    """An address that announces new versions, as JSON with a version or as a package index does.
    The bridge asks it once a day, and the page Settings shows a newer version; nothing is
    installed. Default: never asked."""
    disk_budget_mib: int = Field(2048, ge=64)
    """How large the data folder may grow, in MiB. Above that, old backups and replaced databases
    are deleted; if that is not enough, the page says so."""
    drain_s: Seconds = Field(8, le=9)
    """How long work under way may take to finish when the bridge is stopped."""

    @property
    def known_as(self) -> str:
        """What other bridges on the same database call this one."""
        return self.name or socket.gethostname()


class LedgerSettings(Section):
    """The table [ledger]."""

    url: Secret | None = None
    """A PostgreSQL database, postgresql://USER:PASSWORD@HOST/NAME: { file = ... }, { env = ... },
    { credential = ... } or text. Default: a file in the data folder (SQLite)."""
    key: Secret | None = None
    """The key of the stored secrets, the same for all bridges on one database: { file = ... },
    { env = ... }, { credential = ... } or text. Default: ledger.key in the data folder."""


class ServiceSettings(Section):
    """The table [service]."""

    base_url: HttpUrl
    """The ordering service's versioned API root, with /v2 at its end."""
    client_id: str = Field(min_length=1)
    """The app's client ID, from the ordering service's console."""
    client_secret: Secret
    """The app's secret: { file = ... }, { env = ... }, { credential = ... }, { vault = true } or
    text."""
    redirect_uri: HttpUrl = "http://127.0.0.1:8089/oauth/callback"
    """Where the service sends the merchant back after consent; registered with the service."""
    signup_auth: Literal["basic", "body"] = "basic"
    """How a signup identifies the app: with ID and secret (HTTP Basic), or with the ID in the
    body."""
    timeout_s: Seconds = 15
    """How long one call to the service may take."""
    max_attempts: int = Field(5, ge=1)
    """How often a call is tried when the service fails, before it waits for the next round."""
    backoff_first_s: Seconds = 0.5
    """Upper bound of the first wait after a failure of the service; it doubles, with full
    jitter."""
    backoff_cap_s: Seconds = 60
    """The longest wait between two tries."""
    job_poll_s: Seconds = 2
    """How often the bridge asks for the state of a menu sync job."""
    store_look_s: Seconds = 300
    """How often the bridge checks whether somebody else has opened or closed a store; it notices
    events sooner."""
    idle_read_s: Annotated[float, Field(ge=0)] = 55
    """After this long without a call the bridge reads a store's integration, to notice within a
    minute when a sign-in or an integration ends; 0 never reads it."""
    late_report_s: Seconds = 900
    """How old an accept, preparing or ready may get while it waits to be sent. An older one is not
    sent, and a person decides. Cancellations are always sent."""
    refresh_early_s: Seconds = 60
    """Access tokens are refreshed this long before they expire."""
    integration_check_s: Seconds = 900
    """How often the store's integration is read and compared."""
    integration_changes: Literal["apply", "apply_safe", "tell"] = "apply"
    """What the bridge does when the integration differs: apply everything, apply only what needs no
    new integration, or report a problem."""
    reintegrate_settle_s: Annotated[float, Field(ge=0)] = 75
    """How long after its start the bridge waits before it reconnects a store by itself, so that
    deliveries from before arrive first."""
    reintegrate_quiet_s: Annotated[float, Field(ge=0, le=60)] = 5
    """How long the storefront is closed before a new integration replaces the old one, so that no
    order is lost in between; 0 does not close it."""
    consent_warn_days: float = Field(2, ge=0)
    """The page warns when the merchant's sign-in expires within this many days."""


class ReceiverSettings(Section):
    """The table [receiver]."""

    listen: Listener = "127.0.0.1:8088"
    """Where webhooks are received; port 0 picks a free one."""
    public_url: HttpUrl
    """The address under which the internet reaches the receiver; deliveries go to
    {public_url}/webhooks/{store}."""
    tls_cert: Path | None = Field(None, strict=False)
    """PEM file of a certificate with its chain; with it the receiver serves TLS itself. A changed
    file is used at once."""
    tls_key: Path | None = Field(None, strict=False)
    """PEM file of the certificate's key, without a password."""
    max_body_bytes: int = Field(1_048_576, ge=1024)
    """Larger deliveries are refused with 413."""
    max_connections: int = Field(256, ge=1)
    """How many connections are served at once. One more replaces the least important one: a
    stranger's that has been idle longest."""
    head_timeout_s: Seconds = 5
    """How long a sender may take for a request's head."""
    body_timeout_s: Seconds = 8
    """How long a sender may take for a request's body."""
    keepalive_s: Seconds = 30
    """How long an idle connection is kept open."""
    old_secret_s: Annotated[float, Field(ge=0)] = 86_400
    """How long deliveries that are signed with a replaced webhook secret are still accepted."""


class PageUser(Section):
    """A table [status_page.users.NAME]."""

    role: Literal["look", "staff", "technician"]
    """look sees everything; staff also acts on orders and items; technician does the rest."""
    password: Secret
    """The Argon2id hash that `tillbridge password` prints, or where it is kept."""


# Typed into a form, and written into the audit trail. (No \w and no {1,64}: pydantic's matcher
# makes megabytes of those.)
UserName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._@-]+$", max_length=64)]
HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]+$", max_length=253)]


class StatusPageSettings(Section):
    """The table [status_page]."""

    listen: Listener = "127.0.0.1:8089"
    """Where the page is served. If other machines can reach it, it needs users with passwords."""
    allowed_hosts: list[HostName] = Field(default_factory=list)
    """More names under which the page may be opened, without port: this machine's name in the
    restaurant's network, or a proxy's."""
    users: dict[UserName, PageUser] = Field(default_factory=dict)
    """Who may sign in: NAME = { role = ..., password = ... }. As soon as there is a user, everybody
    has to sign in. See docs/page.md."""
    session_idle_s: Seconds = 14_400
    """After this long without activity, a user has to sign in again."""
    session_longest_s: Seconds = 57_600
    """After this long, every user has to sign in again."""
    new_orders_sound: bool = False
    """Whether the page Orders rings for new orders until somebody acknowledges them."""


class DiagnosticSettings(Section):
    """The table [diagnostics]."""

    probe_every_s: Annotated[float, Field(ge=0)] = 20
    """How often the bridge checks that the public address leads here; 0 checks it only in
    doctor."""
    service_probe_every_s: Annotated[float, Field(ge=0)] = 20
    """How often the bridge checks, without signing in, whether the service answers and what time it
    is there; 0 checks it only in doctor."""
    outside_probe_url: HttpUrl | None = None
    """A prober outside this network, asked when the public address does not answer from inside; see
    docs/diagnostics.md."""


class AssumptionSettings(Section):
    """[assumptions] What the specification does not show; see docs/assumptions.md."""

    delivery_success_status: int = Field(200, ge=200, le=299)
    """What the receiver answers for a delivery that is committed or already known."""
    accept_body: dict[str, Any] = Field(default_factory=dict)
    """Body of POST /pos/orders/{id}/accept."""
    status_body: dict[str, Any] = Field(default_factory=lambda: {"status": "{status}"})
    """Body of POST /pos/orders/{id}/status; "{status}" is replaced with the state."""
    preparing_status: str = "preparing"
    """What the status body calls the state preparing."""
    ready_body: dict[str, Any] = Field(default_factory=dict)
    """Body of POST /pos/orders/{id}/ready."""
    background_threshold: int = Field(100, ge=1)
    """About how many items make the service take a full push as a background job."""
    end_of_day: Literal["24:00", "23:59", "00:00"] = "24:00"
    """How the end of a day is written in a store's availability."""
    batch_max_items: int = Field(1000, ge=1)
    """The most items that are sent in one batch or availability call."""
    service_restores_snoozed: bool = False
    """Whether the service ends a snooze by itself. If not, the bridge ends it (harmless either
    way)."""
    authorize_email: bool = True
    """Whether the authorize URL carries the merchant's e-mail (notification_email)."""
    rotate_secret_field: str = ""
    """The field of PUT /pos/integrations/{store_id} that rotates the webhook secret; "" rotates it
    by a new integration."""
    community_audience: str = Field("communities", min_length=1)
    """The audience of app-level tokens for the community API."""
    reporting_audience: str = "reporting"
    """The audience of app-level tokens for the reporting API; "" sends none."""
    scope_field: str = Field("scope", min_length=1)
    """The field of the token request's body that asks for scopes."""
    subscription_secret_field: str = Field("secret", min_length=1)
    """The field with the signing secret in the answer to a new subscription."""
    override_hours_field: str = ""
    """The field for other hours in a community's dated override; "" puts them into the week that
    contains the date."""


# It is in the webhook's address.
StoreName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


# -- alerts and the fleet


Address = Annotated[str, StringConstraints(pattern=r"^[^@\s<>\",;]+@[^@\s<>\",;]+$")]
Minutes = Annotated[float, Field(ge=0)]


class EmailSettings(Section):
    """The table [alerts.email]."""

    host: str = Field(min_length=1)
    """The mail server (SMTP)."""
    port: int = Field(587, ge=1, le=65535)
    """Its port."""
    tls: Literal["starttls", "tls", "none"] = "starttls"
    """How the connection is encrypted; none is for a server on this machine only."""
    username: str | None = Field(None, min_length=1)
    """The name to sign in to the mail server with. Default: no sign-in."""
    password: Secret | None = None
    """Its password: { file = ... }, { env = ... }, { credential = ... }."""
    sender: Address
    """The address that alerts come from."""
    to: list[Address] = Field(min_length=1)
    """The addresses that alerts go to."""
    timeout_s: Seconds = 20
    """How long the mail server may take for each step."""


class WebhookSettings(Section):
    """The table [alerts.webhook]."""

    url: Secret
    """Where alerts are sent as JSON: the address, or { file = ... } with the address in it."""
    format: Literal["json", "slack", "teams", "discord"] = "json"
    """Everything as JSON, or only the text in the form of one of these chats."""
    secret: Secret | None = None
    """Signs each alert: X-Tillbridge-Signature is the HMAC-SHA256 of the body."""
    timeout_s: Seconds = 15
    """How long a call may take."""


class AppriseSettings(Section):
    """The table [alerts.apprise]; needs the extra tillbridge[apprise]."""

    urls: list[Secret] = Field(min_length=1)
    """Addresses of apprise, each as text or { file = ... }."""
    timeout_s: Seconds = 30
    """How long all of them together may take."""


class AlertSettings(Section):
    """The table [alerts]."""

    severity: Literal["warning", "down"] = "warning"
    """The least severe problems that are sent."""
    stores: list[str] = Field(default_factory=list)
    """Only these stores' problems, and the bridge's own; [] means all."""
    repeat_min: list[Minutes] = Field(default_factory=lambda: [0.0, 5.0, 10.0], min_length=1)
    """How many minutes after its start a message about a problem is sent, until somebody
    acknowledges it."""
    settle_s: Annotated[float, Field(ge=0)] = 60
    """A problem is over when it has been gone this long; if it comes back sooner, it counts as the
    same one."""
    quiet_hours: QuietHours | None = None
    """Warnings wait for the end of these hours (this machine's time)."""
    docs_url: str = Field("docs/problems.md", min_length=1)
    """Where the explanations of problems can be read; alerts link there."""
    heartbeat_url: HeartbeatUrl | None = None
    """An address that is requested (GET) as long as the bridge can take orders, so that a monitor
    notices when it stops."""
    heartbeat_s: Seconds = 60
    """How often heartbeat_url is requested."""
    heartbeat_fail: str = Field("", pattern=r"^(|/[A-Za-z0-9._~/-]+)$")
    """What is added to heartbeat_url's path when the bridge runs but cannot take orders; "" sends
    nothing then."""
    email: EmailSettings | None = None
    """Alerts by e-mail."""
    webhook: WebhookSettings | None = None
    """Alerts by a webhook."""
    apprise: AppriseSettings | None = None
    """Alerts through apprise."""

    @property
    def are_wanted(self) -> bool:
        """Whether anything runs: a channel, or a heartbeat."""
        ways = (self.email, self.webhook, self.apprise)
        return self.heartbeat_url is not None or any(way is not None for way in ways)


BridgeName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class FleetSettings(Section):
    """The table [fleet]."""

    name: BridgeName | None = None
    """The bridge's name in its reports. Default: the machine's name."""
    folder: Path | None = Field(None, strict=False)
    """The folder where signed reports are written; relative to this file's folder."""
    url: HttpUrl | None = None
    """The address where signed reports are sent (HTTP PUT): NAME.json, NAME.json.minisig."""
    token: Secret | None = None
    """Sent with the reports as Authorization: Bearer ...: { file = ... } or text."""
    every_s: Seconds = 60
    """How often a report is written or sent."""
    reports: Path | None = Field(None, strict=False)
    """The folder where reports of other bridges arrive; the page /fleet shows them."""
    keys: Path | None = Field(None, strict=False)
    """A file with the keys of those bridges: lines NAME KEY, as `tillbridge fleet key` prints
    them."""
    silent_after_s: Seconds = 300
    """A bridge whose last report is older is shown as silent."""

    @property
    def is_wanted(self) -> bool:
        """Whether anything is reported."""
        return self.folder is not None or self.url is not None

    @property
    def called(self) -> str:
        """The name in the reports."""
        return (
            self.name
            or "".join(
                each if each.isascii() and (each.isalnum() or each in "-_.") else "-"
                for each in socket.gethostname()
            ).strip("-._")
            or "bridge"
        )


# -- the whole file


class Settings(Section):
    """The whole of bridge.toml.

    A table that is not there is constructed: validating it would take a validator of its own.
    """

    bridge: BridgeSettings = Field(default_factory=BridgeSettings.model_construct)
    ledger: LedgerSettings = Field(default_factory=LedgerSettings.model_construct)
    service: ServiceSettings
    receiver: ReceiverSettings
    status_page: StatusPageSettings = Field(default_factory=StatusPageSettings.model_construct)
    diagnostics: DiagnosticSettings = Field(default_factory=DiagnosticSettings.model_construct)
    alerts: AlertSettings = Field(default_factory=AlertSettings.model_construct)
    fleet: FleetSettings = Field(default_factory=FleetSettings.model_construct)
    assumptions: AssumptionSettings = Field(default_factory=AssumptionSettings.model_construct)
    stores: dict[StoreName, StoreSettings] = Field(min_length=1)
    communities: dict[StoreName, CommunitySettings] = Field(default_factory=dict)

    def secrets(self) -> Iterator[tuple[tuple[str | int, ...], SecretStr | SecretSource]]:
        """Return where each secret of the bridge itself stands, and where it comes from."""
        yield ("service", "client_secret"), self.service.client_secret
        for key in ("url", "key"):
            if (source := getattr(self.ledger, key)) is not None:
                yield ("ledger", key), source
        alerts = self.alerts
        if alerts.email is not None and alerts.email.password is not None:
            yield ("alerts", "email", "password"), alerts.email.password
        if alerts.webhook is not None:
            yield ("alerts", "webhook", "url"), alerts.webhook.url
            if alerts.webhook.secret is not None:
                yield ("alerts", "webhook", "secret"), alerts.webhook.secret
        if alerts.apprise is not None:
            for place, url in enumerate(alerts.apprise.urls):
                yield ("alerts", "apprise", "urls", place), url
        if self.fleet.token is not None:
            yield ("fleet", "token"), self.fleet.token


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of `bridge.toml`, for editors that complete and check."""
    schema = Settings.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "bridge.toml of tillbridge",
        "description": "Configuration of tillbridge; docs/configuration.md explains it.",
    }
