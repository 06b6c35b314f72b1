"""The service's answers as frozen values. Specification: Resources and their fields.

Instants are milliseconds since the epoch. Fields that the service left out are None. Secrets never
appear in a `repr`.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from tillbridge.core.errors import Refused
from tillbridge.core.i18n import _
from tillbridge.model.lenient import (
    AnObject,
    Count,
    DecimalText,
    Flag,
    Instant,
    Needed,
    Objects,
    Status,
    Text,
    TextOrEmpty,
    Texts,
    an_object,
    count,
    objects,
    text,
)

StoreStatus = Literal["active", "inactive"]
T = TypeVar("T")

REFRESH_TOKEN_LIFETIME_MS = 7 * 24 * 3600 * 1000  # specification: Limits
UNREADABLE = "answer.unreadable"


def unreadable(operation: str, detail: str) -> Refused:
    """Return the failure for an answer without a field that the bridge needs."""
    text = _("The ordering service's answer to {operation} cannot be read: {detail}")
    return Refused(
        text.format(operation=operation, detail=detail),
        code=UNREADABLE,
        operation=operation,
        fix=_(
            "Check that base_url is the ordering service's address. If it is, tell the service's "
            "support."
        ),
    )


def mapping(body: object, operation: str) -> Mapping[str, Any]:
    """Return an answer that has to be an object. Raises Refused (`answer.unreadable`)."""
    if not isinstance(body, Mapping):
        raise unreadable(operation, _("it is not an object"))
    return body


def need(body: Mapping[str, Any], name: str, operation: str) -> str:
    """Return a required text field. Raises as `mapping` does."""
    if not (found := text(body.get(name))):
        raise unreadable(operation, _("it has no {field}").format(field=name))
    return found


# Created with the first such answer.
_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)


def read(kind: type[T], body: object, operation: str) -> T:
    """Return the answer as a value of this type. Raises as `mapping` does."""
    try:
        value: T = _adapter(kind).validate_python(mapping(body, operation))
    except ValidationError as invalid:
        place = invalid.errors(include_url=False, include_input=False)[0]["loc"]
        name = next((each for each in reversed(place) if isinstance(each, str)), "?")
        raise unreadable(operation, _("it has no {field}").format(field=name)) from None
    return value


# -- the values


@dataclass(frozen=True, slots=True)
class Integration:
    """A store's integration with this app. Specification: Integration."""

    store_id: Text = None
    integration_id: Text = None
    webhook_url: Text = None
    menu_sync_direction: Text = None
    auto_accept_orders: Flag = None
    external_store_id: Text = None
    notification_email: Text = None
    status: Text = None
    connected_at: Instant = None


@dataclass(frozen=True, slots=True)
class IntegrationWithSecret:
    """An answer with the webhook secret, returned only once: that of integrate-store.

    The answer to a rotation may have one too, which the specification does not say; otherwise "".
    """

    integration: Integration
    webhook_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class IntegrationRequest:
    """The wanted integration of a store; without an e-mail the field is left out."""

    webhook_url: str
    menu_sync_direction: str
    auto_accept_orders: bool
    external_store_id: str
    notification_email: str | None = None

    def body(self) -> dict[str, Any]:
        """Return the body of POST /pos/integrate-store/{store_id}."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Store:
    """A store of the merchant. Specification: Store."""

    store_id: Needed
    name: Text = None
    description: Text = None
    status: Text = None
    integration_status: Text = None
    integration: Annotated[Integration | None, AnObject] = None


@dataclass(frozen=True, slots=True)
class TaxComponent:
    """A part of a tax; `rate` is percent as decimal text, never a float."""

    agency: Text = None
    rate: DecimalText = None
    compound: Flag = None


@dataclass(frozen=True, slots=True)
class Tax:
    """One tax of the store's configuration."""

    tax_id: Text = None
    name: Text = None
    components: Annotated[tuple[TaxComponent, ...], Objects] = ()


@dataclass(frozen=True, slots=True)
class TaxConfig:
    """How the store is taxed. Specification: Tax configuration (read-only)."""

    enabled: Flag = None
    tax_level: Text = None
    pricing_mode: Text = None
    default_tax_id: Text = None
    taxes: Annotated[tuple[Tax, ...], Objects] = ()


@dataclass(frozen=True, slots=True)
class PushCounts:
    """How many of each kind the service accepted; None if it did not say."""

    menus: Count = None
    categories: Count = None
    items: Count = None
    add_ons: Count = None
    addon_groups: Count = None


Counts = Annotated[PushCounts, BeforeValidator(lambda value: an_object(value) or {})]


@dataclass(frozen=True, slots=True)
class PushDone:
    """A full push that was answered immediately. `status` is success or partial.

    `settled_by` is "answer", or "status" if the answer was lost and the sync status showed that the
    push had been applied (then the counts and whether it was `partial` are unknown).
    """

    status: Status
    message: TextOrEmpty = ""
    counts: Counts = PushCounts()
    settled_by: Literal["answer", "status"] = "answer"


@dataclass(frozen=True, slots=True)
class PushAccepted:
    """A full push that runs as a background job.

    `synced_before` is `last_synced_at` before the push (ms), or None.
    """

    job_id: Needed
    poll_url: TextOrEmpty = ""
    message: TextOrEmpty = ""
    synced_before: int | None = None


PushAnswer = PushAccepted | PushDone


@dataclass(frozen=True, slots=True)
class MenuJob:
    """A background push. Specification: Menu sync job; `message` explains a failure."""

    job_id: TextOrEmpty
    status: Needed
    message: TextOrEmpty = ""
    menus: Count = None
    items: Count = None
    counts: Counts = PushCounts()
    created_at: Instant = None
    updated_at: Instant = None

    @property
    def ended(self) -> bool:
        """Whether the status is final; anything but success and failed is still running."""
        return self.status in {"success", "failed"}


@dataclass(frozen=True, slots=True)
class MenuStatus:
    """Specification: Menu sync status. `last_synced_at` None: never synced, or not given."""

    menu_sync_direction: Text = None
    integration_status: Text = None
    last_synced_at: Instant = None


@dataclass(frozen=True, slots=True)
class PatchResult:
    """The answer to a change of one item."""

    status: Status = "success"
    message: TextOrEmpty = ""


@dataclass(frozen=True, slots=True)
class BatchResult(PatchResult):
    """The answer to a batch menu operation."""

    added: Count = None
    updated: Count = None
    deleted: Count = None


@dataclass(frozen=True, slots=True)
class AvailabilityResult(PatchResult):
    """The answer to a batch availability call; `not_found` are unknown external ids."""

    updated: Count = None
    not_found: Texts = ()


@dataclass(frozen=True, slots=True)
class TableQr:
    """A table as the service knows it; `qr_url` is what a guest opens."""

    external_id: Needed
    table_id: TextOrEmpty = ""
    qr_token: TextOrEmpty = ""
    qr_url: TextOrEmpty = ""


def read_push(body: object, *, status: int, operation: str) -> PushAnswer:
    """Return the answer to a full push: done (200), or accepted as a job (202)."""
    answer = mapping(body, operation)
    if status == 202 or answer.get("status") == "accepted":
        return read(PushAccepted, {**answer, "synced_before": None}, operation)
    fields = {"status": None, **answer, "counts": answer.get("data"), "settled_by": "answer"}
    return read(PushDone, fields, operation)


def read_job(body: object, operation: str) -> MenuJob:
    """Return the state of a background push."""
    job = mapping(body, operation)
    fields = {"job_id": "", **job, "message": _job_message(job), "counts": job.get("result")}
    return read(MenuJob, fields, operation)


def _job_message(job: Mapping[str, Any]) -> str:
    # Where a failed job reports its error is not shown: the likely places are searched.
    for place in (job, an_object(job.get("result")) or {}):
        error = place.get("error")
        inner = error.get("message") if isinstance(error, Mapping) else error
        if message := text(inner) or text(place.get("message")):
            return message
    return ""


def read_tables(body: object, operation: str) -> list[TableQr]:
    """Return the tables with their QR codes; one without an external id is ignored."""
    return [
        read(TableQr, each, operation)
        for each in objects(mapping(body, operation).get("tables"))
        if text(each.get("external_id"))
    ]


@dataclass(frozen=True, slots=True)
class Tokens:
    """A merchant's current consent. Specification: Authentication, rule 4.

    `consented_at_ms` is when the refresh token was issued; `access_expires_at_ms` is by the wall
    clock and only used when the program starts (while it runs, age is monotonic).
    """

    access_token: TextOrEmpty = field(repr=False)
    refresh_token: Needed = field(repr=False)
    access_expires_at_ms: Annotated[int, BeforeValidator(lambda value: count(value) or 0)]
    consented_at_ms: Annotated[int, BeforeValidator(lambda value: count(value) or 0)]
    scope: TextOrEmpty = ""

    @property
    def consent_expires_at_ms(self) -> int:
        """When the refresh token expires, and the consent with it."""
        return self.consented_at_ms + REFRESH_TOKEN_LIFETIME_MS
