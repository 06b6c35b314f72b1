"""The tables of the bridge itself: bridge, service, receiver, status_page and assumptions."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, SecretStr, Tag, model_validator

from tillbridge.config.values import HttpUrl, Listener, Seconds, Section


class BridgeSettings(Section):
    """The table [bridge]."""

    data_dir: Path = Field(
        Path("/var/lib/tillbridge"),
        strict=False,
        description=(
            "Folder of the ledger, the key file and back-ups. TILLBRIDGE_DATA_DIR overrides it."
        ),
    )
    log_format: Literal["auto", "json", "console"] = Field(
        "auto",
        description="How logs are written; auto is console on a terminal and JSON elsewhere.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least severe log lines that are written."
    )
    keep_log_bytes: int = Field(
        4_000_000,
        ge=0,
        description=(
            "How much of the log is kept in the data folder, for the page, `tillbridge logs` and "
            "support-bundle; 0 keeps none."
        ),
    )
    keep_personal_data_days: int = Field(
        30,
        ge=1,
        description="Customers' personal data in handled orders is removed after this many days.",
    )
    keep_history_days: int = Field(
        400,
        ge=30,
        description=(
            "Handled orders (without personal data) and pushes are forgotten after this many days."
        ),
    )
    keep_backups: int = Field(
        7, ge=1, description="How many back-ups stay in the data folder; the oldest go."
    )
    disk_budget_mib: int = Field(
        2048,
        ge=64,
        description=(
            "What the data folder may take, in MiB: beyond it old back-ups and set-aside ledgers "
            "go, then the page says so."
        ),
    )
    drain_s: Seconds = Field(
        8, le=9, description="On SIGTERM, how long work that has begun may take to finish."
    )


class SecretSource(Section):
    """Where a secret comes from: exactly one of file, env, credential and vault."""

    file: Path | None = Field(
        None,
        strict=False,
        description="A file that holds the secret; a relative one counts from this file's folder.",
    )
    env: str | None = Field(
        None, min_length=1, description="The environment variable that holds the secret."
    )
    credential: str | None = Field(
        None,
        pattern=r"^[^/\\]+$",
        description="The systemd credential (LoadCredential=) that holds the secret.",
    )

    vault: Literal[True] | None = Field(
        None,
        description=(
            "true: the bridge keeps it itself, encrypted, since the page Set-up. Only for the "
            "client_secret."
        ),
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        sources = (self.file, self.env, self.credential, self.vault)
        if sum(source is not None for source in sources) != 1:
            msg = "give exactly one of file, env, credential and vault"
            raise ValueError(msg)
        return self


def _secret_kind(value: object) -> str:
    return "source" if isinstance(value, dict | SecretSource) else "text"


Secret = Annotated[
    Annotated[SecretStr, Field(min_length=1), Tag("text")] | Annotated[SecretSource, Tag("source")],
    Discriminator(_secret_kind),
]


class ServiceSettings(Section):
    """The table [service]."""

    base_url: HttpUrl = Field(
        description="The ordering service's versioned API root, with /v2 at its end."
    )
    client_id: str = Field(
        min_length=1, description="The app's client id, from the service's console."
    )
    client_secret: Secret = Field(
        description=(
            "The app's secret: { file = ... }, { env = ... }, { credential = ... }, "
            "{ vault = true } or text."
        ),
    )
    redirect_uri: HttpUrl = Field(
        "http://127.0.0.1:8089/oauth/callback",
        description=(
            "Where the service sends the merchant back after consent; registered with the service."
        ),
    )
    signup_auth: Literal["basic", "body"] = Field(
        "basic",
        description=(
            "How a signup tells the app: by id and secret (HTTP Basic), or by the id in the body."
        ),
    )
    timeout_s: Seconds = Field(15, description="How long one call to the service may take.")
    max_attempts: int = Field(
        5,
        ge=1,
        description=(
            "How often one call is tried when the service fails, before it waits for the next "
            "round."
        ),
    )
    backoff_first_s: Seconds = Field(
        0.5,
        description=(
            "Upper bound of the first wait after a failure of the service; it doubles, with "
            "full jitter."
        ),
    )
    backoff_cap_s: Seconds = Field(60, description="The longest wait between two tries.")
    job_poll_s: Seconds = Field(2, description="How often a menu sync job is asked for its state.")
    store_look_s: Seconds = Field(
        300,
        description=(
            "How often it is looked at whether somebody else has opened or closed a store; "
            "events tell sooner."
        ),
    )
    idle_read_s: Annotated[float, Field(ge=0)] = Field(
        55,
        description=(
            "After so long without a call a store's integration is read, so that a consent or an "
            "integration that ends meanwhile is noticed within a minute; 0 reads nothing."
        ),
    )
    late_report_s: Seconds = Field(
        900,
        description=(
            "How old an accept, preparing or ready may be that waited while the store was not "
            "integrated; what is older is not sent, and a person decides. Cancels are always sent."
        ),
    )
    refresh_early_s: Seconds = Field(
        60, description="Access tokens are refreshed this long before they expire."
    )
    integration_check_s: Seconds = Field(
        900, description="How often the store's integration is read and compared."
    )
    integration_changes: Literal["apply", "apply_safe", "tell"] = Field(
        "apply",
        description=(
            "What is done where it differs: apply everything, only what needs no new integration, "
            "or tell a person."
        ),
    )
    reintegrate_settle_s: Annotated[float, Field(ge=0)] = Field(
        75,
        description=(
            "How long after its start the bridge waits before it integrates anew by itself: what "
            "the service could not deliver meanwhile arrives first."
        ),
    )
    reintegrate_quiet_s: Annotated[float, Field(ge=0, le=60)] = Field(
        5,
        description=(
            "Before a new integration replaces one, the storefront is closed this long, so that "
            "no order falls between; 0 does not close it."
        ),
    )
    consent_warn_days: float = Field(
        2,
        ge=0,
        description="The page warns when the merchant's consent ends within this many days.",
    )


class ReceiverSettings(Section):
    """The table [receiver]."""

    listen: Listener = Field(
        "127.0.0.1:8088", description="Where webhooks are received; port 0 picks a free one."
    )
    public_url: HttpUrl = Field(
        description=(
            "The address under which the internet reaches the receiver; deliveries go to "
            "{public_url}/webhooks/{store}."
        ),
    )
    tls_cert: Path | None = Field(
        None,
        strict=False,
        description=(
            "PEM file of a certificate with its chain: the receiver then serves TLS itself. Taken "
            "up anew when it changes."
        ),
    )
    tls_key: Path | None = Field(
        None, strict=False, description="PEM file of the certificate's key, without a password."
    )
    max_body_bytes: int = Field(
        1_048_576, ge=1024, description="Larger deliveries are refused with 413."
    )
    max_connections: int = Field(
        256,
        ge=1,
        description=(
            "How many connections are served at once. One more takes the place of the one that "
            "matters least: a stranger's, idle for longest."
        ),
    )
    head_timeout_s: Seconds = Field(
        5, description="How long a sender may take for a request's head."
    )
    body_timeout_s: Seconds = Field(
        8, description="How long a sender may take for a request's body."
    )
    keepalive_s: Seconds = Field(30, description="How long an idle connection is kept open.")
    old_secret_s: Annotated[float, Field(ge=0)] = Field(
        86_400,
        description=(
            "How long deliveries signed with a webhook secret that was replaced are still taken."
        ),
    )


class PageUser(Section):
    """A table [status_page.users.NAME]."""

    role: Literal["look", "staff", "technician"] = Field(
        description=(
            "look sees everything; staff also acts on orders and items; technician does the rest."
        )
    )
    password: Secret = Field(
        description="The Argon2id hash that `tillbridge password` prints, or where it is kept."
    )


# Typed into a form, and written into the audit trail. (No \w and no {1,64}: pydantic's matcher
# makes megabytes of those.)
UserName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._@-]+$", max_length=64)]
HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]+$", max_length=253)]


class StatusPageSettings(Section):
    """The table [status_page]."""

    listen: Listener = Field(
        "127.0.0.1:8089",
        description="Where the page is served; another machine's reach needs users with passwords.",
    )
    allowed_hosts: list[HostName] = Field(
        default_factory=list,
        description=(
            "Further names the page answers to, without port: of this machine in the restaurant's "
            "network, or of a proxy before it."
        ),
    )
    users: dict[UserName, PageUser] = Field(
        default_factory=dict,
        description=(
            "Who may sign in: NAME = { role = ..., password = ... }; with one of them, nobody gets "
            "in without a password. See docs/page.md."
        ),
    )
    session_idle_s: Seconds = Field(
        14_400, description="Whoever does nothing for this long has to sign in again."
    )
    session_longest_s: Seconds = Field(
        57_600, description="Everybody has to sign in again after this long."
    )
    new_orders_sound: bool = Field(
        default=False,
        description=(
            "Whether the page Orders rings for new orders until somebody says to have seen them."
        ),
    )


class DiagnosticSettings(Section):
    """The table [diagnostics]."""

    probe_every_s: Annotated[float, Field(ge=0)] = Field(
        20,
        description=(
            "How often the public address is probed from outside in; 0 probes it only in doctor."
        ),
    )
    service_probe_every_s: Annotated[float, Field(ge=0)] = Field(
        20,
        description=(
            "How often the service is asked, without a credential, whether it answers and what "
            "time it is; 0 asks it only in doctor."
        ),
    )
    outside_probe_url: HttpUrl | None = Field(
        None,
        description=(
            "A prober outside this network, asked where the public address does not answer from "
            "inside; see docs/diagnostics.md."
        ),
    )


class AssumptionSettings(Section):
    """[assumptions] What the specification does not show; see docs/assumptions.md."""

    delivery_success_status: int = Field(
        200,
        ge=200,
        le=299,
        description="What the receiver answers for a delivery that is committed or already known.",
    )
    accept_body: dict[str, Any] = Field(
        default_factory=dict, description="Body of POST /pos/orders/{id}/accept."
    )
    status_body: dict[str, Any] = Field(
        default_factory=lambda: {"status": "{status}"},
        description='Body of POST /pos/orders/{id}/status; "{status}" stands for the state.',
    )
    preparing_status: str = Field(
        "preparing", description="What the status body calls the state preparing."
    )
    ready_body: dict[str, Any] = Field(
        default_factory=dict, description="Body of POST /pos/orders/{id}/ready."
    )
    background_threshold: int = Field(
        100,
        ge=1,
        description="About how many items make the service take a full push as a background job.",
    )
    end_of_day: Literal["24:00", "23:59", "00:00"] = Field(
        "24:00", description="How the end of a day is written in a store's availability."
    )
    batch_max_items: int = Field(
        1000, ge=1, description="The most items that are sent in one batch or availability call."
    )
    service_restores_snoozed: bool = Field(
        default=False,
        description=(
            "Whether the service ends a snooze by itself. If not, the bridge tells it when "
            "one ends (harmless either way)."
        ),
    )
    authorize_email: bool = Field(
        default=True,
        description=(
            "Whether the authorize URL carries the merchant's e-mail (notification_email)."
        ),
    )
    rotate_secret_field: str = Field(
        "",
        description=(
            'The field of PUT /pos/integrations/{store_id} that rotates the webhook secret; "" '
            "rotates it by a new integration."
        ),
    )
    community_audience: str = Field(
        "communities",
        min_length=1,
        description="The audience of app-level tokens for the community API.",
    )
    reporting_audience: str = Field(
        "reporting",
        description='The audience of app-level tokens for the reporting API; "" sends none.',
    )
    scope_field: str = Field(
        "scope",
        min_length=1,
        description="The field of the token request's body that asks for scopes.",
    )
    subscription_secret_field: str = Field(
        "secret",
        min_length=1,
        description="The field with the signing secret in the answer to a new subscription.",
    )
    override_hours_field: str = Field(
        "",
        description=(
            'The field for other hours in a community\'s dated override; "" puts them into '
            "the week that holds the date."
        ),
    )
