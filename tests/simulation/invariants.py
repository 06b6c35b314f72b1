"""The invariants of the design, each with a checker of its own, and what the world may do wrong."""

import json
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tests.simulation.service import FINAL
from tillbridge.core.errors import LedgerError, LedgerLocked
from tillbridge.core.problems import PROBLEMS

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

OFF_WITHIN_S = 10.0
GRACE_S = 60.0  # calls that were under way when staff took an item off sale
# Problems that stay until a person has seen them.
FOR_PEOPLE = frozenset(
    "order.cancelled order.closed_by_service order.not_withdrawn order.ticket_taken_back"
    " order.price_differs order.unknown_item bridge.stopped order.set_aside".split()
)
_RANK = {"created": 0, "accepted": 1, "preparing": 2, "ready": 3, "completed": 4}
_BY_TILL = {"": "created", "accepted": "accepted", "preparing": "preparing", "ready": "ready"}


# -- what may go wrong


def _weather(rng: random.Random) -> dict[str, Any]:
    name = rng.choice(
        (
            "refused lost_request lost_answer errors gateway garbage slow webhook_lost"
            " webhook_answer_lost webhook_twice webhook_slow repeated"
        ).split()
    )
    return {"seconds": round(rng.uniform(5, 90), 1), name: rng.choice((0.1, 0.4, 1.0))}


CHANGES: Mapping[str, Callable[[random.Random], dict[str, Any]]] = {
    "price": lambda rng: {"pick": rng.randrange(100), "percent": rng.choice((-20, 5, 30))},
    "rename": lambda rng: {"pick": rng.randrange(100)},
    "add": lambda rng: {"pick": rng.randrange(100)},
    "remove": lambda rng: {"pick": rng.randrange(100)},
    "cut": lambda rng: {"keep": rng.choice((4, 12))},
    "sold_out": lambda rng: {
        "pick": rng.randrange(100),
        "seconds": round(rng.uniform(5, 60), 1),
    },
    "cancel": lambda rng: {"pick": rng.randrange(100), "code": rng.choice(("OTHER", "CAPACITY"))},
    "retry": lambda rng: {"pick": rng.randrange(100)},
    "reject": lambda rng: {"pick": rng.randrange(100)},
    "86": lambda rng: {"pick": rng.randrange(100), "seconds": rng.choice((20.0, 50.0, 1000.0))},
}

FAULTS: Mapping[str, Callable[[random.Random], dict[str, Any]]] = {
    "crash": lambda rng: {
        "on": (on := rng.choice(("", "delivery", "delivery", "till.ticket", "call", "staff"))),
        "after": int(10 ** rng.uniform(0, 1.7 if on else 3.5)),
        "down": round(10 ** rng.uniform(-1, 1.7), 1),
        "power": rng.random() < 0.5,
    },
    # Of an order: before it is in the inbox, there, or handled.
    "crash_at_commit": lambda rng: {
        "on": (on := rng.choice(("", "order"))),
        "after": rng.randint(1, 3 if on else 12),
        "place": rng.choice(("before", "after")),
        "down": round(10 ** rng.uniform(-1, 1.7), 1),
        "power": rng.random() < 0.5,
    },
    "restart": lambda rng: {"down": round(rng.uniform(0.5, 20), 1)},
    "weather": _weather,
    "till_off": lambda rng: {"seconds": round(rng.uniform(2, 100), 1)},
    "till_hangs": lambda rng: {"seconds": rng.choice((5.0, 25.0, 50.0))},
    "till_slow": lambda rng: {
        "seconds": round(rng.uniform(5, 60), 1),
        "slow": rng.choice((0.5, 3)),
    },
    "till_breaks": lambda rng: {},
    "till_odd": lambda rng: {
        "what": rng.choice(("raises", "garbles", "repeats", "lies")),
        "number": rng.randint(1, 6),
    },
    "till_refuses": lambda rng: {"which": rng.randrange(4)},
    "disk": lambda rng: {
        "seconds": round(rng.uniform(2, 40), 1),
        "what": rng.choice(("full", "slow", "fails")),
        "amount": round(rng.uniform(0.05, 3.0), 2),
    },
    "torn": lambda rng: {
        "how": rng.choice(("unreadable", "half", "six", "names", "empty", "zero")),
        "seconds": round(rng.uniform(1, 60), 1),
    },
    "limit": lambda rng: {"seconds": round(rng.uniform(3, 90), 1)},
    "tokens": lambda rng: {},
    "jump": lambda rng: {"seconds": rng.choice((-7200.0, -40.0, 30.0, 900.0, 86400.0))},
    "forged": lambda rng: {},
    "consent": lambda rng: {"seconds": round(rng.uniform(5, 90), 1)},
    "deploy": lambda rng: {
        "seconds": rng.choice((1.0, 2.5, 20.0)),
        "pick": rng.randrange(100),
        "pushing": rng.random() < 0.7,
    },
    "settings": lambda rng: {
        "what": rng.choice(("live", "restart", "broken")),
        "seconds": round(rng.uniform(2, 40), 1),
    },
    "second": lambda rng: {},
    "version": lambda rng: {
        "is_newer": rng.random() < 0.5,
        "down": round(rng.uniform(0.5, 20), 1),
    },
}

# These come in many kinds.
OFTEN = ("crash", "crash_at_commit", "weather", "weather", "till_odd", "torn", "disk")


# -- 1. An acknowledged delivery is on disk


def acknowledged_is_on_disk(sim: "Simulation", sending: Any) -> None:
    known = sim.machine.rows("SELECT 1 FROM inbox WHERE event_id = ?", sending.event_id)
    if not known:
        sim.violated("1 acknowledged", f"{sending.event_id} was acknowledged and is not on disk")


def all_acknowledged_are_on_disk(sim: "Simulation") -> None:
    if not sim.acked:
        return
    known = {each for (each,) in sim.machine.rows("SELECT event_id FROM inbox")}
    if lost := sorted(sim.acked.keys() - known):
        sim.violated("1 acknowledged", f"after a crash {lost} are not on disk any more")


HANDLED_WITHIN_S = 5.0


def acknowledged_is_handled(sim: "Simulation") -> None:
    """A bridge that runs on a disk that works takes in what it has acknowledged."""
    if not sim.machine.running or not sim.unhandled:
        return
    since = max(sim.machine.ready_at, sim.disk_works_at)
    late = [
        event
        for event, at in sim.unhandled.items()
        if sim.loop.now - max(at, since) > HANDLED_WITHIN_S
    ]
    for event in late:
        del sim.unhandled[event]
        if not sim.machine.rows(
            "SELECT 1 FROM inbox WHERE event_id = ? AND handled_at IS NOT NULL", event
        ):
            sim.violated("1 acknowledged", f"{event} was acknowledged, and nothing came of it")


# -- 2. One order, one ticket


def one_ticket(sim: "Simulation", order: str) -> None:
    records = [each.record for each in sim.till.live(order)]
    if len(records) > 1 and sim.plan.settings["kind"] == "plain":
        sim.violated("2 one ticket", f"{order} has {records}")


WRITTEN_WITHIN_S = 20.0
_DELAY_TICKETS = {"crash", "restart", "version", "settings", "disk"}


def written_soon(sim: "Simulation", order: str) -> None:
    """A till that is there again is tried again: faults of others delay no ticket."""
    acked = [at for event, at in sim.acked_at.items() if sim.acked[event] == order]
    if not acked or len(sim.till.of(order)) > 1 or _DELAY_TICKETS & sim.disturbed:
        return
    late_s = sim.loop.now - max(min(acked), sim.till_works_at)
    if late_s > WRITTEN_WITHIN_S:
        sim.violated("2 one ticket", f"{order} was written {late_s:.0f} s late")


def not_given_up_at_a_till_that_is_there(sim: "Simulation", event: Mapping[str, Any]) -> None:
    """The same of an order that is cancelled because the till could not be reached."""
    if event["event"] != "order.to_cancel" or event["code"] != "POS_OFFLINE":
        return
    since = max(sim.till_works_at, sim.disk_works_at, sim.machine.ready_at)
    late_s = sim.loop.now - since
    if late_s > WRITTEN_WITHIN_S:
        sim.violated(
            "2 one ticket", f"{event['order']} was given up {late_s:.0f} s after the till was back"
        )


def accepted_is_in_till(sim: "Simulation", order: str) -> None:
    if not sim.plan.settings["auto_accept"] and not sim.till.of(order):
        sim.violated("2 one ticket", f"{order} was accepted, and the till never had it")


# -- what a customer whose order is cancelled hears

_REASON = {
    "ItemUnavailable": "ITEM_OUT_OF_STOCK",
    "StoreClosed": "STORE_CLOSED",
    "AtCapacity": "CAPACITY",
    "PriceMismatch": "PRICE_MISMATCH",
}
EARLIEST_S = 14.0  # an order is tried for this long at least, unless the till says no


def cancelled_for_a_reason(sim: "Simulation", order: Any) -> None:
    code, why = order.cancel["reason_code"], sim.refused.get(order.id)
    waited_s = sim.loop.now - order.placed
    if (wanted := sim.given_up.get(order.id)) is not None:
        if wanted != code and why is None and waited_s < EARLIEST_S:
            sim.violated("contract", f"{order.id} was cancelled as {code} instead of {wanted}")
    elif why is not None:
        if _REASON[why] != code:
            sim.violated("contract", f"{order.id} was cancelled as {code}: the till said {why}")
    elif waited_s < EARLIEST_S:
        sim.violated("11 time", f"{order.id} was cancelled as {code} after {waited_s:.1f} s")


# -- only the service can send


def forged_is_refused(sim: "Simulation", status: int) -> None:
    if status in range(200, 300):
        sim.violated("1 signature", "a delivery with a wrong signature was taken")


# -- 7. One bridge has the ledger, and one thread of it writes


def only_the_writer_writes(sim: "Simulation", thread: str, sql: str) -> None:
    if thread != "ledger-writer":
        sim.violated("7 one writer", f"{thread or 'the event loop'} wrote {sql[:40]}")


def newer_is_refused(sim: "Simulation", failure: BaseException | None) -> None:
    if not isinstance(failure, LedgerError):
        sim.violated("update", f"the ledger of a newer version was not refused: {failure!r}")


def second_ends(sim: "Simulation", failure: BaseException | None) -> None:
    if not isinstance(failure, LedgerLocked):
        sim.violated("7 one writer", f"a second bridge was not refused the ledger: {failure!r}")


# -- 4. No menu is wiped by a bad export


def not_wiped(sim: "Simulation", item: str) -> None:
    if item in sim.till.items:
        sim.violated("4 menu", f"{item} was removed from the storefront, and the till sells it")


def is_asked_first(sim: "Simulation", removed: int, known: int) -> None:
    """Whether the export is right or not: so much goes only if a person has approved it."""
    if removed > 5 and removed * 10 > known and not sim.approved:
        sim.violated("4 menu", f"{removed} of {known} items were removed, and nobody was asked")


def not_garbled(sim: "Simulation", item: Mapping[str, Any]) -> None:
    if item["name"].startswith("D?"):
        sim.violated("4 menu", f"{item['external_id']} is shown as {item['name']}")


def not_wiped_by_price(sim: "Simulation", item: Mapping[str, Any]) -> None:
    if item["price"] == 0:
        sim.violated("4 menu", f"{item['external_id']} is sold for nothing")


# -- 13. Availability has the last word


def stays_off_sale(sim: "Simulation", item: str, *, available: bool) -> None:
    at = sim.off.get(item)
    if available and at is not None and sim.loop.now - at > GRACE_S:
        sim.violated("13 availability", f"{item} was put on sale although staff took it off")


def availability_is_open(sim: "Simulation") -> list[str]:
    found = []
    for name, item in sim.till.items.items():
        shown = sim.service.items.get(name, {}).get("available", True)
        if name in sim.off:
            wanted = False
        elif name in sim.sold_out | sim.unanswered and not shown:
            continue  # until somebody restores it
        else:
            wanted = item.available
        if shown is not wanted:
            found.append(f"{name} is {'on' if shown else 'off'} sale")
    return found


def off_at_once(sim: "Simulation", item: str) -> None:
    """Where nothing disturbs it, an 86 waits for no push."""
    shown = sim.service.items.get(item, {}).get("available", True)
    if item in sim.off and shown and not sim.disturbed:
        sim.violated("13 availability", f"{item} is on sale {OFF_WITHIN_S:g} s after an 86")


def on_at_once(sim: "Simulation", item: str) -> None:
    """The same of what staff put back on sale, and the till has."""
    sold = sim.till.items.get(item)
    shown = sim.service.items.get(item, {}).get("available", True)
    if sold and sold.available and item not in sim.off and not shown and not sim.disturbed:
        text = f"{item} is off sale {OFF_WITHIN_S:g} s after it was restored"
        sim.violated("13 availability", text)


# -- 3. The ledger remembers only what the service accepted


def ledger_was_accepted(sim: "Simulation") -> None:
    """At any time: what the ledger has of an item is what the service once accepted."""
    for name, body in sim.machine.rows("SELECT external_id, body FROM menu_items"):
        item = json.loads(body)
        version = f"{item['name']} {item.get('price', 0)}"
        if version not in sim.service.versions.get(name, ()):
            sim.violated("3 accepted", f"the ledger has {name} as {version}: nobody accepted it")


def ledger_is_open(sim: "Simulation") -> list[str]:
    """Return where the ledger has another menu than the service: an answer may be under way."""
    found = []
    for name, body in sim.machine.rows("SELECT external_id, body FROM menu_items"):
        stored, shown = json.loads(body), sim.service.items.get(name)
        if shown is None:
            found.append(f"3 accepted: the ledger has {name}, and the service does not")
        elif stored.get("price", 0) != shown["price"]:
            found.append(f"3 accepted: the ledger has {name} for {stored.get('price')}")
    return found


# -- 5. Nothing is called before Retry-After has passed


def waits_as_told(sim: "Simulation", call: str, closed_until: float) -> None:
    if sim.loop.now < closed_until - 1.0:
        left = closed_until - sim.loop.now
        sim.violated("5 retry", f"{call} was sent {left:.1f} s before Retry-After had passed")


MOST_IN_10_S = 40


def does_not_hammer(sim: "Simulation", call: str) -> None:
    """Whatever fails, the same call is not made again and again without a pause."""
    times = sim.times_of[call]
    times.append(sim.loop.now)
    while times[0] < sim.loop.now - 10.0:
        times.popleft()
    if len(times) > MOST_IN_10_S:
        sim.violated("5 retry", f"{call} was sent {len(times)} times in ten seconds")


# -- 8. No secret in a log, nor on the disk


def no_secret(sim: "Simulation", line: str) -> None:
    if any(each in line for each in ("refresh_", "whsec_", "access_", "app-secret")):
        sim.violated("8 secrets", f"a secret is in the log: {line}")


def no_secret_on_disk(sim: "Simulation") -> None:
    service = sim.service
    secrets = [service.secret, *service.access, *service.refresh, "app-secret"]
    for path in (sim.folder / "data").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if found := [each for each in secrets if each and each.encode() in content]:
                sim.violated("8 secrets", f"{path.name} has {found[0]}")


# -- 9. What is over is no problem any more; transitions are logged, and polls are not


def is_a_transition(sim: "Simulation", event: Mapping[str, Any]) -> None:
    if event["event"] not in {"problem.opened", "problem.closed"}:
        return
    key = event["code"], event["store"], event["subject"]
    if event["code"] not in PROBLEMS:
        sim.violated("9 problems", f"{event['code']} is in no table")
    if event["event"] == "problem.closed":
        sim.logged_open.discard(key)
    elif key in sim.logged_open:
        sim.violated("9 problems", f"{key} was logged again while it was open")
    else:
        sim.logged_open.add(key)


def problems_are_over(sim: "Simulation") -> list[str]:
    rows = sim.machine.rows("SELECT code, subject FROM problems")
    return [
        f"{code} {subject} is open"
        for code, subject in rows
        if code not in FOR_PEOPLE
        # Of a method that fails nobody knows that it works until it is called again.
        and not (code == "adapter.failed" and subject.rpartition(".")[2] in sim.till.failing)
    ]


# -- at the end


def open_ends(sim: "Simulation") -> list[str]:
    """Return what has not converged."""
    if not sim.machine.running:
        return ["the bridge does not run"]
    found = [
        f"{each.event_id} of {each.order} is not acknowledged"
        for each in sim.service.sendings
        if not each.done and each.attempts <= 6
    ]
    found += [why for order in sim.service.orders.values() if (why := order_is_open(sim, order))]
    if sim.machine.rows("SELECT 1 FROM inbox WHERE handled_at IS NULL LIMIT 1"):
        found.append("the inbox is not empty")
    found += [
        f"{name} is {sim.service.orders[name].state}, and open in the ledger"
        for (name,) in sim.machine.rows("SELECT order_id FROM orders WHERE closed_at IS NULL")
        if sim.service.orders[name].state in FINAL
    ]
    found += menu_is_open(sim) + availability_is_open(sim)
    if not found:
        found += ledger_is_open(sim)
    if sim.service.status != "active":
        found.append("the storefront is closed")
    return found + problems_are_over(sim)


def order_is_open(sim: "Simulation", order: Any) -> str:
    """Return what is still to happen to an order; "" where it is as it should be."""
    live = sim.till.live(order.id)
    if order.state == "completed":
        return ""
    if order.state == "cancelled":
        is_over = not live or was_left_to_a_person(sim, order.id)
        return "" if is_over else f"{order.id} is cancelled, and in the till"
    if not live:
        return f"{order.id} is {order.state}, and not in the till"
    if len(live) > 1:
        return f"{order.id} is in the till {len(live)} times"
    said = _BY_TILL.get(live[0].status, "")
    if sim.plan.settings["accept"] == "when_written" and said == "created":
        said = "accepted"
    if said != order.state:
        return f"{order.id} is {order.state} at the service, and {said} in the till"
    return "" if said == "ready" else f"{order.id} is only {said}"


def was_left_to_a_person(sim: "Simulation", order: str) -> bool:
    """Return whether somebody has been asked to remove a ticket: the adapter failed at that."""
    failed = any(
        each.what == "till_odd" and each.args["what"] in {"raises", "garbles"}
        for each in sim.plan.events
    )
    entries = sim.machine.rows(
        "SELECT detail FROM order_log WHERE order_id = ? AND event = 'order.withdrawn'", order
    )
    return failed and any("left_to_person" in detail for (detail,) in entries)


def menu_is_open(sim: "Simulation") -> list[str]:
    """Return where the storefront is not what the till has."""
    ours, theirs = sim.till.items, sim.service.items
    extra = sorted(theirs.keys() - ours.keys())
    found = [f"{each} is on sale, and not in the till" for each in extra]
    for name, item in ours.items():
        shown = theirs.get(name)
        if shown is None:
            found.append(f"{name} is not on the menu")
        elif (shown["price"], shown["name"]) != (item.price, item.name):
            found.append(f"{name} is shown as {shown['name']} for {shown['price']}")
    return found


def at_end(sim: "Simulation") -> None:
    """Check what holds once everything has converged."""
    if found := open_ends(sim):
        sim.violated("converges", "; ".join(found[:4]))
    ledger_was_accepted(sim)
    no_secret_on_disk(sim)
    all_acknowledged_are_on_disk(sim)
    nothing_is_lost(sim)


def nothing_is_lost(sim: "Simulation") -> None:
    for order in sim.service.orders.values():
        known = sim.machine.rows("SELECT 1 FROM orders WHERE order_id = ?", order.id)
        if order.id in sim.acked.values() and order.state not in FINAL and not known:
            sim.violated("2 no order lost", f"{order.id} was acknowledged and is unknown")
