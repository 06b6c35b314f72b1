"""Writes orders into the open session, finds them again, and cancels them.

The key of an order is in its receipt number (`pos_reference`), and it is searched for in every
state before anything is written: Odoo itself would take a resend whose lines differ for another
order. On 18 and later a draft is never put on a table: Odoo would merge it into whatever draft is
open there, or merge the waiter's next one into ours.
"""

import time
from datetime import UTC, datetime
from typing import Any

from tillbridge.adapter import (
    ListedTicket,
    Order,
    PosFailure,
    PosOffline,
    StoreClosed,
    Ticket,
    TicketOutcomeUnknown,
)
from tillbridge.adapter.texts import _
from tillbridge_odoo.basket import Till, Wanted, lines_of, wanted_of
from tillbridge_odoo.extras import extra_lines
from tillbridge_odoo.failures import asking, is_passing, nothing_written
from tillbridge_odoo.goods import read_goods
from tillbridge_odoo.listing import left_of
from tillbridge_odoo.odoo import LoginRefused, Odoo, Record
from tillbridge_odoo.options import OdooOptions
from tillbridge_odoo.payload import OdooFields, Sale, for_17, for_18
from tillbridge_odoo.prices import read_prices
from tillbridge_odoo.reference import Reference
from tillbridge_odoo.refunds import give_back, give_back_17, paid_by_us
from tillbridge_odoo.register import (
    NoSuchRegister,
    Register,
    Session,
    find_register,
    next_number,
    open_session,
    rounds_once,
    text,
)
from tillbridge_odoo.rpc import Fault, NoAnswer
from tillbridge_odoo.setup import is_17, online_table
from tillbridge_odoo.tables import read_tables, table_of
from tillbridge_odoo.updates import PREPARATION, is_sent

_ORDER = "pos.order"
_FOUND = ("pos_reference", "state", "name", "last_order_preparation_change")
_KINDS = {"dine_in": "Dine-in", "pickup": "Takeaway", "takeaway": "Takeaway"}
CLOSED = _("The point of sale {name} has no open session.")
_STILL_REFUNDING = _("Odoo may still be giving the order back: it has not answered the last try.")


class Tickets:
    """Orders of one store in one point of sale."""

    def __init__(self, odoo: Odoo, options: OdooOptions, currency: str) -> None:
        self._odoo = odoo
        self._options = options
        self._currency = currency
        self._refunding: dict[int, tuple[float, float]] = {}  # by order: until when, how long
        self._maps_relations = True

    def write(self, order: Order, key: str) -> Ticket:
        """Write the order, once. Raises a PosFailure."""
        reference = Reference(self._options.reference, key)
        with asking():
            found = self._record(reference)
            if found is not None:
                return _ticket(reference)
            wanted = wanted_of(order)
            register = self._register()
            session = self._session(register)
            sale = self._sale(order, reference, register, session, wanted)
        self._create(sale, wanted)
        return _ticket(reference)

    def find(self, key: str) -> Ticket | None:
        """Return the ticket of that key, whatever became of it. Raises PosOffline."""
        reference = Reference(self._options.reference, key)
        try:
            with asking():
                found = self._record(reference)
        except PosOffline:
            raise
        except PosFailure as failure:
            raise PosOffline(failure.message) from failure
        return None if found is None else _ticket(reference)

    def cancel(self, key: str) -> None:
        """Cancel the order, or give it back where it is paid. Raises a PosFailure."""
        reference = Reference(self._options.reference, key)
        with asking():
            found = self._record(reference)
            if found is not None:
                self._cancel(found, reference)

    def cancel_listed(self, ticket: ListedTicket) -> None:
        """Cancel one of several orders of a key. Raises a PosFailure; where staff has begun it."""
        reference = Reference(self._options.reference, ticket.key)
        number_ = int(ticket.record.rpartition(" ")[2])
        with asking():
            found = self._odoo.read_ids(_ORDER, [number_], _FOUND).get(number_)
            if found is None or text(found["pos_reference"]) != reference.text:
                return
            if found["state"] == "draft" and is_sent(text(found.get(PREPARATION))):
                raise PosFailure(_("Staff has sent it to the kitchen."))
            self._cancel(found, reference)

    def _cancel(self, found: Record, reference: Reference) -> None:
        if found["state"] == "draft":
            ids = [found["id"]]
            self._odoo.call(
                _ORDER,
                "action_pos_order_cancel",
                ids,
                changes=True,
                context={"active_ids": ids, "active_model": _ORDER},
            )
            again = self._odoo.read_ids(_ORDER, ids, _FOUND)
            if found["id"] not in again:
                return
            found = again[found["id"]]
        if found["state"] != "cancel":
            if self._options.paid_cancelled == "refuse":
                raise PosFailure(
                    _("The order {digits} is paid in Odoo.").format(digits=reference.digits),
                    fix=_("Give the money of the order {digits} back in Odoo.").format(
                        digits=reference.digits
                    ),
                )
            self._give_back(found["id"], reference)

    def _give_back(self, order: int, reference: Reference) -> None:
        until, waited_s = self._refunding.get(order, (0.0, 0.0))
        late = time.monotonic() < until
        paid = paid_by_us(self._odoo, order, reference)
        if late and left_of(self._odoo, [order]):
            raise PosOffline(_STILL_REFUNDING)
        try:
            if is_17(self._odoo):
                give_back_17(self._odoo, paid, self._register(), _now())
            else:
                give_back(self._odoo, paid)
        except NoAnswer as failure:
            if failure.sent:
                wait_s = max(2 * waited_s, self._options.late_s)
                self._refunding[order] = (time.monotonic() + wait_s, wait_s)
            raise

    def _record(self, reference: Reference) -> Record | None:
        """Return the order, whatever its state; a refund has the same number, and comes later."""
        found = self._odoo.read(
            _ORDER, [["pos_reference", "=", reference.text]], _FOUND, order="id", limit=1
        )
        return found[0] if found else None

    def _register(self) -> Register:
        try:
            register = find_register(self._odoo, self._options.pos)
        except NoSuchRegister as missing:
            raise PosFailure(missing.text, fix=missing.fix) from missing
        if register.currency != self._currency:
            raise PosFailure(
                _("{name} sells in {currency}, and the store in {store_currency}.").format(
                    name=register.name, currency=register.currency, store_currency=self._currency
                )
            )
        return register

    def _session(self, register: Register) -> Session:
        session = open_session(self._odoo, register)
        if session is None:
            raise StoreClosed(CLOSED.format(name=register.name))
        return session

    def _sale(
        self,
        order: Order,
        reference: Reference,
        register: Register,
        session: Session,
        wanted: tuple[Wanted, ...],
    ) -> Sale:
        options = self._options
        lines = lines_of(wanted, read_goods(self._odoo, register, wanted), self._till(register))
        lines += extra_lines(self._odoo, register, options, order)
        paid_by = self._payment_method(register) if options.orders == "paid" else None
        tables = read_tables(self._odoo, register, register.context)
        online = online_table(self._odoo, register, options, tables)
        if online.refusal is not None:
            raise PosOffline(online.refusal.text, fix=online.refusal.fix)
        table = table_of(order, tables, options.table_field, options.table_words)
        number = order.order_number or order.id
        old = is_17(self._odoo)
        on_table = (table or online.table) if paid_by is not None or old else None
        table_name = "" if table is None else table.name
        return Sale(
            reference=reference,
            register=register,
            session=session,
            user=self._odoo.uid,
            lines=lines,
            at=_now(),
            paid_by=paid_by,
            once=rounds_once(self._odoo, register),
            table=None if on_table is None else on_table.id,
            label=" ".join(each for each in (options.reference, number, table_name) if each),
            note=_note(order, "" if on_table is not None else table_name),
            number=next_number(self._odoo, session),
            notes_to_kitchen=old and "note" in self._odoo.fields("pos.order.line"),
        )

    def _till(self, register: Register) -> Till:
        return Till(
            currency=register.currency,
            mode=self._options.prices,
            prices=read_prices(self._odoo, register),
            check=self._options.order_prices == "check",
        )

    def _create(self, sale: Sale, wanted: tuple[Wanted, ...]) -> None:
        try:
            with asking():
                asked = self._asked(sale)
            self._send(sale, asked)
        except NoAnswer as failure:
            if not failure.sent:
                raise PosOffline(failure.text) from failure
            raise TicketOutcomeUnknown(failure.text) from failure
        except LoginRefused as failure:
            raise nothing_written(failure) from failure
        except Fault as fault:
            raise self._refusal(sale, wanted, fault) from fault

    def _asked(self, sale: Sale) -> tuple[str, list[Any]]:
        if is_17(self._odoo):
            return "create_from_ui", [[for_17(sale)], sale.paid_by is None]
        fields = OdooFields(
            order=self._odoo.fields(_ORDER),
            line=self._odoo.fields("pos.order.line"),
            payment=self._odoo.fields("pos.payment"),
            maps_relations=self._maps_relations,
        )
        return "sync_from_ui", [[for_18(sale, fields)]]

    def _send(self, sale: Sale, asked: tuple[str, list[Any]]) -> None:
        method, arguments = asked
        context = dict(sale.register.context)
        try:
            self._odoo.call(_ORDER, method, *arguments, changes=True, context=context)
        except Fault as fault:
            # Early versions of 18 know combos by another word, and write nothing of this one.
            if not (self._maps_relations and "relations_uuid_mapping" in fault.text):
                raise
            self._maps_relations = False
            method, arguments = self._asked(sale)
            self._odoo.call(_ORDER, method, *arguments, changes=True, context=context)

    def _refusal(self, sale: Sale, wanted: tuple[Wanted, ...], fault: Fault) -> PosFailure:
        """Return what a refusal comes from: Odoo has it, is closed, lacks a product, or else."""
        if is_passing(fault):
            return TicketOutcomeUnknown(_("Odoo's database is busy."))
        try:
            with asking():
                if self._record(sale.reference) is not None:
                    return TicketOutcomeUnknown(fault.text)
                if open_session(self._odoo, sale.register) is None:
                    return StoreClosed(CLOSED.format(name=sale.register.name))
                goods = read_goods(self._odoo, sale.register, wanted)
                lines_of(wanted, goods, self._till(sale.register))
        except PosOffline:
            return TicketOutcomeUnknown(fault.text)
        except PosFailure as failure:
            return failure
        return nothing_written(fault)

    def _payment_method(self, register: Register) -> int:
        wanted = self._options.payment_method
        found = self._odoo.read(
            "pos.payment.method",
            [["id", "in", list(register.payment_methods)]],
            ["name", "type", "is_cash_count", "use_payment_terminal"],
            context=register.context,
        )
        for each in found:
            fits = (
                each["type"] == "bank" and not each.get("use_payment_terminal")
                if wanted is None
                else wanted in (each["id"], each["name"])
            )
            if fits:
                method: int = each["id"]
                return method
        names = ", ".join(text(each["name"]) for each in found) or _("none")
        missing = (
            _("{name} has no payment method of the type bank; it has: {names}.")
            if wanted is None
            else _("{name} has no payment method {wanted!r}; it has: {names}.")
        )
        raise PosFailure(
            missing.format(name=register.name, wanted=wanted, names=names),
            fix=_("Name one in the option {option}.").format(option="payment_method"),
        )


def _ticket(reference: Reference) -> Ticket:
    return Ticket(reference.digits)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _note(order: Order, table: str) -> str:
    """Return what staff reads with the order: number, kind, table where it is on none, words."""
    number = f"#{order.order_number}" if order.order_number else ""
    kind = _KINDS.get(order.order_type, order.order_type.replace("_", " ").capitalize())
    parts = [
        f"{number} {kind}",
        f"Table {table}" if table else "",
        order.special_instructions,
    ]
    return " - ".join(" ".join(part.split()) for part in parts if part.strip())
