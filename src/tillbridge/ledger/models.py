"""The tables of the ledger and their rows: one SQLModel class each. Each change has a migration.

Instants (`*_at`, `*_ms`, `at`, `since`, `until`) are milliseconds since the epoch; money is minor
units. Every row carries its store (the local name of the configuration, "" for the bridge itself).
Where an attribute has another name than its column, the column's is that of released migrations.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any, Self

import xxhash
from sqlalchemy import (
    Column,
    Index,
    Integer,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from tillbridge.ledger.database import Enumerated, JsonText
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.model.restaurant import Table


class Row(SQLModel, registry=registry()):
    """The base of all rows. Its metadata holds the ledger's tables, and nobody else's."""

    def replace(self, **changes: object) -> Self:
        """Return a row of its own with these values; this one stays as it is."""
        return type(self)(**{**dict(self), **changes})


metadata = Row.metadata


# -- types of columns


TextKey = Annotated[str, Field(primary_key=True, sa_type=Text)]
TextColumn = Annotated[str, Field(sa_type=Text)]
TextOrNone = Annotated[str | None, Field(sa_type=Text)]
TextOrEmpty = Annotated[str, Field(sa_type=Text, sa_column_kwargs={"server_default": ""})]


def _json_object() -> Any:  # noqa: ANN401 -- a field's description, as `Field` itself returns it
    return Field(default_factory=dict, sa_type=JsonText, sa_column_kwargs={"server_default": "{}"})


# -- orders


class Delivery(Row, table=True):
    """A webhook delivery as received, committed before it is acknowledged.

    Specification: Events, Transport. `delivery_id` is "" where the sender gave none; `body` is the
    raw request body, emptied by pruning.
    """

    __tablename__ = "inbox"
    __table_args__ = (
        UniqueConstraint("store", "event_id", name="uq_inbox_event"),
        Index("ix_inbox_open", "id", sqlite_where=text("handled_at IS NULL")),
    )

    id: int = Field(default=None, primary_key=True)  # SQLite gives it
    store: TextColumn
    delivery_id: TextColumn
    event_id: TextColumn
    event_type: TextColumn
    received_at: int
    body: bytes = Field(repr=False)
    handled_at: int | None = None
    outcome: TextOrEmpty = ""


class TicketState(StrEnum):
    """How far an order's ticket is.

    A row that was once `writing` never goes back to `waiting`: the POS may have the ticket, and is
    asked before it is written again (invariant 2).
    """

    WAITING = "waiting"
    WRITING = "writing"  # begun, outcome unknown
    WRITTEN = "written"
    REFUSED = "refused"  # the POS does not have it, and never will
    WITHDRAWN = "withdrawn"  # it was taken back out of the POS, or is left to a person


class OrderRow(Row, table=True):
    """An order: how far its ticket is, what it shall be, and what it is for the service.

    `payload` is the event's data as JSON ("" once pruned); `last_failure` is "kind" or
    "kind: the POS's words"; `reason_code` and `message` belong to a cancel. `desired_state` is what
    the POS or a person wants the order to be, `service_state` what the service knows. `refused`
    holds the calls that the service refused for good, each with its words; `unseen` what a person
    has not seen yet, by problem code, each with `at` (ms) and the problem's fields. `closed_at`:
    nothing more is to be done.
    """

    __tablename__ = "orders"
    __table_args__ = (
        Index("ix_orders_open", "store", "received_at", sqlite_where=text("closed_at IS NULL")),
        Index("ix_orders_received", "received_at"),
        Index("ix_orders_told", "store", "service_state"),
        Index("ix_orders_number", "order_number"),
        Index("ix_orders_unseen", "store", sqlite_where=text("unseen <> '{}'")),
    )

    store: TextKey
    order_id: TextKey
    order_number: TextOrEmpty = ""
    payload: str = Field(repr=False, sa_type=Text)
    placed_at: int | None = None
    received_at: int
    ticket: TicketState = Field(
        default=TicketState.WAITING, sa_column=Column(Enumerated(TicketState), nullable=False)
    )
    ticket_reference: TextOrEmpty = ""
    written_at: int | None = None
    attempts: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    last_failure: TextOrEmpty = ""
    desired_state: OrderState = Field(
        sa_column=Column("wanted", Enumerated(OrderState), key="desired_state", nullable=False)
    )
    service_state: OrderState = Field(
        sa_column=Column("told", Enumerated(OrderState), key="service_state", nullable=False)
    )
    reason_code: ReasonCode | None = Field(
        default=None, sa_column=Column(Enumerated(ReasonCode), nullable=True)
    )
    message: TextOrEmpty = ""
    closed_at: int | None = None
    updated_at: int = 0
    refused: Mapping[str, Any] = _json_object()
    unseen: Mapping[str, Any] = _json_object()


class LogEntry(Row, table=True):
    """One thing that happened to an order, for people; `event` is a dotted name.

    `detail` holds none of a customer's data.
    """

    __tablename__ = "order_log"
    __table_args__ = (Index("ix_order_log_order", "store", "order_id", "id"),)

    id: int = Field(default=None, primary_key=True)  # SQLite gives it
    store: TextColumn
    order_id: TextColumn
    at: int
    event: TextColumn
    detail: Mapping[str, Any] = _json_object()


# -- the menu


class MenuItem(Row, table=True):
    """An item as the service has accepted it (`menu_codec` encodes and decodes `body`).

    `fingerprint` is that of the export's record it came from (64 bit, signed); `pos_available` what
    the export has, under any overlay; `overlaid`: an overlay lies over that.
    """

    __tablename__ = "menu_items"
    __table_args__ = (
        Index("ix_menu_items_fingerprint", "store", "fingerprint"),
        Index("ix_menu_items_overlaid", "store", sqlite_where=text("overlaid")),
    )

    store: TextKey
    external_id: TextKey
    body: TextColumn
    fingerprint: int | None = None
    pos_available: bool
    overlaid: bool = Field(default=False, sa_column_kwargs={"server_default": false()})


class MenuPart(Row, table=True):
    """A category, add-on, add-on group or menu (`kind`) that the service has accepted."""

    __tablename__ = "menu_parts"

    store: TextKey
    kind: TextKey
    external_id: TextKey
    body: TextColumn


class RefusedItem(Row, table=True):
    """An item the service refused, by the record: not sent again until that changes."""

    __tablename__ = "menu_refused"

    store: TextKey
    external_id: TextKey
    fingerprint: int
    reason: TextColumn
    at: int


class MenuPrice(Row, table=True):
    """A price the storefront showed from then on, of an item, a variant or an add-on."""

    __tablename__ = "menu_prices"

    store: TextKey
    external_id: TextKey
    from_ms: int = Field(primary_key=True)
    price: int


class PastItem(Row, table=True):
    """What the storefront showed of an item until then; an empty body: it had none."""

    __tablename__ = "menu_past"
    __table_args__ = (Index("ix_menu_past_until", "until_ms"),)

    store: TextKey
    external_id: TextKey
    until_ms: int = Field(primary_key=True)
    body: TextColumn


class Push(Row, table=True):
    """A push of the menu, under way (state "running") or over.

    `kind`: full | batch | patch | availability; `state`: running | success | partial | failed |
    lost. `pending` is JSON: what is acknowledged when the job at the service succeeds.
    """

    __tablename__ = "pushes"
    __table_args__ = (
        Index("ix_pushes_running", "store", sqlite_where=text("state = 'running'")),
        Index("ix_pushes_started", "started_at"),
    )

    id: int = Field(default=None, primary_key=True)  # SQLite gives it
    store: TextColumn
    kind: TextColumn
    started_at: int
    finished_at: int | None = None
    state: TextColumn
    summary: Mapping[str, Any] = _json_object()
    message: TextOrEmpty = ""
    job_id: TextOrNone = None
    poll_url: TextOrNone = None
    pending: str | None = Field(default=None, repr=False, sa_type=Text)


class Hold(Row, table=True):
    """A plan that waits for a person, at most one a store. `digest` names its content.

    `approved_digest` releases that very plan; `reasons` are sentences.
    """

    __tablename__ = "holds"

    store: TextKey
    digest: TextColumn
    since: int
    reasons: list[str] = Field(sa_type=JsonText)
    summary: Mapping[str, Any] = Field(sa_type=JsonText)
    approved_digest: TextOrNone = None

    @property
    def approved(self) -> bool:
        """Whether a person has released the plan."""
        return self.approved_digest == self.digest


class AcceptedTable(Row, table=True):
    """A table and what the service calls it; `qr_url` is what guests open."""

    __tablename__ = "tables"

    store: TextKey
    external_id: TextKey
    name: TextColumn
    seats: int | None = None
    zone: TextOrEmpty = ""
    table_id: TextOrEmpty = ""
    qr_token: str = Field(
        default="", repr=False, sa_type=Text, sa_column_kwargs={"server_default": ""}
    )
    qr_url: str = Field(
        default="", repr=False, sa_type=Text, sa_column_kwargs={"server_default": ""}
    )

    @classmethod
    def of(
        cls, table: Table, table_id: str = "", qr_token: str = "", qr_url: str = ""
    ) -> "AcceptedTable":
        """Return the table as accepted; its store is set when it is stored."""
        known = asdict(table)
        return cls(store="", table_id=table_id, qr_token=qr_token, qr_url=qr_url, **known)

    @property
    def table(self) -> Table:
        """The table as the POS has it."""
        return Table(self.external_id, self.name, self.seats, self.zone)

    @property
    def code(self) -> str:
        """A short digest of what guests scan, another one when that changes; "" for no code."""
        if not self.qr_url:
            return ""
        return xxhash.xxh3_64_hexdigest(
            f"{self.qr_token}\n{self.qr_url}".encode("utf-8", "surrogatepass")
        )


# -- overrides: what staff or the till say of an item's availability over what the export says


class StoreOverride(Row, table=True):
    """An item or variant that is off sale in a store until `until`, None: until it is lifted.

    `by` is who set it, "order" for the till itself. `sent_at` is since when the storefront has it,
    None while it does not; no later than `at` where the item was off sale already.
    """

    __tablename__ = "overrides"

    store: TextKey
    external_id: TextKey
    until: int | None = None
    by: TextColumn
    at: int
    sent_at: int | None = Field(default=None, sa_column=Column("told_at", Integer, key="sent_at"))

    @property
    def available(self) -> bool:
        """Whether the item is on sale: an override of a store only takes off."""
        return False


class CommunityOverride(Row, table=True):
    """An item of a community that is off sale, or on sale again and the service is to know it.

    As `StoreOverride`; `store` is the community's key. The service restores the item at `until`.
    """

    __tablename__ = "community_words"

    store: str = Field(sa_column=Column("community", Text, key="store", primary_key=True))
    external_id: str = Field(sa_column=Column("item_id", Text, key="external_id", primary_key=True))
    available: bool
    until: int | None = None
    by: TextColumn
    at: int
    sent_at: int | None = Field(default=None, sa_column=Column("told_at", Integer, key="sent_at"))


# -- communities; `community` is "communities/NAME", which stands where a store's name may


class CommunityRecord(Row, table=True):
    """A store, category or item (`kind`) of a community, as the service has it."""

    __tablename__ = "community_records"

    community: TextKey
    kind: TextKey
    record_id: TextKey
    store_id: TextOrEmpty = ""
    name: TextOrEmpty = ""
    body: Mapping[str, Any] = Field(sa_type=JsonText)


class CommunityOrder(Row, table=True):
    """A parent order of a community; `payload` is JSON, "" once pruned.

    `updated_at` is the service's; `received_at` when it was first heard of here.
    """

    __tablename__ = "community_orders"
    __table_args__ = (Index("ix_community_orders_received", "community", "received_at"),)

    community: TextKey
    order_id: TextKey
    order_number: TextOrEmpty = ""
    status: TextColumn
    updated_at: int | None = None
    payload: str = Field(repr=False, sa_type=Text)
    received_at: int
    changed_at: int


class CommunityChild(Row, table=True):
    """A child order; `order_id` is that of a POS order, of a store here or of another member."""

    __tablename__ = "community_children"
    __table_args__ = (
        Index("ix_community_children_parent", "community", "parent_id"),
        Index("ix_community_children_order", "order_id"),
    )

    community: TextKey
    order_id: TextKey
    parent_id: TextColumn
    store_id: TextOrEmpty = ""
    store_name: TextOrEmpty = ""
    status: TextOrEmpty = ""
    subtotal: int | None = None


# -- the bridge


class Fact(Row, table=True):
    """A small fact of a store, a JSON value: service store id, integration, pause, ..."""

    __tablename__ = "facts"

    store: TextKey
    name: TextKey
    value: TextColumn
    at: int


class ProblemRow(Row, table=True):
    """An open problem: `subject` tells two of a kind apart, `detail` has the fields of its text."""

    __tablename__ = "problems"

    code: TextKey
    store: TextKey
    subject: str = Field(
        default="", primary_key=True, sa_type=Text, sa_column_kwargs={"server_default": ""}
    )
    since: int
    detail: Mapping[str, Any] = _json_object()


class PastProblem(Row, table=True):
    """A problem that was open from `since` to `until`."""

    __tablename__ = "problem_history"
    __table_args__ = (Index("ix_problem_history_until", "until"),)

    id: int = Field(default=None, primary_key=True)  # SQLite gives it
    code: TextColumn
    store: TextOrEmpty = ""
    subject: TextOrEmpty = ""
    since: int
    until: int


class AuditEntry(Row, table=True):
    """Who did what: an entry of a chain by hash. Nothing is ever changed or removed here.

    `who` is "page:NAME", "command:OS USER" or "bridge"; `target` an id (order, item, table);
    `detail` canonical JSON without a customer's data or a secret; `previous` the hash it follows.
    """

    __tablename__ = "audit"

    id: int = Field(default=None, primary_key=True)  # SQLite gives it
    at: int
    who: TextColumn
    role: TextOrEmpty = ""
    action: TextColumn
    store: TextOrEmpty = ""
    target: TextOrEmpty = ""
    detail: str = Field(default="{}", sa_type=Text, sa_column_kwargs={"server_default": "{}"})
    previous: TextColumn
    hash: TextColumn

    @property
    def details(self) -> Mapping[str, Any]:
        """The detail as values."""
        try:
            values: Mapping[str, Any] = json.loads(self.detail)
        except ValueError:
            values = {"unreadable": True}  # then the hash does not fit either
        return values
