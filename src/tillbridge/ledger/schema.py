"""The tables of the ledger, as SQLAlchemy Core. Each change of them has a migration.

Instants (`*_at`, `*_ms`) are milliseconds since the epoch; money is minor units. Every row
carries its store (the local name of the configuration).
"""

from sqlalchemy import (
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

metadata = MetaData()

# Every webhook delivery, committed before it is acknowledged. `body` is emptied by pruning.
inbox = Table(
    "inbox",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("store", Text, nullable=False),
    Column("delivery_id", Text, nullable=False),
    Column("event_id", Text, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("received_at", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("handled_at", Integer),
    Column("outcome", Text, nullable=False, server_default=""),
    UniqueConstraint("store", "event_id", name="uq_inbox_event"),
    Index("ix_inbox_open", "id", sqlite_where=text("handled_at IS NULL")),
)

# One row an order: how far its ticket is, and what the service has been told.
orders = Table(
    "orders",
    metadata,
    Column("store", Text, primary_key=True),
    Column("order_id", Text, primary_key=True),
    Column("order_number", Text, nullable=False, server_default=""),
    Column("payload", Text, nullable=False),  # the event's data as received; emptied by pruning
    Column("placed_at", Integer),
    Column("received_at", Integer, nullable=False),
    # ticket: waiting | writing (begun, outcome unknown) | written | refused (never will be) |
    # withdrawn (taken back out of the POS, or left to a person)
    Column("ticket", Text, nullable=False),
    Column("ticket_reference", Text, nullable=False, server_default=""),
    Column("written_at", Integer),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("last_failure", Text, nullable=False, server_default=""),
    # what the POS or a person wants the order to be, and what the service was told (OrderState)
    Column("wanted", Text, nullable=False),
    Column("told", Text, nullable=False),
    Column("reason_code", Text),
    Column("message", Text, nullable=False, server_default=""),
    Column("closed_at", Integer),  # nothing more is to be done
    Column("updated_at", Integer, nullable=False),
    # JSON: calls the service refused for good {call: words}; what no person has seen yet {code: {}}
    Column("refused", Text, nullable=False, server_default="{}"),
    Column("unseen", Text, nullable=False, server_default="{}"),
    Index("ix_orders_open", "store", "received_at", sqlite_where=text("closed_at IS NULL")),
    Index("ix_orders_received", "received_at"),
    Index("ix_orders_told", "store", "told"),
    Index("ix_orders_number", "order_number"),
    Index("ix_orders_unseen", "store", sqlite_where=text("unseen <> '{}'")),
)

# The life of each order, for people: `event` is a dotted name, `detail` JSON without personal data.
order_log = Table(
    "order_log",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("store", Text, nullable=False),
    Column("order_id", Text, nullable=False),
    Column("at", Integer, nullable=False),
    Column("event", Text, nullable=False),
    Column("detail", Text, nullable=False, server_default="{}"),
    Index("ix_order_log_order", "store", "order_id", "id"),
)

# What the service has accepted of the menu: one row an item.
menu_items = Table(
    "menu_items",
    metadata,
    Column("store", Text, primary_key=True),
    Column("external_id", Text, primary_key=True),
    Column(
        "body", Text, nullable=False
    ),  # the Item as JSON (catalogue codec), as told to the service
    Column("fingerprint", Integer),  # of the export's record it came from (64 bit, signed)
    Column("pos_available", Boolean, nullable=False),  # what the export said, under any overlay
    # told_available or told_until differ from what the export said: an overlay lies over it
    Column("overlaid", Boolean, nullable=False, server_default=false()),
    Index("ix_menu_items_fingerprint", "store", "fingerprint"),
    Index("ix_menu_items_overlaid", "store", sqlite_where=text("overlaid")),
)

# Categories, add-ons, add-on groups and menus the service has accepted.
menu_parts = Table(
    "menu_parts",
    metadata,
    Column("store", Text, primary_key=True),
    Column("kind", Text, primary_key=True),  # category | add_on | addon_group | menu
    Column("external_id", Text, primary_key=True),
    Column("body", Text, nullable=False),
)

# Items the service refused, by the record that was refused: not sent again until it changes.
menu_refused = Table(
    "menu_refused",
    metadata,
    Column("store", Text, primary_key=True),
    Column("external_id", Text, primary_key=True),
    Column("fingerprint", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Integer, nullable=False),
)

# Prices the storefront showed, from when on: an order's prices are compared with those of its time.
menu_prices = Table(
    "menu_prices",
    metadata,
    Column("store", Text, primary_key=True),
    Column("external_id", Text, primary_key=True),  # of an item, variant or add-on
    Column("from_ms", Integer, primary_key=True),
    Column("price", Integer, nullable=False),
)

# What the storefront showed of an item until `until_ms`; an empty body: it had none.
menu_past = Table(
    "menu_past",
    metadata,
    Column("store", Text, primary_key=True),
    Column("external_id", Text, primary_key=True),
    Column("until_ms", Integer, primary_key=True),
    Column("body", Text, nullable=False),
    Index("ix_menu_past_until", "until_ms"),
)

# Menu pushes: history, and the jobs that are still running (state "running").
pushes = Table(
    "pushes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("store", Text, nullable=False),
    Column("kind", Text, nullable=False),  # full | batch | patch | availability
    Column("started_at", Integer, nullable=False),
    Column("finished_at", Integer),
    Column("state", Text, nullable=False),  # running | success | partial | failed | lost
    Column("summary", Text, nullable=False, server_default="{}"),
    Column("message", Text, nullable=False, server_default=""),
    Column("job_id", Text),
    Column("poll_url", Text),
    Column("pending", Text),  # JSON: what is acknowledged when the job succeeds
    Index("ix_pushes_running", "store", sqlite_where=text("state = 'running'")),
    Index("ix_pushes_started", "started_at"),
)

# A plan that waits for a person: at most one a store. `approved_digest` releases that very plan.
holds = Table(
    "holds",
    metadata,
    Column("store", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("since", Integer, nullable=False),
    Column("reasons", Text, nullable=False),  # JSON array of sentences
    Column("summary", Text, nullable=False),  # JSON
    Column("approved_digest", Text),
)

# Staff overrides: off sale whatever the POS says, until lifted or `until`.
overrides = Table(
    "overrides",
    metadata,
    Column("store", Text, primary_key=True),
    Column("external_id", Text, primary_key=True),
    Column("until", Integer),
    Column("by", Text, nullable=False),
    Column("at", Integer, nullable=False),
    Column("told_at", Integer),  # when the storefront had it
)

tables = Table(
    "tables",
    metadata,
    Column("store", Text, primary_key=True),
    Column("external_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("seats", Integer),
    Column("zone", Text, nullable=False, server_default=""),
    Column("table_id", Text, nullable=False, server_default=""),
    Column("qr_token", Text, nullable=False, server_default=""),
    Column("qr_url", Text, nullable=False, server_default=""),
)

# Communities. `community` is the key of a community ("communities/NAME"), which is also its
# `store` in the inbox, the facts and the problems: no store's name holds a slash.

# The mirror of a community's catalogue: each store, category and item as the service told it.
community_records = Table(
    "community_records",
    metadata,
    Column("community", Text, primary_key=True),
    Column("kind", Text, primary_key=True),  # store | category | item
    Column("record_id", Text, primary_key=True),
    Column("store_id", Text, nullable=False, server_default=""),
    Column("name", Text, nullable=False, server_default=""),
    Column("body", Text, nullable=False),  # JSON
)

# What this bridge says of an item in a community, beside the merchant. A row goes once the item
# is on sale again and the service knows it.
community_words = Table(
    "community_words",
    metadata,
    Column("community", Text, primary_key=True),
    Column("item_id", Text, primary_key=True),
    Column("available", Boolean, nullable=False),
    Column("until", Integer),  # the service restores the item by itself then
    Column("by", Text, nullable=False),
    Column("at", Integer, nullable=False),
    Column("told_at", Integer),  # None: the service is still to be told
)

# Parent orders of a community, as the service told them last.
community_orders = Table(
    "community_orders",
    metadata,
    Column("community", Text, primary_key=True),
    Column("order_id", Text, primary_key=True),
    Column("order_number", Text, nullable=False, server_default=""),
    Column("status", Text, nullable=False),
    Column("updated_at", Integer),  # as the service says
    Column("payload", Text, nullable=False),  # the whole order; emptied by pruning
    Column("received_at", Integer, nullable=False),  # when it was first heard of here
    Column("changed_at", Integer, nullable=False),
    Index("ix_community_orders_received", "community", "received_at"),
)

# Their child orders: `order_id` is that of a POS order, of a store here or of another member.
community_children = Table(
    "community_children",
    metadata,
    Column("community", Text, primary_key=True),
    Column("order_id", Text, primary_key=True),
    Column("parent_id", Text, nullable=False),
    Column("store_id", Text, nullable=False, server_default=""),
    Column("store_name", Text, nullable=False, server_default=""),
    Column("status", Text, nullable=False, server_default=""),
    Column("subtotal", Integer),
    Index("ix_community_children_parent", "community", "parent_id"),
    Index("ix_community_children_order", "order_id"),
)

# Small facts of a store, each a JSON value: service store id, integration, pause, last sync, ...
facts = Table(
    "facts",
    metadata,
    Column("store", Text, primary_key=True),  # "" for the bridge itself
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("at", Integer, nullable=False),
)

# Open problems: `detail` is JSON with the fields of the text; `subject` tells two of a kind apart.
problems = Table(
    "problems",
    metadata,
    Column("code", Text, primary_key=True),
    Column("store", Text, primary_key=True),  # "" for the bridge itself
    Column("subject", Text, primary_key=True, server_default=""),
    Column("since", Integer, nullable=False),
    Column("detail", Text, nullable=False, server_default="{}"),
)

# Problems that are over, for the history of a day: when each began and ended.
problem_history = Table(
    "problem_history",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("code", Text, nullable=False),
    Column("store", Text, nullable=False, server_default=""),
    Column("subject", Text, nullable=False, server_default=""),
    Column("since", Integer, nullable=False),
    Column("until", Integer, nullable=False),
    Index("ix_problem_history_until", "until"),
)

# Who did what: a chain by hash. Nothing is ever changed or removed here.
audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Integer, nullable=False),
    Column("who", Text, nullable=False),
    Column("role", Text, nullable=False, server_default=""),
    Column("action", Text, nullable=False),
    Column("store", Text, nullable=False, server_default=""),
    Column("target", Text, nullable=False, server_default=""),
    Column("detail", Text, nullable=False, server_default="{}"),  # JSON, canonical
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
