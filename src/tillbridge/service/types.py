"""What the service says, as frozen values. Specification: Resources and their fields.

Instants are milliseconds since the epoch. What the service left out is None. A secret never
shows in a `repr`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tillbridge.service.fields import Fields

StoreStatus = Literal["active", "inactive"]

REFRESH_TOKEN_LIFETIME_MS = 7 * 24 * 3600 * 1000  # specification: Limits


@dataclass(frozen=True, slots=True)
class Integration:
    """A store's integration with this app. Specification: Integration."""

    store_id: str | None
    integration_id: str | None = None
    webhook_url: str | None = None
    menu_sync_direction: str | None = None
    auto_accept_orders: bool | None = None
    external_store_id: str | None = None
    notification_email: str | None = None
    status: str | None = None
    connected_at: int | None = None


@dataclass(frozen=True, slots=True)
class IntegrationWithSecret:
    """The answer of integrate-store: the only time the webhook secret is shown."""

    integration: Integration
    webhook_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class RotatedSecret:
    """The answer to a rotation; the specification lets no answer but integrate-store's show one."""

    integration: Integration
    webhook_secret: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class IntegrationRequest:
    """What is asked for when a store is integrated; without an e-mail the field is left out."""

    webhook_url: str
    menu_sync_direction: str
    external_store_id: str
    auto_accept_orders: bool
    notification_email: str | None = None

    def body(self) -> dict[str, Any]:
        """Return the body of POST /pos/integrate-store/{store_id}."""
        body: dict[str, Any] = {
            "webhook_url": self.webhook_url,
            "menu_sync_direction": self.menu_sync_direction,
            "external_store_id": self.external_store_id,
            "auto_accept_orders": self.auto_accept_orders,
        }
        if self.notification_email is not None:
            body["notification_email"] = self.notification_email
        return body


@dataclass(frozen=True, slots=True)
class Store:
    """A store of the merchant. Specification: Store."""

    store_id: str
    name: str | None = None
    description: str | None = None
    status: str | None = None
    integration_status: str | None = None
    integration: Integration | None = None


@dataclass(frozen=True, slots=True)
class TaxComponent:
    """A part of a tax; `rate` is percent as decimal text, never a float."""

    agency: str | None
    rate: str | None
    compound: bool | None


@dataclass(frozen=True, slots=True)
class Tax:
    """One tax of the store's configuration."""

    tax_id: str | None
    name: str | None
    components: tuple[TaxComponent, ...] = ()


@dataclass(frozen=True, slots=True)
class TaxConfig:
    """How the store taxes. Specification: Tax configuration (read-only)."""

    enabled: bool | None
    tax_level: str | None
    pricing_mode: str | None
    default_tax_id: str | None
    taxes: tuple[Tax, ...] = ()


@dataclass(frozen=True, slots=True)
class PushCounts:
    """How many of each kind the service took; None where it did not say."""

    menus: int | None = None
    categories: int | None = None
    items: int | None = None
    add_ons: int | None = None
    addon_groups: int | None = None


@dataclass(frozen=True, slots=True)
class PushDone:
    """A full push that was answered at once. `status` is success or partial.

    `settled_by` is "answer", or "status" where the answer was lost and the sync status showed
    that the push had been applied (then counts and a possible `partial` are not known).
    """

    status: str
    message: str = ""
    counts: PushCounts = PushCounts()
    settled_by: Literal["answer", "status"] = "answer"


@dataclass(frozen=True, slots=True)
class PushAccepted:
    """A full push that runs as a background job.

    `synced_before` is `last_synced_at` as it was before the push (ms), None where it was not told.
    """

    job_id: str
    poll_url: str
    message: str = ""
    synced_before: int | None = None


PushAnswer = PushAccepted | PushDone


@dataclass(frozen=True, slots=True)
class MenuJob:
    """A background push. Specification: Menu sync job; `message` is what a failed one says."""

    job_id: str
    status: str
    message: str = ""
    menus: int | None = None
    items: int | None = None
    counts: PushCounts = PushCounts()
    created_at: int | None = None
    updated_at: int | None = None

    @property
    def ended(self) -> bool:
        """Whether the status is terminal; what is neither success nor failed still runs."""
        return self.status in {"success", "failed"}


@dataclass(frozen=True, slots=True)
class MenuStatus:
    """Specification: Menu sync status. `last_synced_at` None: never synced, or not told."""

    menu_sync_direction: str | None = None
    integration_status: str | None = None
    last_synced_at: int | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The answer to a batch menu operation."""

    status: str
    message: str = ""
    added: int | None = None
    updated: int | None = None
    deleted: int | None = None


@dataclass(frozen=True, slots=True)
class AvailabilityResult:
    """The answer to a batch availability call; `not_found` are external ids it does not know."""

    status: str
    message: str = ""
    updated: int | None = None
    not_found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PatchResult:
    """The answer to a change of one item."""

    status: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class TableQr:
    """A table as the service knows it; `qr_url` is what a guest opens."""

    external_id: str
    table_id: str
    qr_token: str
    qr_url: str


def parse_integration(body: object, operation: str) -> Integration:
    """Return the integration in an answer; raises Refused where it is no object."""
    return _integration(Fields(body, operation))


def _integration(fields: Fields) -> Integration:
    return Integration(
        store_id=fields.text("store_id"),
        integration_id=fields.text("integration_id"),
        webhook_url=fields.text("webhook_url"),
        menu_sync_direction=fields.text("menu_sync_direction"),
        auto_accept_orders=fields.flag("auto_accept_orders"),
        external_store_id=fields.text("external_store_id"),
        notification_email=fields.text("notification_email"),
        status=fields.text("status"),
        connected_at=fields.instant("connected_at"),
    )


def parse_integration_with_secret(body: object, operation: str) -> IntegrationWithSecret:
    """Return the answer of integrate-store; raises Refused where the secret is missing."""
    fields = Fields(body, operation)
    return IntegrationWithSecret(_integration(fields), fields.need_text("webhook_secret"))


def parse_rotated(body: object, operation: str) -> RotatedSecret:
    """Return the answer of an update that rotated the secret, which it may show or not."""
    fields = Fields(body, operation)
    return RotatedSecret(_integration(fields), fields.text("webhook_secret") or None)


def parse_store(fields: Fields) -> Store:
    """Return one store of GET /pos/stores."""
    integration = fields.child("integration")
    return Store(
        store_id=fields.need_text("store_id"),
        name=fields.text("name"),
        description=fields.text("description"),
        status=fields.text("status"),
        integration_status=fields.text("integration_status"),
        integration=_integration(integration) if integration else None,
    )


def parse_tax_config(body: object, operation: str) -> TaxConfig:
    """Return the store's tax configuration."""
    fields = Fields(body, operation)
    return TaxConfig(
        enabled=fields.flag("enabled"),
        tax_level=fields.text("tax_level"),
        pricing_mode=fields.text("pricing_mode"),
        default_tax_id=fields.text("default_tax_id"),
        taxes=tuple(
            Tax(
                tax_id=tax.text("tax_id"),
                name=tax.text("name"),
                components=tuple(
                    TaxComponent(part.text("agency"), part.decimal("rate"), part.flag("compound"))
                    for part in tax.children("components")
                ),
            )
            for tax in fields.children("taxes")
        ),
    )


def parse_push(body: object, *, status: int, operation: str) -> PushAnswer:
    """Return the answer to a full push: done (200), or accepted as a job (202)."""
    fields = Fields(body, operation)
    said = fields.text("status") or ""
    message = fields.text("message") or ""
    if status == 202 or said == "accepted":
        return PushAccepted(fields.need_text("job_id"), fields.text("poll_url") or "", message)
    return PushDone(said or "success", message, _counts(fields.child("data")))


def parse_job(body: object, operation: str) -> MenuJob:
    """Return the state of a background push."""
    fields = Fields(body, operation)
    result = fields.child("result")
    return MenuJob(
        job_id=fields.text("job_id") or "",
        status=fields.need_text("status"),
        message=_job_message(fields, result),
        menus=fields.count("menus"),
        items=fields.count("items"),
        counts=_counts(result),
        created_at=fields.instant("created_at"),
        updated_at=fields.instant("updated_at"),
    )


def _job_message(fields: Fields, result: Fields | None) -> str:
    # Where a failed job reports its error is not shown: the likely places are looked at.
    for place in (fields, result):
        if place is None:
            continue
        error = place.child("error")
        told = (error.text("message") if error else place.text("error")) or place.text("message")
        if told:
            return told
    return ""


def _counts(fields: Fields | None) -> PushCounts:
    if fields is None:
        return PushCounts()
    return PushCounts(
        menus=fields.count("menus"),
        categories=fields.count("categories"),
        items=fields.count("items"),
        add_ons=fields.count("add_ons"),
        addon_groups=fields.count("addon_groups"),
    )


def parse_menu_status(body: object, operation: str) -> MenuStatus:
    """Return the menu sync status."""
    fields = Fields(body, operation)
    return MenuStatus(
        menu_sync_direction=fields.text("menu_sync_direction"),
        integration_status=fields.text("integration_status"),
        last_synced_at=fields.instant("last_synced_at"),
    )


def parse_batch(body: object, operation: str) -> BatchResult:
    """Return the answer to a batch menu operation."""
    fields = Fields(body, operation)
    return BatchResult(
        status=fields.text("status") or "success",
        message=fields.text("message") or "",
        added=fields.count("added"),
        updated=fields.count("updated"),
        deleted=fields.count("deleted"),
    )


def parse_availability(body: object, operation: str) -> AvailabilityResult:
    """Return the answer to a batch availability call."""
    fields = Fields(body, operation)
    return AvailabilityResult(
        status=fields.text("status") or "success",
        message=fields.text("message") or "",
        updated=fields.count("updated"),
        not_found=fields.texts("not_found"),
    )


def parse_patch(body: object, operation: str) -> PatchResult:
    """Return the answer to a change of one item."""
    fields = Fields(body, operation)
    return PatchResult(fields.text("status") or "success", fields.text("message") or "")


def parse_tables(body: object, operation: str) -> list[TableQr]:
    """Return the tables with their QR codes; one without an external id is ignored."""
    return [
        TableQr(
            external_id=external_id,
            table_id=table.text("table_id") or "",
            qr_token=table.text("qr_token") or "",
            qr_url=table.text("qr_url") or "",
        )
        for table in Fields(body, operation).children("tables")
        if (external_id := table.text("external_id"))
    ]


@dataclass(frozen=True, slots=True)
class Tokens:
    """A merchant's consent in force. Specification: Authentication, rule 4.

    `consented_at_ms` is when the refresh token was issued; `access_expires_at_ms` is by the wall
    clock and only used when the program starts (while it runs, age is monotonic).
    """

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    access_expires_at_ms: int
    consented_at_ms: int
    scope: str = ""

    @property
    def consent_expires_at_ms(self) -> int:
        """When the refresh token ends, and with it the consent."""
        return self.consented_at_ms + REFRESH_TOKEN_LIFETIME_MS

    def to_record(self) -> Mapping[str, Any]:
        """Return the JSON value that is kept (encrypted) for them."""
        return {
            "access_token": self.access_token,
            "refresh_token": self.refresh_token,
            "access_expires_at_ms": self.access_expires_at_ms,
            "consented_at_ms": self.consented_at_ms,
            "scope": self.scope,
        }

    @classmethod
    def from_record(cls, record: object) -> "Tokens":
        """Return the tokens of `to_record`; raises Refused for anything else."""
        fields = Fields(record, "tokens.load")
        return cls(
            access_token=fields.text("access_token") or "",
            refresh_token=fields.need_text("refresh_token"),
            access_expires_at_ms=fields.count("access_expires_at_ms") or 0,
            consented_at_ms=fields.count("consented_at_ms") or 0,
            scope=fields.text("scope") or "",
        )
