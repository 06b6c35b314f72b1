"""Checks of how an adapter writes orders: one order, one ticket, whatever happens."""

import importlib
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

from tillbridge.adapter.conformance.rig import CannotDo, Rig
from tillbridge.adapter.conformance.subject import (
    Subject,
    Violation,
    able,
    in_time,
    items_to_order,
    one_ticket,
    order_of,
    plain_items,
    tickets_of,
    writer,
)
from tillbridge.adapter.failures import (
    ItemUnavailable,
    PosFailure,
    PosOffline,
    StoreClosed,
    TicketOutcomeUnknown,
)
from tillbridge.adapter.protocols import (
    CancelsTickets,
    ListsTickets,
    MarksTickets,
    WritesLate,
    WritesTickets,
)
from tillbridge.adapter.registration import Adapter, AdapterContext, home_of
from tillbridge.adapter.values import ListedTicket, TicketMark
from tillbridge.model.catalogue import Item
from tillbridge.model.order import Order

_ENDINGS = 16
KILLED = 77
_NEVER = sys.maxsize
_MOST_MOMENTS = 40
_PATIENCE_S = 120.0
_FIND_FIRST = (
    "Write the key with the ticket, in one step, and look for it before writing: find_ticket must"
    " find what write_ticket wrote."
)


def writes_one_ticket(subject: Subject) -> str:
    """Write an order twice with one key: the till has one ticket, with the order's lines."""
    with subject.till() as rig:
        sold = items_to_order(rig, plain_items())
        order = order_of("ord_twice_1", sold)
        pos = writer(rig.open())
        first = pos.write_ticket(order, order.id)
        second = pos.write_ticket(order, order.id)
        ticket = one_ticket(rig, order.id, "writing it twice", fix=_FIND_FIRST)
        if first != second:
            raise Violation(
                f"Written twice, the order has two references: {first.reference!r} and"
                f" {second.reference!r}.",
                fix="Return the ticket that is there already.",
            )
        wanted = sorted((item.external_id, 1) for item in sold)
        if sorted(ticket.counts) != wanted:
            raise Violation(
                f"The order has the lines {wanted}, the ticket {sorted(ticket.counts)}.",
                fix="Write every line with its quantity.",
            )
        found = writer(rig.open()).find_ticket(order.id)
        if found != first:
            raise Violation(
                f"find_ticket gives {found}, write_ticket gave {first}.",
                fix=_FIND_FIRST,
                method="find_ticket",
            )
        if writer(rig.open()).find_ticket("ord_never_written") is not None:
            raise Violation(
                "find_ticket finds an order that was never written.",
                fix="Return None for a key that the till does not have.",
                method="find_ticket",
            )
        return "one ticket, found again"


def survives_being_killed(subject: Subject) -> str:
    """Kill the adapter at each line of its writing; look, write again: one ticket."""
    with subject.till() as rig:
        sold = items_to_order(rig, plain_items(2))
        writer(rig.open())
        rig.tickets()
        orders = [order_of(f"ord_killed_{number}", sold) for number in range(_MOST_MOMENTS + 1)]
        work = Work(type(rig).adapter, dict(rig.options()), rig.context(), tuple(orders))
        lines = die(work)
        if not lines:
            raise CannotDo("The adapter's code could not be run in a process of its own.")
        deaths = work.deaths(lines)
        keys = [each.id for each in orders]
        restarted = writer(rig.open())  # as the bridge: one for all that was under way
        for death in deaths:
            _take_up(restarted, death.order)
            one_ticket(
                rig,
                death.order.id,
                f"being killed at line {death.line} of {lines} and taking the order up again",
                fix=_FIND_FIRST,
                also=keys,
            )
        return f"killed {len(deaths) + _kill_its_program(rig, sold, keys)} times"


def _kill_its_program(rig: Rig, sold: Sequence[Item], keys: Sequence[str]) -> int:
    orders = [order_of(f"ord_ended_{number}", sold) for number in range(_ENDINGS)]
    try:
        count = rig.kill_writing(orders)
    except CannotDo:
        return 0
    restarted = writer(rig.open())
    for order in orders:
        _take_up(restarted, order)
        one_ticket(
            rig,
            order.id,
            "its program was ended while writing, and taking the order up again",
            fix=_FIND_FIRST,
            also=[*keys, *(each.id for each in orders)],
        )
    return count


def survives_a_lost_answer(subject: Subject) -> str:
    """Lose the till's answer to a write that it did: the outcome is unknown, never two tickets."""
    with subject.till() as rig:
        sold = items_to_order(rig, plain_items(2))
        order = order_of("ord_lost_answer", sold)
        pos = writer(rig.open())
        rig.lose_next_answer()
        ticket = None
        try:
            ticket = in_time(rig, "write_ticket", lambda: pos.write_ticket(order, order.id))
        except TicketOutcomeUnknown:
            pass
        except PosOffline as failure:
            if tickets_of(rig, order.id):
                raise Violation(
                    f"The till has the order, and the adapter says that it was offline ({failure})",
                    fix="Raise TicketOutcomeUnknown where the order may have got through; the core"
                    " then asks find_ticket. PosOffline means that surely nothing was written.",
                ) from failure
        _take_up(writer(rig.open()), order)
        one_ticket(rig, order.id, "a lost answer and taking the order up again", fix=_FIND_FIRST)
        found = writer(rig.open()).find_ticket(order.id) if ticket is not None else None
        if found != ticket:
            raise Violation(
                f"The answer got lost, and write_ticket gives {ticket}; find_ticket gives {found}.",
                fix="Raise TicketOutcomeUnknown: the till has not said that it has the order.",
            )
        return "unknown, found, one ticket"


def survives_hanging_writes(subject: Subject) -> str:
    """Let two writes of an order hang and then be carried out: one ticket is left in the end."""
    with subject.till() as rig:
        sold = items_to_order(rig, plain_items(2))
        order = order_of("ord_hanging", sold)
        pos = rig.open()
        rig.hang_writes()
        for _time in range(2):
            try:
                in_time(rig, "write_ticket", lambda: writer(pos).write_ticket(order, order.id))
            except (TicketOutcomeUnknown, PosOffline):
                continue
            raise Violation(
                "The till has not carried out the write, and the adapter returns a ticket.",
                fix="Return the ticket once the till has said that it has it for good.",
            )
        rig.carry_out_writes()
        live = _live(rig, order)
        if live == 1:
            return "one ticket, whatever was asked"
        if live and not (isinstance(pos, WritesLate) and pos.late_write_s() > 0):
            raise Violation(
                f"Written again while the first write hung, the till has {live} tickets.",
                fix="Say with late_write_s how long a write may hang: the bridge waits for it."
                " Better still, let the till refuse a second ticket with the same key.",
            )
        listing = able(rig.open(), ListsTickets)
        listed = [each for each in listing.list_tickets() if each.key == order.id and each.live]
        for each in listed[1:]:
            for _time in range(2):
                listing.cancel_listed_ticket(each, order, "The order is in the till twice")
        if (left := _live(rig, order)) != 1:
            raise Violation(
                f"The adapter lists {len(listed)} of {live} tickets, and {left} are left when all"
                " but the oldest are cancelled.",
                fix="list_tickets returns every ticket of a key; cancel_listed_ticket cancels the"
                " one it is given, and no other.",
            )
        return f"{live} tickets, all listed, one left"


def lists_its_tickets(subject: Subject) -> str:
    """Write two orders and list them: both by their keys; cancelling one leaves the other."""
    with subject.till() as rig:
        sold = items_to_order(rig, plain_items(2))
        orders = [order_of(key, sold) for key in ("ord_listed_1", "ord_listed_2")]
        pos = rig.open()
        listing = able(pos, ListsTickets)
        for order in orders:
            writer(pos).write_ticket(order, order.id)
        first = _listed(listing, orders)
        for _time in range(2):
            listing.cancel_listed_ticket(first[0], orders[0], "The customer changed her mind")
        if (live := [_live(rig, order) for order in orders]) != [0, 1]:
            raise Violation(
                f"One of two listed tickets was cancelled; of the orders {live} are left.",
                fix="cancel_listed_ticket cancels the ticket it is given, and no other.",
                method="cancel_listed_ticket",
            )
        if [each.live for each in _listed(listing, orders)] != [False, True]:
            raise Violation(
                "A cancelled ticket is listed as a good one, or a good one as cancelled.",
                fix="list_tickets lists cancelled tickets too, with live=False.",
            )
        return "two tickets, one cancelled"


def _listed(listing: ListsTickets, orders: Sequence[Order]) -> Sequence[ListedTicket]:
    keys = [order.id for order in orders]
    found = [each for each in listing.list_tickets() if each.key in keys]
    if (listed := [each.key for each in found]) != keys:
        raise Violation(
            f"Of the orders {keys} it lists {listed}.",
            fix="list_tickets returns every ticket written with a key, oldest first.",
        )
    return found


def _live(rig: Rig, order: Order) -> int:
    return sum(1 for ticket in tickets_of(rig, order.id) if not ticket.cancelled)


def refuses_unknown_items(subject: Subject) -> str:
    """Order an item that the till does not know: ItemUnavailable names it, nothing is written."""
    with subject.till() as rig:
        sold = items_to_order(rig, plain_items(2))
        unknown = Item(external_id="no-such-item-4711", name="Nothing", price=100)
        order = order_of("ord_unknown_item", [*sold, unknown])
        return _refused(
            rig,
            order,
            ItemUnavailable,
            lambda failure: unknown.external_id in getattr(failure, "external_ids", ()),
            f"external_ids must name {unknown.external_id}",
        )


def refuses_when_closed(subject: Subject) -> str:
    """Order while the till takes none: StoreClosed, nothing is written."""
    with subject.till() as rig:
        sold = items_to_order(rig, plain_items(1))
        rig.close_store()
        order = order_of("ord_closed", sold)
        return _refused(rig, order, StoreClosed, lambda _failure: True, "")


def cancels_safely(subject: Subject) -> str:
    """Cancel a ticket twice, and one that never was; the order never comes back by itself."""
    with subject.till() as rig:
        sold = items_to_order(rig, plain_items(2))
        order, never = order_of("ord_cancel", sold), order_of("ord_never", sold)
        pos = rig.open()
        cancelling = able(pos, CancelsTickets)
        writer(pos).write_ticket(order, order.id)
        for _time in range(2):
            cancelling.cancel_ticket(order, order.id, "The customer changed her mind")
        cancelling.cancel_ticket(never, never.id, "Never written")
        if any(not ticket.cancelled for ticket in tickets_of(rig, order.id)):
            raise Violation(
                "The till still has the order as a good one.",
                fix="cancel_ticket must take the ticket out of the kitchen, or mark it cancelled.",
            )
        if tickets_of(rig, never.id):
            raise Violation(
                "Cancelling an order that was never written has written it.",
                fix="cancel_ticket does nothing for a key that the till does not have.",
            )
        if writer(rig.open()).find_ticket(order.id) is None:
            raise Violation(
                "find_ticket no longer finds the cancelled order: it would be written again.",
                fix="Remember the key of a cancelled ticket, so that it is found.",
                method="find_ticket",
            )
        return "twice, and never written"


def _refused(
    rig: Rig,
    order: Order,
    kind: type[PosFailure],
    right: Callable[[PosFailure], bool],
    detail: str,
) -> str:
    pos = writer(rig.open())
    try:
        in_time(rig, "write_ticket", lambda: pos.write_ticket(order, order.id))
    except PosFailure as failure:
        if not isinstance(failure, kind) or not right(failure):
            raise Violation(
                f"It is refused with {type(failure).__name__} ({failure}).",
                fix=f"Raise {kind.__name__}{f'; {detail}' if detail else ''}.",
            ) from failure
    else:
        raise Violation(
            "It is written all the same.", fix=f"Ask the till first, and raise {kind.__name__}."
        )
    if tickets_of(rig, order.id):
        raise Violation(
            "It is refused, and the till has a ticket of it.",
            fix="Write all lines of an order in one step, or none.",
        )
    return f"{kind.__name__}, nothing written"


def _take_up(pos: WritesTickets, order: Order) -> None:
    """Do what the bridge does after a crash: ask, and write where there is surely nothing.

    If that cannot be known, it is written again with a mark, if the adapter has marks.
    """
    try:
        found = pos.find_ticket(order.id)
    except TicketOutcomeUnknown:
        if not isinstance(pos, MarksTickets):
            raise
        pos.write_marked_ticket(order, order.id, {TicketMark.POSSIBLE_DUPLICATE})
    else:
        if found is None:
            pos.write_ticket(order, order.id)


# -- killing an adapter in the middle of its work, at any line of its own code: the work runs in a
# process of its own, which counts the lines it executes in the adapter's package and ends itself,
# without any clean-up, at the one it was given


@dataclass(frozen=True, slots=True)
class Death:
    """An order to write, and the line (from 1) of the adapter's code to die at."""

    order: Order
    line: int


@dataclass(frozen=True, slots=True)
class Work:
    """Orders to write with an adapter; all of it can be handed to another process."""

    adapter: Adapter
    options: dict[str, Any]
    context: AdapterContext
    orders: tuple[Order, ...]

    def deaths(self, lines: int) -> Sequence[Death]:
        """Return where to die with each order but the first, which takes so many lines."""
        return [Death(*each) for each in zip(self.orders[1:], moments(lines), strict=False)]


def die(work: Work) -> int:
    """Write the first order to its end, each other in a process that dies at another line.

    Return how many lines of the adapter the first took; 0 if it did not come to its end.
    """
    if hasattr(os, "fork"):
        return next(iter(_in_process(_fork_each, work)), 0)
    lines = next(iter(_in_process(_write_and_die, work, Death(work.orders[0], _NEVER))), 0)
    for death in work.deaths(lines):
        _in_process(_write_and_die, work, death)
    return lines


def moments(lines: int) -> Sequence[int]:
    """Return the lines to die at: all of them, or forty spread evenly, the last among them."""
    if lines <= _MOST_MOMENTS:
        return range(1, lines + 1)
    step = (lines - 1) / (_MOST_MOMENTS - 1)
    return sorted({1 + round(number * step) for number in range(_MOST_MOMENTS)})


def _in_process(target: Any, *given: object) -> list[int]:  # noqa: ANN401 -- a function of this module
    # A fresh interpreter: nothing of this one's threads or open files goes with it.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_quietly, args=(target, sender, given), daemon=True)
    process.start()
    sender.close()
    lines: list[int] = []
    try:
        while receiver.poll(_PATIENCE_S):
            told = receiver.recv()
            if isinstance(told, str):
                raise CannotDo(f"The adapter's code fails in a process of its own: {told}")
            lines.append(int(told))
    except EOFError:
        pass  # it has come to its end, or died, as it should
    finally:
        receiver.close()
    process.join(_PATIENCE_S)
    if process.is_alive():
        process.kill()
        process.join()
    return lines


def _quietly(target: Any, sender: Connection, given: Sequence[object]) -> None:  # noqa: ANN401 -- (as above)
    """Run it without its words: stdout is where the report goes, and it may print a secret."""
    with Path(os.devnull).open("wb") as nowhere:
        for descriptor in (1, 2):
            os.dup2(nowhere.fileno(), descriptor)
    try:
        target(*given, sender)
    except Exception as failure:  # noqa: BLE001 -- whatever an adapter raises that it should not
        *_others, last = traceback.extract_tb(failure.__traceback__)
        place = f"{Path(last.filename).name}, line {last.lineno}"
        sender.send(f"{type(failure).__name__}: {failure} ({place})")


def _fork_each(work: Work, sender: Connection) -> None:
    """Live and die once for each order, in a child each: a fork costs a hundredth of a start."""
    lines, modules = _forked(work, Death(work.orders[0], _NEVER))
    sender.send(lines)
    for name in modules:  # what the first imported, each of the others would import again
        with suppress(ImportError):
            importlib.import_module(name)
    for death in work.deaths(lines):
        sender.send(_forked(work, death)[0])


def _forked(work: Work, death: Death) -> tuple[int, Sequence[str]]:
    """Return how many lines it took and what was imported by then; 0 and nothing if it died."""
    if sys.platform == "win32":
        raise OSError("Windows has no fork")
    receiving, sending = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if not child:
        receiving.close()
        _write_and_die(work, death, sending)
        sending.send(list(sys.modules))
        os._exit(0)
    sending.close()
    try:
        return int(receiving.recv()), receiving.recv()
    except EOFError:
        return 0, ()
    finally:
        receiving.close()
        os.waitpid(child, 0)


def _write_and_die(work: Work, death: Death, sender: Connection) -> None:
    """Write the order in this process, and die at that line of the adapter's package."""
    home = str(home_of(work.adapter))
    count = 0

    def on_line(_frame: FrameType, event: str, _argument: object) -> Any:  # noqa: ANN401 -- as sys.settrace wants it
        nonlocal count
        if event == "line":
            count += 1
            if count >= death.line:
                os._exit(KILLED)
        return on_line

    def on_call(frame: FrameType, _event: str, _argument: object) -> Any:  # noqa: ANN401 -- as sys.settrace wants it
        return on_line if frame.f_code.co_filename.startswith(home) else None

    options = work.adapter.options.model_validate(work.options)
    pos = work.adapter.open(options, work.context)
    if not isinstance(pos, WritesTickets):
        os._exit(1)
    sys.settrace(on_call)
    try:
        pos.write_ticket(death.order, death.order.id)
    except PosFailure:
        pass  # the check that asks looks at what the till holds
    finally:
        sys.settrace(None)
    sender.send(count)
