"""A till for tests that is a program too: a vendor writes it in the language of the adapter."""

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from tillbridge.adapter import Item, Order, PosFailure, RejectReason, Table, TicketStatus
from tillbridge.adapter.conformance import CannotDo, Rig, RigTicket
from tillbridge.adapter.normalised import item_json, table_json
from tillbridge.model.money import exponent
from tillbridge.pos.process.adapter import ProcessAdapter
from tillbridge.pos.process.child import environment
from tillbridge.pos.process.keeper import Keeper, Limits, NotAnswered, NotAsked, Unusable
from tillbridge.pos.process.rig_wire import (
    FilesRigSaid,
    ItemsSaid,
    OptionsSaid,
    RigHello,
    RigTablesSaid,
    TicketsSaid,
)
from tillbridge.pos.process.wire import Message
from tillbridge.pos.process.words import Words

T = TypeVar("T", bound=Message)

_PATIENCE_S = 30.0


class RigBroken(Exception):
    """The rig's program does not do what it must; that is no fault of the adapter."""


class ProcessRig(Rig):
    """Asks the rig's program; `command` is run in `home`, the vendor's folder."""

    command: ClassVar[tuple[str, ...]]
    home: ClassVar[Path]

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        program = self.command[0]
        by_path = Path(program).parent != Path()
        self._program = Keeper(
            (str(self.home / program) if by_path else program, *self.command[1:]),
            cwd=self.home,
            env=environment((), os.environ),
            hello=RigHello(folder=str(folder)).model_dump(),
            limits=Limits(start_s=_PATIENCE_S, restart_cap_s=_PATIENCE_S, steady_s=_PATIENCE_S),
            words=Words("rig"),
        )
        try:
            hello = self._program.start()
        except Unusable as failure:
            raise RigBroken(str(failure)) from failure
        if hello is None:
            raise RigBroken(self._program.absence())

    def close(self) -> None:
        """Let the rig's program end."""
        self._program.close()

    def options(self) -> Mapping[str, Any]:
        """Return what the program's options are on this till."""
        return {"options": self._ask("options", OptionsSaid).options}

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Ask the rig to sell them."""
        said = self._ask(
            "sell",
            ItemsSaid,
            items=[item_json(item) for item in items],
            currency=currency,
            decimals=exponent(currency),
        )
        return said.items

    def rename(self, external_id: str, name: str) -> None:
        """Ask the rig to rename an item."""
        self._do("rename", external_id=external_id, name=name)

    def reorder(self) -> None:
        """Ask the rig to export in another order."""
        self._do("reorder")

    def sell_out(self, external_id: str) -> None:
        """Ask the rig to sell out an item."""
        self._do("sell_out", external_id=external_id)

    def exports(self) -> Sequence[Path]:
        """Return the files the menu is read from."""
        return [self.folder / each for each in self._ask("exports", FilesRigSaid).files]

    def furnish(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Ask the rig to have these tables."""
        said = self._ask("furnish", RigTablesSaid, tables=[table_json(table) for table in tables])
        return said.tables

    def tickets(self) -> Sequence[RigTicket]:
        """Return the tickets in the till."""
        return [
            RigTicket(
                each.key,
                tuple((line.external_id, line.quantity) for line in each.lines),
                cancelled=each.cancelled,
            )
            for each in self._ask("tickets", TicketsSaid).tickets
        ]

    def tell(
        self,
        order_id: str,
        status: TicketStatus,
        *,
        reason: RejectReason | None = None,
        external_ids: Sequence[str] = (),
    ) -> None:
        """Ask the rig to tell news."""
        self._do(
            "tell",
            order_id=order_id,
            status=status.value,
            reason=None if reason is None else reason.value,
            external_ids=list(external_ids),
        )

    def close_store(self) -> None:
        """Ask the rig to close."""
        self._do("close_store")

    def go_offline(self) -> None:
        """Ask the rig to be away."""
        self._do("go_offline")

    def come_back(self) -> None:
        """Ask the rig to be back."""
        self._do("come_back")

    def lose_next_answer(self) -> None:
        """Ask the rig to lose the till's next answer."""
        self._do("lose_next_answer")

    def hang_writes(self) -> None:
        """Ask the rig to let writes wait."""
        self._do("hang_writes")

    def carry_out_writes(self) -> None:
        """Ask the rig to carry out what waits."""
        self._do("carry_out_writes")

    def answer_slowly(self, delay_s: float) -> None:
        """Ask the rig to be slow."""
        self._do("answer_slowly", delay_s=delay_s)

    def kill_writing(self, orders: Sequence[Order]) -> int:
        """Write each order, and end the program at another moment of it; return how many."""
        first, *others = orders
        took_s = self._write(first, None)
        for number, order in enumerate(others):
            self._write(order, took_s * 1.2 * number / len(others))
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
        took_s = time.monotonic() - began
        pos.close()
        return took_s

    def _do(self, method: str, **params: object) -> None:
        self._result(method, params)

    def _ask(self, method: str, kind: type[T], **params: object) -> T:
        return kind.model_validate_json(json.dumps(self._result(method, params)))

    def _result(self, method: str, params: Mapping[str, Any]) -> object:
        try:
            said = json.loads(self._program.ask(method, params, _PATIENCE_S))
        except (NotAsked, NotAnswered) as failure:
            raise RigBroken(f"The rig fails: {failure}") from failure
        error = said.get("error")
        if error is None:
            return said.get("result")
        if error.get("kind") == "CannotDo":
            raise CannotDo(str(error.get("message", "")))
        raise RigBroken(f"The rig fails at {method}: {error.get('message', '')}")
