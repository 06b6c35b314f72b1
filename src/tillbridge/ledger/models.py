"""The tables of the ledger and their rows: one SQLModel class each. Each change has a migration.

Instants (`*_at`, `*_ms`, `at`, `since`, `until`) are milliseconds since the epoch; money is minor
units. Every row carries its store (the local name of the configuration, "" for the bridge itself).
Where an attribute has another name than its column, the column's is that of released migrations.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import xxhash
from sqlalchemy import Column, Index, Integer, Text, UniqueConstraint, false, text
from sqlmodel import Field

from tillbridge.ledger.database import Enumerated, JsonText, Row
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.model.restaurant import Table

metadata = Row.metadata


def _index_where(condition: str, name: str, *columns: str) -> Index:
    where = text(condition)
    return Index(name, *columns, sqlite_where=where, postgresql_where=where)


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

    Specification: Events, Transport. `delivery_id` is "" if the sender gave none; `body` is the raw
    request body, emptied by pruning.
    """

    __tablename__ = "inbox"
    __table_args__ = (
        UniqueConstraint("store", "event_id", name="uq_inbox_event"),
        _index_where("handled_at IS NULL", "ix_inbox_open", "id"),
    )

    id: int = Field(default=None, primary_key=True)  # assigned by the database
    store: TextColumn
    delivery_id: TextColumn
    event_id: TextColumn
    event_type: TextColumn
    received_at: int
    body: bytes = Field(repr=False)
    handled_at: int | None = None
    outcome: TextOrEmpty = ""


class NewDelivery(NamedTuple):
    """The columns of a delivery that has just arrived."""

    store: str
    delivery_id: str
    event_id: str
    event_type: str
    received_at: int
    body: bytes


class TicketState(StrEnum):
    """The state of an order's ticket.

    A row that was once `writing` never returns to `waiting`: the POS may have the ticket, and is
    asked before it is written again (invariant 2).
    """

    WAITING = "waiting"
    WRITING = "writing"  # started, outcome unknown
    WRITTEN = "written"
    REFUSED = "refused"  # the POS does not have it, and will not get it
    WITHDRAWN = "withdrawn"  # it was removed from the POS, or a person has to remove it


class OrderRow(Row, table=True):
    """An order: the state of its ticket, its desired state, and its state at the service.

    `payload` is the event's data as JSON ("" once pruned); `last_failure` is "kind" or "kind: the
    POS's words"; `reason_code` and `message` belong to a cancel. `desired_state` is what the POS or
    a person wants the order to be, `service_state` what the service knows. `refused` has the calls
    that the service refused for good, each with the reason; `unseen` what no person has seen yet,
    by problem code, each with `at` (ms) and the problem's fields. `closed_at`: nothing is left to
    do.
    """

    __tablename__ = "orders"
    __table_args__ = (
        _index_where("closed_at IS NULL", "ix_orders_open", "store", "received_at"),
        Index("ix_orders_received", "received_at"),
        Index("ix_orders_told", "store", "service_state"),
        Index("ix_orders_number", "order_number"),
        _index_where("unseen <> '{}'", "ix_orders_unseen", "store"),
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
    """An event in an order's life, for people; `event` is a dotted name.

    `detail` contains no customer data.
    """

    __tablename__ = "order_log"
    __table_args__ = (Index("ix_order_log_order", "store", "order_id", "id"),)

    id: int = Field(default=None, primary_key=True)  # assigned by the database
    store: TextColumn
    order_id: TextColumn
    at: int
    event: TextColumn
    detail: Mapping[str, Any] = _json_object()


# -- the menu


class MenuItem(Row, table=True):
    """An item as the service has accepted it (`menu_codec` encodes and decodes `body`).

    `fingerprint` is that of the export record (64 bit, signed); `pos_available` is the export's
    value, under any overlay; `overlaid`: there is an overlay.
    """

    __tablename__ = "menu_items"
    __table_args__ = (
        Index("ix_menu_items_fingerprint", "store", "fingerprint"),
        _index_where("overlaid", "ix_menu_items_overlaid", "store"),
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
    """An item that the service refused, by record: not sent again until the record changes."""

    __tablename__ = "menu_refused"

    store: TextKey
    external_id: TextKey
    fingerprint: int
    reason: TextColumn
    at: int


class MenuPrice(Row, table=True):
    """A price that the storefront showed from then on, of an item, a variant or an add-on."""

    __tablename__ = "menu_prices"

    store: TextKey
    external_id: TextKey
    from_ms: int = Field(primary_key=True)
    price: int


class PastItem(Row, table=True):
    """An item as the storefront showed it until then; an empty body: it did not have the item."""

    __tablename__ = "menu_past"
    __table_args__ = (Index("ix_menu_past_until", "until_ms"),)

    store: TextKey
    external_id: TextKey
    until_ms: int = Field(primary_key=True)
    body: TextColumn


class Push(Row, table=True):
    """A push of the menu, running or finished.

    `kind`: full | batch | patch | availability; `state`: running | success | partial | failed |
    lost. `pending` is JSON: what to acknowledge when the job at the service succeeds.
    """

    __tablename__ = "pushes"
    __table_args__ = (
        _index_where("state = 'running'", "ix_pushes_running", "store"),
        Index("ix_pushes_started", "started_at"),
    )

    id: int = Field(default=None, primary_key=True)  # assigned by the database
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
    """A plan that waits for a person, at most one for each store. `digest` identifies its content.

    `approved_digest` approves exactly that plan; `reasons` are sentences.
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
        """Whether a person has approved the plan."""
        return self.approved_digest == self.digest


class AcceptedTable(Row, table=True):
    """A table and its token at the service; `qr_url` is what guests open."""

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
        """A short digest of the code that guests scan; changes with it. "" without a code."""
        if not self.qr_url:
            return ""
        return xxhash.xxh3_64_hexdigest(
            f"{self.qr_token}\n{self.qr_url}".encode("utf-8", "surrogatepass")
        )


# -- overrides: availability set by staff or the till, on top of the export


class StoreOverride(Row, table=True):
    """An item or variant that is off sale in a store until `until`; None: until it is lifted.

    `by` is who set it, "order" for the till itself. `sent_at` is since when the storefront has it,
    None while it does not; no later than `at` if the item was already off sale.
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
        """Whether the item is on sale: an override of a store only takes items off."""
        return False


class CommunityOverride(Row, table=True):
    """An item of a community that is off sale, or back on sale and not reported yet.

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


# -- communities; `community` is "communities/NAME", used where a store's name may be


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

    `updated_at` is the service's time; `received_at` is when the bridge first received it.
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
    """A child order; `order_id` is the id of a POS order, of a store here or of another member."""

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

    id: int = Field(default=None, primary_key=True)  # assigned by the database
    code: TextColumn
    store: TextOrEmpty = ""
    subject: TextOrEmpty = ""
    since: int
    until: int


class AuditEntry(Row, table=True):
    """Who did what: an entry of a hash chain. Entries are never changed or removed.

    `who` is "page:NAME", "command:OS USER" or "bridge"; `target` an id (order, item, table);
    `detail` canonical JSON without customer data or secrets; `previous` the preceding hash.
    """

    __tablename__ = "audit"

    id: int = Field(default=None, primary_key=True)  # assigned by the database
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
        """The parsed detail."""
        try:
            values: Mapping[str, Any] = json.loads(self.detail)
        except ValueError:
            values = {"unreadable": True}  # the hash will not fit either
        return values


# -- several bridges on one ledger; a ledger of one bridge has no such rows


class BridgeRow(Row, table=True):
    """A bridge that uses this ledger.

    `holder` is the id of its present run; `seen_at` (ms) is the database's time, not the bridge's.
    `url` is where it serves its page and API to the others, "" for nowhere.
    """

    __tablename__ = "bridges"

    name: TextKey
    holder: TextColumn
    url: TextOrEmpty = ""
    version: TextOrEmpty = ""
    started_at: int
    seen_at: int
    detail: Mapping[str, Any] = _json_object()


class Lease(Row, table=True):
    """Which run of a bridge serves a store (or a community), "" for none.

    `token` grows by one at each change of hands; `since` (ms) is the last one. `pinned` names the
    bridge that alone may serve it, "" for any.
    """

    __tablename__ = "leases"

    store: TextKey
    holder: TextOrEmpty = ""
    token: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    since: int
    pinned: TextOrEmpty = ""


class BridgeRequest(Row, table=True):
    """An operation that one bridge asks of the run `holder`; it is answered once `done_at` is set.

    `answer` or `failure` is JSON; a row is removed when it was read, or is old.
    """

    __tablename__ = "requests"

    id: TextKey
    holder: TextColumn
    name: TextColumn
    arguments: Mapping[str, Any] = _json_object()
    actor: Mapping[str, Any] = _json_object()
    at: int
    answer: Any = Field(default=None, sa_type=JsonText, nullable=True)
    failure: Any = Field(default=None, sa_type=JsonText, nullable=True)
    done_at: int | None = None


class SecretRow(Row, table=True):
    """A secret of all bridges on this ledger, encrypted with their key (a Fernet token)."""

    __tablename__ = "secrets"

    name: TextKey
    value: str = Field(repr=False, sa_type=Text)
    changed_at: int
