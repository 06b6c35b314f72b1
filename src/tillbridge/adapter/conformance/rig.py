"""The rig: a till for tests, to which the conformance suite may do anything.

A vendor writes one beside the adapter, as `RIG` in the module `rig` of its package. What a kind of
till cannot do (answers of a folder of files cannot be lost) is left as it is here; the check
that needs it is then not tried, and says why.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from tillbridge.adapter.conformance.cases import options_error
from tillbridge.adapter.protocols import Closes
from tillbridge.adapter.registration import Adapter, AdapterContext
from tillbridge.adapter.values import RejectReason, TicketStatus
from tillbridge.model.catalogue import Catalogue, Item
from tillbridge.model.order import Order, parse_order
from tillbridge.model.restaurant import Table


class RigFailed(Exception):
    """The rig itself does not do what it must; that is no fault of the adapter."""

    def __init__(self, text: str, *, fix: str = "", place: str = "") -> None:
        super().__init__(text)
        self.fix = fix
        self.place = place


class CannotDo(Exception):
    """This kind of till cannot do what a check asks; `reason` is one sentence that says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class TicketLine:
    """One line of an order as stored in the till, with the ids of the order.

    `options` has the quantity of each add-on by external id, per piece of the line. `unit_price` is
    the price of one piece without add-ons, in minor units. Lines that the till adds (a delivery
    fee, a discount) are left out.
    """

    external_id: str
    quantity: int
    variant_external_id: str | None = None
    options: Mapping[str, int] = field(default_factory=dict)
    unit_price: int | None = None


@dataclass(frozen=True, slots=True)
class RigTicket:
    """An order in the till, found without the adapter.

    `key` is the key with which the adapter wrote it; `lines` are `TicketLine`s. (Older rigs have
    (external id, quantity) here: then the rest of the ticket is not compared.) `possible_duplicate`
    says that the ticket is marked so, for people to see.

    `note` is the text that contains the guest's instructions; `order_type` is the value in the
    order ("delivery", "pickup", "dine_in"); `total` and `tax` are in minor units. What a till does
    not store is None, and is listed with the reason under [not_kept] in quality.toml.
    """

    key: str
    lines: tuple[TicketLine | tuple[str, int], ...]
    cancelled: bool = False
    possible_duplicate: bool = False
    note: str | None = None
    order_type: str | None = None
    total: int | None = None
    tax: int | None = None

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """The external id and quantity of each line."""
        return tuple(
            (each.external_id, each.quantity) if isinstance(each, TicketLine) else each
            for each in self.lines
        )

    @classmethod
    def of(cls, data: Mapping[str, Any], *, cancelled: bool = False) -> "RigTicket":
        """Return the ticket of a till that stores the order's JSON as the service sent it."""
        order, tax = parse_order(data), data.get("tax")
        return cls(
            key=order.id,
            lines=tuple(
                TicketLine(
                    line.external_id or "",
                    line.quantity,
                    line.variant_external_id,
                    {each.external_id or "": each.quantity for each in line.options},
                    line.unit_price,
                )
                for line in order.lines
            ),
            cancelled=cancelled,
            note=order.special_instructions,
            order_type=order.order_type,
            total=order.total_amount,
            tax=tax if isinstance(tax, int) else None,
        )


class Rig(ABC):
    """One till in its own folder, created for every check and closed after it."""

    adapter: ClassVar[Adapter]
    # Seconds after which a call that has not come back counts as hanging.
    patience_s: ClassVar[float] = 15.0
    # Whether the adapter is a program of its own: its lines cannot be seen from here.
    is_program: ClassVar[bool] = False
    # Whether other letters cannot be read back from the till: from paper, where they are pictures.
    ascii_only: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "tell" in vars(cls):  # the former name of report_progress
            cls.report_progress = vars(cls)["tell"]  # type: ignore[method-assign]  # an alias

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: list[Closes] = []
        self.on_open: Callable[[object], None] = lambda _pos: None
        self.on_value: Callable[[object], None] = lambda _value: None
        # What the till's own side raised where the adapter alone would notice: the rig's fault.
        self.broke: Exception | None = None

    @abstractmethod
    def options(self) -> Mapping[str, Any]:
        """Return the adapter's options for this till, with everything enabled that it can do."""

    def close(self) -> None:  # noqa: B027 -- nothing, where a till is files alone
        """Close what the till has open: servers, files."""

    # What is sold

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Make the till sell exactly these items, and export them.

        Return what a correct adapter reads: the same items in the same order, with the external ids
        given by the till. Only id, name, price, availability and variants are compared.
        """
        raise CannotDo("This rig sells nothing.")

    def sell_menu(self, menu: Catalogue, currency: str) -> Catalogue:
        """Make the till sell exactly this menu: items with variants and add-on groups.

        Return what a correct adapter reads: the same, with the external ids given by the till, and
        without what it does not support (variants, add-ons). Groups and add-ons are compared by
        ids, names, prices and relations.
        """
        raise CannotDo("This rig sells plain items only: write sell_menu, for sizes and add-ons.")

    def rename(self, external_id: str, name: str) -> None:
        """Give an item another name, and export it again."""
        raise CannotDo("This rig renames nothing.")

    def reorder(self) -> None:
        """Export the same items again in another order."""
        raise CannotDo("This till has one order only.")

    def sell_out(self, external_id: str) -> None:
        """Take an item off sale, in the till's own way."""
        raise CannotDo("This till cannot sell out an item.")

    def sell_out_until(self, external_id: str, until: datetime) -> None:
        """Take an item off sale until a time (timezone-aware, UTC, a whole minute)."""
        raise CannotDo("This rig sells out without an end: write sell_out_until, if the till can.")

    def exports(self) -> Sequence[Path]:
        """Return the files the menu is read from; the suite cuts them."""
        raise CannotDo("This till exports no files.")

    def furnish(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Give the till exactly these tables; return what a correct adapter reads."""
        raise CannotDo("This rig has no tables.")

    # Orders

    def tickets(self) -> Sequence[RigTicket]:
        """Return every order in the till, read without the adapter."""
        raise CannotDo("This rig takes no orders.")

    def report_progress(
        self,
        order_id: str,
        status: TicketStatus,
        *,
        reason: RejectReason | None = None,
        external_ids: Sequence[str] = (),
    ) -> None:
        """Make the till report the progress of an order."""
        raise CannotDo("This till does not report the progress of orders.")

    def close_store(self) -> None:
        """Make the till take no orders: closed for the day, no session."""
        raise CannotDo("This till is never closed.")

    # What goes wrong

    def go_offline(self) -> None:
        """Make the till unreachable."""
        raise CannotDo("This rig cannot go offline.")

    def come_back(self) -> None:
        """Make the till reachable again."""
        raise CannotDo("This rig cannot come back.")

    def lose_next_answer(self) -> None:
        """Make the till carry out the next request, but lose its answer."""
        raise CannotDo("This till's answers cannot be lost.")

    def hang_writes(self) -> None:
        """From now on, let the till carry out no writes, while it still answers reads.

        The writes wait, as if a database had locked the table of orders.
        """
        raise CannotDo("This till's writes cannot hang.")

    def carry_out_writes(self) -> None:
        """Carry out all waiting writes, although nobody waits for their answers any more."""
        raise CannotDo("This till's writes cannot hang.")

    def answer_slowly(self, delay_s: float) -> None:
        """Make every answer take this many seconds."""
        raise CannotDo("This till cannot be slow.")

    def kill_writing(self, orders: Sequence[Order]) -> int:
        """Write each order with an adapter whose program is killed at some moment of the write.

        Return how many. Only for adapters that are separate programs: for others, the suite itself
        kills the process, at each line of the adapter's code.
        """
        raise CannotDo("This adapter is no program of its own.")

    # What the suite uses itself

    def context(self, currency: str = "EUR") -> AdapterContext:
        """Return what the adapter knows about its store."""
        return AdapterContext(
            store="rig", currency=currency, location_id="rig", base_dir=self.folder
        )

    def open(self, currency: str = "EUR") -> object:
        """Open the adapter on this till, as the bridge does."""
        kind = self.adapter.options
        try:
            checked = kind.model_validate(dict(self.options()))
        except ValidationError as failure:  # not as its cause: that would show the values
            code = type(self).options.__code__
            place = f"{Path(code.co_filename).name}:{code.co_firstlineno} options: "
            raise RigFailed(
                ("" if self.is_program else place)
                + f"These are not the adapter's options: {options_error(failure)}.",
                fix=f"Return in `options` of the rig what {kind.__name__} has, by the same names.",
            ) from None
        pos = self.adapter.open(checked, self.context(currency))
        self.on_open(pos)
        if isinstance(pos, Closes):
            self._opened.append(pos)
        return pos

    def close_opened(self) -> None:
        """Close what was opened on this till."""
        while self._opened:
            self._opened.pop().close()

    def state(self) -> object:
        """Return everything in the till that a probe must not change, in a comparable form.

        By default, the files in the folder. A till with a server adds the server's state.
        """
        found = {}
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            found[name] = (
                hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            )
        return found
