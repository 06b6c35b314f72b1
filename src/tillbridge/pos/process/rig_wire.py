"""What the conformance suite asks of a rig that is a program, over the same lines."""

from collections.abc import Mapping
from typing import Any, Literal

from tillbridge.adapter import Item, RejectReason, Table, TicketStatus
from tillbridge.pos.process.wire import PROTOCOL, Message, NoParams


class RigHello(Message):
    """The first line a rig reads: it makes its till in `folder`, which is empty."""

    type: Literal["hello"] = "hello"
    protocol: Literal[1] = PROTOCOL
    role: Literal["rig"] = "rig"
    folder: str


class SellParams(Message):
    """Sell just these items; the answer tells what a right adapter reads."""

    items: tuple[Item, ...]
    currency: str
    decimals: int


class RenameParams(Message):
    """Give an item another name."""

    external_id: str
    name: str


class ItemParams(Message):
    """One item."""

    external_id: str


class TablesParams(Message):
    """Have just these tables; the answer tells what a right adapter reads."""

    tables: tuple[Table, ...]


class TellParams(Message):
    """Say how an order goes on."""

    order_id: str
    status: TicketStatus
    reason: RejectReason | None
    external_ids: tuple[str, ...]


class DelayParams(Message):
    """Let every answer of the till take so many seconds."""

    delay_s: float


class OptionsSaid(Message):
    """The table `options` for this till, with all it can do switched on."""

    options: dict[str, Any]


class ItemsSaid(Message):
    """What a right adapter reads."""

    items: tuple[Item, ...]


class FilesRigSaid(Message):
    """Paths of the files that the menu is read from."""

    files: tuple[str, ...]


class RigTablesSaid(Message):
    """What a right adapter reads."""

    tables: tuple[Table, ...]


class RigLine(Message):
    """A line of a ticket in the till."""

    external_id: str
    quantity: int


class RigTicketSaid(Message):
    """An order as it stands in the till, found without the adapter."""

    key: str
    lines: tuple[RigLine, ...]
    cancelled: bool = False


class TicketsSaid(Message):
    """Every order in the till."""

    tickets: tuple[RigTicketSaid, ...]


RIG_METHODS: Mapping[str, type[Message]] = {
    "options": NoParams,
    "sell": SellParams,
    "rename": RenameParams,
    "reorder": NoParams,
    "sell_out": ItemParams,
    "exports": NoParams,
    "furnish": TablesParams,
    "tickets": NoParams,
    "tell": TellParams,
    "close_store": NoParams,
    "go_offline": NoParams,
    "come_back": NoParams,
    "lose_next_answer": NoParams,
    "hang_writes": NoParams,
    "carry_out_writes": NoParams,
    "answer_slowly": DelayParams,
}
RIG_RESULTS: Mapping[str, type[Message] | None] = {
    "options": OptionsSaid,
    "sell": ItemsSaid,
    "exports": FilesRigSaid,
    "furnish": RigTablesSaid,
    "tickets": TicketsSaid,
}
