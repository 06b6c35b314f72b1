"""The messages between the bridge and an adapter that is a program: one JSON object a line.

What is read and written is the model's own values, so a catalogue on the wire looks as in
`expected.json` of a case folder.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from tillbridge import adapter as api

PROTOCOL: Literal[1] = 1

Capability = Literal[
    "catalogue",
    "availability",
    "tables",
    "tickets",
    "cancel",
    "list",
    "late_writes",
    "updates",
    "unreadable_updates",
    "health",
    "files",
    "changes",
]
FailureKind = Literal[
    "ExportUnreadable",
    "PosOffline",
    "StoreClosed",
    "ItemUnavailable",
    "AtCapacity",
    "PriceMismatch",
    "PosFailure",
    "TicketOutcomeUnknown",
    "CannotDo",
]


class Message(BaseModel):
    """Base of everything on the wire. A key that does not exist is an error: a misspelling."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


# -- from the bridge


class BridgeHello(Message):
    """The first line the program reads. `decimals`: of the currency, to make minor units with."""

    type: Literal["hello"] = "hello"
    protocol: Literal[1] = PROTOCOL
    store: str
    currency: str
    decimals: int
    location_id: str
    base_dir: str
    options: dict[str, Any] = Field(description="The table `options` of the configuration.")


class NoParams(Message):
    """Nothing."""


class KeyParams(Message):
    """What a ticket or a piece of news is known by."""

    key: str


class OrderParams(Message):
    """An order as the ordering service sent it, and the key the ticket is found by."""

    key: str
    order: dict[str, Any]


class CancelParams(Message):
    """The same order, and why it is off, in words for the kitchen."""

    key: str
    reason: str
    order: dict[str, Any]


class CancelListedParams(Message):
    """One of the tickets that `list_tickets` returned, and no other of the same key."""

    key: str
    record: str
    reference: str
    reason: str
    order: dict[str, Any]


# -- from the program


class WatchedFiles(Message):
    """Files to watch, with capability `files`; relative paths count from the program's folder."""

    catalogue: tuple[str, ...] = ()
    availability: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    updates: tuple[str, ...] = Field((), description="Folders, in which each file is news.")


class ChildHello(Message):
    """The program's first line. `parallel`: it can be asked two things at once.

    `late_write_s`, with capability `late_writes`: so long after its answer was given up a write may
    still take effect.
    """

    type: Literal["hello"]
    protocol: int
    name: str = Field(min_length=1, max_length=80)
    version: str = ""
    capabilities: tuple[Capability, ...]
    parallel: bool = False
    files: WatchedFiles = WatchedFiles()
    late_write_s: float = Field(0, ge=0, le=86_400)


class Refusal(Message):
    """Instead of hello: the options cannot work; `message` says what a person has to mend."""

    type: Literal["refuse"]
    message: str


class Failure(Message):
    """What the till answers instead; `fix` says what a person should do about it.

    `external_ids` belong to ItemUnavailable, `place` and `passing` to ExportUnreadable.
    """

    kind: FailureKind
    message: str = ""
    external_ids: tuple[str, ...] = ()
    place: str = ""
    fix: str = ""
    passing: bool = False


class UpdateMessage(Message):
    """News of an order; sent until `update_handled` names its `key`."""

    key: str = Field(min_length=1)
    order_id: str = Field(min_length=1)
    status: api.TicketStatus
    reason: api.RejectReason | None = None
    external_ids: tuple[str, ...] = ()
    message: str = ""

    def value(self) -> api.TicketUpdate:
        """Return it as the model has it."""
        return api.TicketUpdate(
            self.key, self.order_id, self.status, self.reason, self.external_ids, self.message
        )


class Event(Message):
    """What the program sends unasked, with capability `changes`. `update` only of order_status."""

    type: Literal["event"]
    event: Literal[
        "catalogue_changed",
        "availability_changed",
        "tables_changed",
        "health_changed",
        "order_status",
    ]
    update: UpdateMessage | None = None


# -- results


class Result(Message):
    """Base of a result that is not a value of the model itself."""

    def value(self) -> Any:  # noqa: ANN401 -- each result has a value of its own
        """Return it as the model has it; None for nothing."""
        return None


class EmptyResult(Result):
    """Nothing; `null` and {} say so."""


class ListResult(Result):
    """Base of a result that is one list."""

    def value(self) -> tuple[Any, ...]:
        """Return the list as the model has it."""
        (name,) = type(self).model_fields
        return tuple(
            each.value() if isinstance(each, UpdateMessage) else each
            for each in getattr(self, name)
        )


class CatalogueResult(Result):
    """The whole menu, in the till's order. Prices are whole minor units."""

    menus: tuple[api.Menu, ...] = ()
    categories: tuple[api.Category, ...] = ()
    items: tuple[api.Item, ...] = ()
    add_ons: tuple[api.AddOn, ...] = ()
    addon_groups: tuple[api.AddOnGroup, ...] = ()
    bad_rows: tuple[api.BadRow, ...] = ()
    source: api.Source = api.Source()

    def value(self) -> api.Catalogue:
        """Return it as the model has it."""
        found = api.Catalogue.of(
            self.items,
            categories=self.categories,
            add_ons=self.add_ons,
            addon_groups=self.addon_groups,
            menus=self.menus,
            bad_rows=self.bad_rows,
        )
        return replace(found, source=self.source)


class TicketListResult(ListResult):
    """Every ticket written with a key in the last two days, in any state, oldest first."""

    tickets: tuple[api.ListedTicket, ...] = ()


class UpdatesResult(ListResult):
    """The news not yet handled, oldest first."""

    updates: tuple[UpdateMessage, ...] = ()


class BadRowsResult(ListResult):
    """News that could not be understood."""

    bad_rows: tuple[api.BadRow, ...] = ()


# -- requests and their answers


class RequestBase(Message):
    """What all requests have in common; `params` come last."""

    type: Literal["request"]
    id: int


class AnswerBase(Message):
    """What the answers to all requests have in common."""

    type: Literal["answer"]
    id: int
    error: Failure | None = None


class MissingResult(Exception):
    """An answer has neither a result nor an error, and must have one."""


class Method:
    """One thing to ask: with what, what comes back, and with which capability (none: of a rig)."""

    def __init__(
        self,
        name: str,
        params: type[Message] = NoParams,
        result: type = EmptyResult,
        capability: Capability | None = None,
        *,
        may_be_null: bool = False,
    ) -> None:
        self.name = name
        self.capability = capability
        self.params = params
        self._may_be_null = may_be_null or result is EmptyResult
        stem = name if capability else f"rig_{name}"
        this: Any = Literal[name]
        shape: Any = result | None
        self.request = create_model(
            f"{stem}_request",
            __base__=RequestBase,
            __doc__=f"Asks for {name}.",
            method=(this, ...),
            params=(params, ...),
        )
        self.answer = create_model(
            f"{stem}_answer",
            __base__=AnswerBase,
            __doc__=f"The answer to {name}: `result`, or `error`.",
            result=(shape, None),
        )

    def result_of(self, line: bytes) -> Any:  # noqa: ANN401 -- each method has a result of its own
        """Return what an answer holds: a Failure or a result, None for nothing.

        Raises ValidationError, MissingResult.
        """
        answer = self.answer.model_validate_json(line)
        found = answer.error or getattr(answer, "result", None)
        if found is None and not self._may_be_null:
            raise MissingResult(self.name)
        return found


METHODS: Mapping[str, Method] = {
    each.name: each
    for each in (
        Method("read_catalogue", NoParams, CatalogueResult, "catalogue"),
        Method("read_availability", NoParams, api.AvailabilityReading, "availability"),
        Method("read_tables", NoParams, api.TablesReading, "tables"),
        Method("write_ticket", OrderParams, api.Ticket, "tickets"),
        Method("find_ticket", KeyParams, api.Ticket, "tickets", may_be_null=True),
        Method("cancel_ticket", CancelParams, EmptyResult, "cancel"),
        Method("list_tickets", NoParams, TicketListResult, "list"),
        Method("cancel_listed_ticket", CancelListedParams, EmptyResult, "list"),
        Method("read_updates", NoParams, UpdatesResult, "updates"),
        Method("update_handled", KeyParams, EmptyResult, "updates"),
        Method("unreadable_updates", NoParams, BadRowsResult, "unreadable_updates"),
        Method("health", NoParams, api.Health, "health"),
    )
}


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return a message as its line: ASCII, no blanks between, keys in the order given.

    A shell script may rely on that: `type`, `id`, `method` first, `params` last.
    """
    return json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"


def request_of(number: int, method: str, params: Mapping[str, Any]) -> bytes:
    """Return a request as its line."""
    return line_of({"type": "request", "id": number, "method": method, "params": dict(params)})
