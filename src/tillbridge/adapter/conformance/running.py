"""Checks of how an adapter behaves beside the till: what it declares, health, news, trouble."""

from collections.abc import Callable

from pydantic import ValidationError

from tillbridge.adapter.conformance.rig import CannotDo, Rig
from tillbridge.adapter.conformance.subject import (
    Subject,
    Violation,
    able,
    can,
    capabilities_of,
    in_time,
    items_to_order,
    one_ticket,
    order_of,
    plain_items,
    reader,
    tickets_of,
    writer,
)
from tillbridge.adapter.failures import ExportUnreadable, PosFailure, PosOffline
from tillbridge.adapter.protocols import ReportsHealth, ReportsTicketUpdates
from tillbridge.adapter.registration import API_VERSION
from tillbridge.adapter.values import Health, TicketStatus
from tillbridge.model.order import Order

_SLOW_S = 60.0


def does_what_it_declares(subject: Subject) -> str:
    """Compare what the adapter declares with what its object can do."""
    adapter = subject.rig.adapter
    if adapter.api_version != API_VERSION:
        raise Violation(
            f"It is for version {adapter.api_version} of the adapter API; this is {API_VERSION}.",
            fix="Read the changes of the API in docs/adapters/, then set api_version.",
        )
    if not adapter.name or not adapter.summary:
        raise Violation("It has no name or no summary.", fix="Give both to Adapter(...).")
    _refuses_strange_options(subject)
    with subject.till() as rig:
        pos = rig.open()
        found = capabilities_of(pos)
        subject.witness.check_text(repr(pos), "shows in its repr()")
        options = adapter.options.model_validate(dict(rig.options()))
        subject.witness.check_text(repr(options), "shows in repr() of its options")
    if subject.declared is None:
        raise CannotDo(f"There is no quality.toml; found: {', '.join(sorted(found)) or 'nothing'}.")
    if found != subject.declared:
        undeclared = ", ".join(sorted(subject.declared - found))
        only_done = ", ".join(sorted(found - subject.declared))
        raise Violation(
            " ".join(
                text
                for text in (
                    f"It declares {undeclared}, and cannot do it." if undeclared else "",
                    f"It can do {only_done}, and does not declare it." if only_done else "",
                )
                if text
            ),
            fix="Correct `capabilities` in quality.toml, or the adapter.",
        )
    return ", ".join(sorted(found))


def probes_without_side_effects(subject: Subject) -> str:
    """Ask three times whether the till is there: nothing in it changes."""
    with subject.till() as rig:
        items_to_order(rig, plain_items(2))
        pos = able(rig.open(), ReportsHealth)
        before = rig.state()
        answers = [in_time(rig, "health", pos.health) for _time in range(3)]
        if rig.state() != before:
            raise Violation(
                "Asking for its health has changed something in the till.",
                fix="Ask only what changes nothing: no test orders, no files, no log-ins kept.",
            )
        if not all(answer.online for answer in answers):
            raise Violation(
                f"The till is there, and health says that it is not: {answers[0].detail}",
                fix="Return Health(online=True) for a till that answers.",
            )
        return "asked three times, nothing changed"


def goes_offline_and_comes_back(subject: Subject) -> str:
    """Disconnect and reconnect the till: this is reported, nothing is written, and it recovers."""
    with subject.till() as rig:
        sold = items_to_order(rig, plain_items(2))
        pos = rig.open()
        order = order_of("ord_offline", sold)
        rig.go_offline()
        if can(pos, "health"):
            _check_offline(rig, pos)
        if can(pos, "tickets"):
            writing = writer(pos)
            _is_offline(rig, "write_ticket", lambda: writing.write_ticket(order, order.id))
            if not can(pos, "marks"):  # paper is not asked: what is known of it, the adapter knows
                _is_offline(rig, "find_ticket", lambda: writing.find_ticket(order.id))
        elif can(pos, "catalogue"):
            _is_offline(rig, "read_catalogue", reader(rig, pos))
        rig.come_back()
        if can(pos, "health") and not able(pos, ReportsHealth).health().online:
            raise Violation(
                "The till is back, and health still says that it is away.",
                fix="Connect anew when a connection has died; keep no verdict.",
            )
        if can(pos, "tickets"):
            if tickets_of(rig, order.id):
                raise Violation(
                    "PosOffline was raised, and the till has the order.",
                    fix="PosOffline means that surely nothing was written.",
                    method="write_ticket",
                )
            writer(pos).write_ticket(order, order.id)
            one_ticket(rig, order.id, "coming back", fix="Write it once.")
        return "away and back, with the same object"


def does_not_hang(subject: Subject) -> str:
    """Let the till answer after a minute: no call waits that long."""
    with subject.till() as rig:
        sold = items_to_order(rig, plain_items(1))
        pos = rig.open()
        order = order_of("ord_slow", sold)
        rig.answer_slowly(_SLOW_S)
        if can(pos, "health"):
            _check_offline(rig, pos)
        if can(pos, "tickets"):
            writing = writer(pos)
            try:
                in_time(rig, "write_ticket", lambda: writing.write_ticket(order, order.id))
            except PosFailure:
                pass
            else:
                raise Violation(
                    "write_ticket returns a ticket before the till has answered.",
                    fix="Return a ticket only when the till has confirmed it.",
                    method="write_ticket",
                )
    # Another till: this one may still work on what nobody waits for any more.
    with subject.till() as rig:
        pos = rig.open()
        if can(pos, "tickets"):
            sold = items_to_order(rig, plain_items(1))
            _believes_no_silence(rig, pos, order_of("ord_not_taken", sold))
    return "gave up in time"


def _believes_no_silence(rig: Rig, pos: object, order: Order) -> None:
    """Let the write alone hang: what was asked before it has been answered at once."""
    try:
        rig.hang_writes()
    except CannotDo:
        return
    try:
        ticket = in_time(rig, "write_ticket", lambda: writer(pos).write_ticket(order, order.id))
    except PosFailure:
        return
    finally:
        rig.carry_out_writes()
    raise Violation(
        f"The till has not taken the order, and write_ticket gives {ticket}.",
        fix="Raise TicketOutcomeUnknown where no answer came.",
        method="write_ticket",
    )


def returns_updates_until_handled(subject: Subject) -> str:
    """Report updates out of order, twice and of unknown orders: each is returned until handled."""
    with subject.till() as rig:
        sold = items_to_order(rig, plain_items(1))
        pos = rig.open()
        reporter = able(pos, ReportsTicketUpdates)
        order = order_of("ord_news", sold)
        if can(pos, "tickets"):
            writer(pos).write_ticket(order, order.id)
        wanted = [TicketStatus.ACCEPTED, TicketStatus.READY, TicketStatus.PREPARING]
        for status in wanted:
            rig.report_progress(order.id, status)
        first = [each for each in reporter.read_updates() if each.order_id == order.id]
        if [each.status for each in first] != wanted:
            raise Violation(
                f"The till told {_statuses(wanted)}; the adapter tells"
                f" {_statuses([each.status for each in first])}.",
                fix="Tell news as it is, in the till's order; the core knows what it means.",
            )
        again = [each.key for each in reporter.read_updates() if each.order_id == order.id]
        if again != [each.key for each in first]:
            raise Violation(
                "News that was not handled is not told again.",
                fix="Keep reporter a piece of news, under one key, until update_handled names it.",
            )
        for update in (*first, first[0]):
            reporter.update_handled(update)
        later = [
            each
            for source in (reporter, able(rig.open(), ReportsTicketUpdates))
            for each in source.read_updates()
            if each.order_id == order.id
        ]
        if later:
            raise Violation(
                f"News that was handled is told again: {_statuses([e.status for e in later])}.",
                fix="Keep what was handled where a restart finds it: in the till; or, where it"
                " only lists what came after a number, this number in a file that an option names.",
                method="update_handled",
            )
        return "in order, until handled, never after"


def _refuses_strange_options(subject: Subject) -> None:
    with subject.till() as rig:
        options = {**rig.options(), "no_such_option": 1}
        try:
            type(rig).adapter.options.model_validate(options)
        except ValidationError:
            return
    raise Violation(
        "It accepts an option that it does not have: a misspelling would go unnoticed.",
        fix="Derive its options from AdapterOptions, and leave extra at `forbid`.",
    )


def _check_offline(rig: Rig, pos: object) -> None:
    try:
        health: Health = in_time(rig, "health", able(pos, ReportsHealth).health)
    except PosFailure as failure:
        raise Violation(
            f"The till is away, and health raises {type(failure).__name__}: {failure}",
            fix="health raises nothing for a till that is away: Health(online=False, detail=...).",
        ) from failure
    if health.online:
        raise Violation(
            "The till is away, and health says that it is there.",
            fix="Ask the till itself, each time, with a short time-out.",
        )
    if not health.detail:
        raise Violation(
            "Health says that the till is away, and not why.",
            fix="Put one plain sentence into Health.detail: what was asked, what came of it.",
        )


def _is_offline(rig: Rig, what: str, call: Callable[[], object]) -> None:
    try:
        in_time(rig, what, call)
    except (PosOffline, ExportUnreadable):
        return
    except Violation:
        raise
    except Exception as failure:
        raise Violation(
            f"The till is away, and {what} raises {type(failure).__name__}: {failure}",
            fix="Turn the driver's errors into PosOffline, at one place.",
            method=what,
        ) from failure
    raise Violation(f"The till is away, and {what} works.", fix="Raise PosOffline.", method=what)


def _statuses(statuses: list[TicketStatus]) -> str:
    return ", ".join(status.value for status in statuses) or "nothing"
