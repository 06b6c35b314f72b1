"""A vendor's folder of an adapter that is a program: `process.toml`, and what lies beside it.

`process.toml` says `name`, `summary`, `command` and, for the checks, `rig`. README.md, sample.toml,
quality.toml and tests/cases/ are as with every adapter.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    Catalogue,
    Item,
    Order,
    PosFailure,
    RejectReason,
    Table,
    TicketStatus,
)
from tillbridge.adapter.conformance import CannotDo, Rig, RigTicket, TicketLine
from tillbridge.adapter.conformance.rig import RigFailed
from tillbridge.adapter.conformance.witness import program_files, scripts_of, traceback_in
from tillbridge.adapter.values import catalogue_json, value_json
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.model.money import exponent
from tillbridge.pos.loader import first_fault, read_toml
from tillbridge.pos.process.adapter import NonEmpty, ProcessAdapter, ProcessOptions
from tillbridge.pos.process.program import (
    Limits,
    NotAnswered,
    NotSent,
    ProgramSupervisor,
    Unusable,
    environment,
)
from tillbridge.pos.process.wire import (
    PROTOCOL,
    CatalogueResult,
    Failure,
    Message,
    Method,
    MissingResult,
)

_PATIENCE_S = 30.0


class RigHello(Message):
    """The first line a rig reads: it makes its till in `folder`, which is empty."""

    type: Literal["hello"] = "hello"
    protocol: Literal[1] = PROTOCOL
    role: Literal["rig"] = "rig"
    folder: str


class SellParams(Message):
    """Sell exactly these items; the answer is what a correct adapter reads."""

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
    """Have exactly these tables; the answer is what a correct adapter reads."""

    tables: tuple[Table, ...]


class UpdateParams(Message):
    """Report the progress of an order."""

    order_id: str
    status: TicketStatus
    reason: RejectReason | None
    external_ids: tuple[str, ...]


class DelayParams(Message):
    """Let every answer of the till take that many seconds."""

    delay_s: float


class OptionsResult(Message):
    """The table `options` for this till, with all it can do switched on."""

    options: dict[str, Any]


class ItemsResult(Message):
    """What a right adapter reads."""

    items: tuple[Item, ...]


class ExportFilesResult(Message):
    """Paths of the files that the menu is read from."""

    files: tuple[str, ...]


class RigTablesResult(Message):
    """What a right adapter reads."""

    tables: tuple[Table, ...]


class SellMenuParams(Message):
    """Sell exactly this menu; the answer is what a correct adapter reads."""

    menu: CatalogueResult
    currency: str
    decimals: int


class SoldOutParams(Message):
    """One item, and until when it is sold out: ISO 8601, in UTC."""

    external_id: str
    until: str


class RigLine(Message):
    """A line of a ticket in the till.

    `options` are the quantities of its add-ons by external id, for one piece; `unit_price` is of
    one piece without them, in minor units.
    """

    external_id: str
    quantity: int
    variant_external_id: str | None = None
    options: dict[str, int] = Field(default_factory=dict)
    unit_price: int | None = None


class RigTicketResult(Message):
    """An order as it is in the till, found without the adapter.

    A till that keeps the service's JSON gives it as `order`, and none of the other fields but
    `cancelled`. What is not there is not compared.
    """

    key: str = ""
    lines: tuple[RigLine, ...] = ()
    cancelled: bool = False
    note: str | None = None
    order_type: str | None = None
    total: int | None = None
    tax: int | None = None
    order: dict[str, Any] | None = None

    def value(self) -> RigTicket:
        """Return it as the checks have it; older rigs have ids and quantities only."""
        if self.order is not None:
            return RigTicket.of(self.order, cancelled=self.cancelled)
        told = self.model_fields_set & {"note", "order_type", "total", "tax"}
        return RigTicket(
            self.key,
            tuple(
                TicketLine(**each.model_dump()) if told else (each.external_id, each.quantity)
                for each in self.lines
            ),
            cancelled=self.cancelled,
            note=self.note,
            order_type=self.order_type,
            total=self.total,
            tax=self.tax,
        )


class RigTicketsResult(Message):
    """Every order in the till."""

    tickets: tuple[RigTicketResult, ...]


RIG_METHODS: Mapping[str, Method] = {
    each.name: each
    for each in (
        Method("options", result=OptionsResult),
        Method("sell", SellParams, ItemsResult),
        Method("sell_menu", SellMenuParams, CatalogueResult),
        Method("rename", RenameParams),
        Method("reorder"),
        Method("sell_out", ItemParams),
        Method("sell_out_until", SoldOutParams),
        Method("exports", result=ExportFilesResult),
        Method("furnish", TablesParams, RigTablesResult),
        Method("tickets", result=RigTicketsResult),
        Method("tell", UpdateParams),
        Method("close_store"),
        Method("go_offline"),
        Method("come_back"),
        Method("lose_next_answer"),
        Method("hang_writes"),
        Method("carry_out_writes"),
        Method("answer_slowly", DelayParams),
    )
}


class RigBroken(RigFailed):
    """The rig's program does not do what it must; that is no fault of the adapter."""


def _forward(name: str) -> Callable[..., None]:
    """Return the method of a rig that asks its program for the same, and for no answer."""
    names = tuple(RIG_METHODS[name].params.model_fields)

    def ask(self: "ProcessRig", *values: object) -> None:
        self._ask(name, **dict(zip(names, values, strict=True)))

    ask.__name__, ask.__doc__ = name, getattr(Rig, name).__doc__
    return ask


class ProcessRig(Rig):
    """Asks the rig's program; `command` is run in `home`, the vendor's folder."""

    is_program: ClassVar[bool] = True
    command: ClassVar[tuple[str, ...]]
    home: ClassVar[Path]

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._program = ProgramSupervisor(
            self.command,
            cwd=self.home,
            env=environment((), os.environ),
            hello=RigHello(folder=str(folder)).model_dump(),
            limits=Limits(start_s=_PATIENCE_S, restart_cap_s=_PATIENCE_S, steady_s=_PATIENCE_S),
            store="rig",
        )
        try:
            hello = self._program.start()
        except Unusable as failure:
            raise self._broken(str(failure)) from failure
        if hello is None:
            raise self._broken(self._program.absence())

    def open(self, currency: str = "EUR") -> object:
        """Start the adapter's program on this till."""
        fix = f"Correct the program, what the rig returns as its options, or `command` in {FILE}."
        try:
            pos = super().open(currency)
        except ValueError as failure:
            raise RigFailed(str(failure), fix=fix, place=FILE) from failure
        if isinstance(pos, ProcessAdapter) and (absence := pos.absence()):
            place, _lines = traceback_in(pos.stderr_tail(), program_files(self.adapter))
            raise RigFailed(absence, fix=fix, place=place or FILE)
        return pos

    def _broken(self, text: str) -> RigBroken:
        """Return the failure with the place that the rig's program named last, and let it end."""
        self.close()
        place, lines = traceback_in(
            self._program.stderr_tail(), scripts_of(self.home, self.command)
        )
        line = place.replace(":", ", line ") or f"`rig` in {FILE}"
        return RigBroken(
            "\n".join([f"The rig fails: {text}", *([f"It wrote last: {lines}"] if lines else [])]),
            fix=f"This is the rig's fault, not the adapter's: mend {line}.",
            place=place or FILE,
        )

    def close(self) -> None:
        """Let the rig's program end."""
        self._program.close()

    def options(self) -> Mapping[str, Any]:
        """Return what the program's options are on this till."""
        return {"options": self._ask("options").options}

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Ask the rig to sell them."""
        result = self._ask(
            "sell",
            items=[value_json(item) for item in items],
            currency=currency,
            decimals=exponent(currency),
        )
        sold: Sequence[Item] = result.items
        return sold

    def sell_menu(self, menu: Catalogue, currency: str) -> Catalogue:
        """Ask the rig to sell a menu."""
        sold: Catalogue = self._ask(
            "sell_menu", menu=catalogue_json(menu), currency=currency, decimals=exponent(currency)
        ).value()
        return sold

    def sell_out_until(self, external_id: str, until: datetime) -> None:
        """Ask the rig to take an item off sale for some time."""
        self._ask("sell_out_until", external_id=external_id, until=until.isoformat())

    def exports(self) -> Sequence[Path]:
        """Return the files the menu is read from."""
        return [self.folder / each for each in self._ask("exports").files]

    def furnish(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Ask the rig to have these tables."""
        result = self._ask("furnish", tables=[value_json(table) for table in tables])
        furnished: Sequence[Table] = result.tables
        return furnished

    def tickets(self) -> Sequence[RigTicket]:
        """Return the tickets in the till."""
        return [each.value() for each in self._ask("tickets").tickets]

    def report_progress(
        self,
        order_id: str,
        status: TicketStatus,
        *,
        reason: RejectReason | None = None,
        external_ids: Sequence[str] = (),
    ) -> None:
        """Ask the rig to report an update."""
        self._ask(
            "tell",
            order_id=order_id,
            status=status.value,
            reason=None if reason is None else reason.value,
            external_ids=list(external_ids),
        )

    rename = _forward("rename")
    reorder = _forward("reorder")
    sell_out = _forward("sell_out")
    close_store = _forward("close_store")
    go_offline = _forward("go_offline")
    come_back = _forward("come_back")
    lose_next_answer = _forward("lose_next_answer")
    hang_writes = _forward("hang_writes")
    carry_out_writes = _forward("carry_out_writes")
    answer_slowly = _forward("answer_slowly")

    def kill_writing(self, orders: Sequence[Order]) -> int:
        """Write each order, and end the program at another moment of it; return how many."""
        first, *others = orders
        duration_s = self._write(first, None)
        for number, order in enumerate(others):
            self._write(order, duration_s * 1.2 * number / len(others))
        return len(others)

    def _write(self, order: Order, kill_after_s: float | None) -> float:
        pos = self.open()
        if not isinstance(pos, ProcessAdapter):
            raise CannotDo("It is no program.")
        write = getattr(pos, "write_ticket", None)
        if write is None:
            raise CannotDo("The adapter has no capability tickets.")

        def work() -> None:
            try:
                write(order, order.id)
            except PosFailure:
                return  # the check that asks looks at what the till holds

        began = time.monotonic()
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        if kill_after_s is not None:
            thread.join(kill_after_s)
            pos.kill()
        thread.join(_PATIENCE_S)
        duration_s = time.monotonic() - began
        pos.close()
        return duration_s

    def _ask(self, method: str, **params: object) -> Any:  # noqa: ANN401 -- each method has a result of its own
        try:
            found = RIG_METHODS[method].result_of(self._program.ask(method, params, _PATIENCE_S))
        except (NotSent, NotAnswered, MissingResult) as failure:
            raise self._broken(str(failure)) from failure
        except ValidationError as odd:
            raise self._broken(f"its answer to {method}: {first_fault(odd)}") from odd
        if not isinstance(found, Failure):
            return found
        if found.kind == "CannotDo":
            raise CannotDo(found.message)
        raise self._broken(f"{method}: {found.message}")


# -- a vendor's folder

FILE = "process.toml"


class VendorFile(BaseModel):
    """What process.toml says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"[a-z][a-z0-9_]*")]
    summary: NonEmpty
    command: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]
    rig: tuple[NonEmpty, ...] = ()


class VendorOptions(ProcessOptions):
    """The same options; without `command` it is the one in process.toml."""

    command: tuple[NonEmpty, ...] = Field((), description="As in process.toml.")


@dataclass(frozen=True, slots=True)
class VendorOpening:
    """Opens the adapter of a vendor's folder."""

    command: tuple[str, ...]
    folder: Path

    def __call__(self, options: VendorOptions, context: AdapterContext) -> ProcessAdapter:
        """Start the program. Raises ValueError if it cannot be, or refuses."""
        if not options.command:
            options = options.model_copy(update={"command": self.command, "cwd": self.folder})
        return ProcessAdapter(options, context)


def vendor_folder(folder: Path) -> tuple[Adapter, type[ProcessRig] | None]:
    """Return the adapter in a folder with process.toml, and its rig. Raises ConfigError."""
    home = folder.resolve()
    path = home / FILE
    keys = _("It can have name, summary, command and rig.")
    table = read_toml(path)
    if strange := sorted(table.keys() - VendorFile.model_fields.keys()):
        raise ConfigError(
            _("{path}: {key} is not a known key.").format(path=path, key=strange[0]), fix=keys
        )
    try:
        content = VendorFile.model_validate(table)
    except ValidationError as failure:
        raise ConfigError(f"{path}: {first_fault(failure)}", fix=keys) from failure
    adapter = Adapter(
        name=content.name,
        summary=content.summary,
        options=VendorOptions,
        open=VendorOpening(content.command, home),
    )
    members: dict[str, Any] = {"adapter": adapter, "command": content.rig, "home": home}
    return adapter, type("VendorRig", (ProcessRig,), members) if content.rig else None
