"""One run: a restaurant, its till, the bridge and the ordering service, as one seed decides.

What happens is planned first (`Plan`), so that a history can be made smaller by leaving events out;
delays and losses come from a second source of numbers. Then everything is healed, and has to
converge.
"""

import asyncio
import copy
import gc
import hashlib
import json
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.simulation import invariants, machine, till
from tests.simulation.loop import OWNER, Crash, Process, VirtualLoop
from tests.simulation.machine import Clock, Machine, Network
from tests.simulation.service import FINAL, LOCATION, REDIRECT, RETRIES_S, Order, Service
from tillbridge import ledger_schemas
from tillbridge.adapter import Change, Item
from tillbridge.core.actor import Actor, Role
from tillbridge.core.errors import BridgeError

CONVERGES_WITHIN_S = 1500.0
VERSION = ledger_schemas()[-1]
STAFF = Actor("page:anna", Role.TECHNICIAN)


class Violation(Exception):
    """An invariant does not hold."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text


@dataclass(frozen=True)
class Event:
    """Something that happens at `at` seconds."""

    at: float
    what: str
    args: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.args.items())
        return f"{self.at:9.3f}  {self.what}({shown})"


@dataclass
class Plan:
    """What a seed decides."""

    seed: int
    seconds: float
    settings: dict[str, Any]
    events: list[Event]

    def to_json(self) -> str:
        """Return the plan as a file of its own, which outlives changes of `plan_of`."""
        events = [[each.at, each.what, each.args] for each in self.events]
        return json.dumps({**vars(self), "events": events}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Return the plan of such a file."""
        stored = json.loads(text)
        return cls(**{**stored, "events": [Event(*each) for each in stored["events"]]})


def plan_of(seed: int, *, orders: int = 12, seconds: float = 150.0, faults: bool = True) -> Plan:
    """Return what happens in the run of this seed."""
    rng = random.Random(f"plan {seed}")
    settings: dict[str, Any] = {
        "kind": rng.choice(("plain", "listing", "late")),
        "accept": rng.choice(("when_written", "when_written", "when_confirmed")),
        "auto_accept": rng.random() < 0.2,  # not with "when_confirmed"
        "shuffle": rng.random() < 0.5,
        "poll_s": rng.choice((5, 10, 20)),
        "health_s": rng.choice((5, 15)),
        "token_life_s": rng.choice((90.0, 3600.0)),
        "small": rng.choice((3, 100)),
    }
    settings["auto_accept"] &= settings["accept"] == "when_written"
    events = [
        Event(
            round(rng.uniform(5.0, seconds), 3),
            "order",
            {"lines": rng.randint(1, 3), "pick": rng.randrange(1000)},
        )
        for _number in range(orders)
    ]
    for _number in range(rng.choice((0, 1, 2, 4)) if orders else 0):
        kind = rng.choice(list(invariants.CHANGES))
        at = round(rng.uniform(1.0, seconds), 3)
        events.append(Event(at, kind, invariants.CHANGES[kind](rng)))
    if faults:
        kinds = invariants.FAULTS
        for _number in range(rng.choice((0, 1, 2, 4, 7, 12))):
            kind = rng.choice([*kinds, *invariants.OFTEN])
            events.append(Event(round(rng.uniform(1.0, seconds), 3), kind, kinds[kind](rng)))
    return Plan(seed, seconds, settings, sorted(events, key=lambda each: each.at))


class Simulation:
    """Runs a plan; `violations` is what was found."""

    def __init__(self, plan: Plan, folder: Path, template: dict[str, bytes] | None) -> None:
        self.plan, self.folder, self.template = plan, folder, template
        self.rng = random.Random(f"world {plan.seed}")
        self.noise = random.Random(f"noise {plan.seed}")
        self.loop = VirtualLoop(
            random.Random(f"loop {plan.seed}"), shuffle=plan.settings["shuffle"]
        )
        self.clock = Clock(self.loop)
        self.world = Process("world")
        self.service = Service(lambda: self.loop.now, self.clock.iso)
        self.service.token_life_s = plan.settings["token_life_s"]
        self.service.small = plan.settings["small"]
        self.service.on_change = self._service_changed
        self.till = till.Till(lambda: self.loop.now, self.noise)
        self.till.on_change = self._till_changed
        self.network = Network(self)
        self.machine = Machine(self.loop, folder, self._config(), self)
        self.machine.disk.on_fault = lambda what: self.note("disk", what=what)
        self.history: list[tuple[float, str, dict[str, Any]]] = []
        self.violations: list[Violation] = []
        self.on_look: Callable[[], object] = lambda: None  # now and then
        self.acked: dict[str, str] = {}  # event id: order
        self.unhandled: dict[str, float] = {}  # when they were acknowledged, until they are handled
        self.acked_at: dict[str, float] = {}
        self.disk_works_at = self.till_works_at = 0.0
        self.times_of: defaultdict[str, deque[float]] = defaultdict(deque)  # of each call
        self.logged_open: set[tuple[str, str, str]] = set()  # problems, by this process
        self.approved = False  # whatever is held
        self.crashes_on = ""  # what is noted next of this kind begins the countdown
        self.commits_on, self.commit_crash = "", (0, "")  # the same of commits
        self.version = ""  # "older" or "newer": who has the ledger while the bridge is down
        self.healed = False
        self.counts: Counter[str] = Counter()
        self.disturbed: set[str] = set()  # kinds of faults that were there
        self.power_cut = False
        self.starting = False
        self.off_by_staff: dict[str, float] = {}
        self.log_lines: list[str] = []
        self.log_calls: list[tuple[str, str, int]] = []
        self.over = False
        self.off: dict[str, float] = {}  # by item: when staff took it off sale
        self.unanswered: set[str] = set()  # staff clicked, and do not know whether it was done
        self.given_up: dict[str, str] = {}  # by order: why staff or the kitchen ended it
        self.refused: dict[str, str] = {}  # by order: what the till said
        self.sold_out: set[str] = set()  # what the till refused as sold out
        for number in range(24):
            self.till.items[f"p{number}"] = Item(
                f"p{number}",
                f"Dish {number}",
                100 + 25 * number,
                categories=(f"c{number % 3 + 1}",),
            )

    # -- what happened

    def note(self, what: str, /, **detail: Any) -> None:
        self.counts[what] += 1
        self.history.append((self.loop.now - 1000.0, what, detail))
        process = self.machine.process
        if what == self.crashes_on and process is not None and not self.healed:
            self.crashes_on = ""
            process.crash_after = process.steps + self.crash_after
        if what == self.commits_on and not self.healed:
            self.commits_on = ""
            self._crash_at_commit(*self.commit_crash)

    def logged(self, event: dict[str, Any]) -> None:
        invariants.no_secret(self, str(event))
        invariants.is_a_transition(self, event)
        invariants.not_given_up_at_a_till_that_is_there(self, event)
        self.log_lines.append(f"{self.loop.now - 1000.0:9.3f} {event}")
        if len(self.log_lines) > 400:
            del self.log_lines[:200]

    def called(self, method: str, path: str, status: int, answer: Any) -> None:
        code = answer["error"]["code"] if status >= 400 else ""
        self.note("call", call=f"{method} {path}", status=status, code=code)

    def violated(self, name: str, text: str) -> None:
        violation = Violation(name, text)
        self.note("VIOLATED", name=name, text=text)
        self.violations.append(violation)

    def digest(self) -> str:
        """Return a number of the whole history: the same for the same seed."""
        text = "\n".join(f"{at:.6f} {what} {detail}" for at, what, detail in self.history)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _till_changed(self, what: str, detail: dict[str, Any]) -> None:
        self.note(f"till.{what}", **detail)
        if what == "ticket":
            invariants.one_ticket(self, detail["order"])
            invariants.written_soon(self, detail["order"])
            if self.plan.settings["accept"] == "when_written":
                self.later(self.noise.uniform(1.0, 8.0), self._kitchen, detail["record"])
            else:
                self.later(self.noise.uniform(0.5, 6.0), self._kitchen, detail["record"])
        elif what == "broken":
            self.violated("6 adapter", detail["what"])
        elif what == "refused":
            self.refused[detail["order"]] = detail["why"]
            if detail["item"]:
                self.sold_out.add(detail["item"])

    def _service_changed(self, what: str, detail: dict[str, Any]) -> None:
        if what == "item":
            item = detail["item"]
            shown = {name: item.get(name) for name in ("price", "available")}
            self.note("service.item", id=detail["id"], **shown)
            invariants.not_wiped_by_price(self, item)
            invariants.not_garbled(self, item)
            invariants.stays_off_sale(self, detail["id"], available=item.get("available", True))
            return
        self.note(f"service.{what}", **detail)
        if what == "removed":
            invariants.not_wiped(self, detail["id"])
        elif what == "deletes":
            invariants.is_asked_first(self, **detail)
        elif what == "order" and detail["state"] == "accepted":
            invariants.accepted_is_in_till(self, detail["order"])
        elif what == "order" and detail["state"] == "cancelled":
            invariants.cancelled_for_a_reason(self, self.service.orders[detail["order"]])
        elif what == "available":
            invariants.stays_off_sale(self, detail["external_id"], available=detail["available"])

    def _config(self) -> str:
        chosen = self.plan.settings
        return f"""
[bridge]
data_dir = "data"
keep_log_bytes = 0
[service]
base_url = "http://127.0.0.1:9000/v2"
client_id = "app_123"
client_secret = "app-secret"
redirect_uri = "{REDIRECT}"
[receiver]
listen = "127.0.0.1:8088"
public_url = "http://127.0.0.1:8088"
[status_page]
listen = "127.0.0.1:8089"
[diagnostics]
probe_every_s = 0
service_probe_every_s = 0
[stores.main]
location_id = "{LOCATION}"
currency = "USD"
notification_email = "owner@example.net"
auto_accept_orders = {str(chosen["auto_accept"]).lower()}
[stores.main.pos]
adapter = "tests.simulation.till:ADAPTER"
kind = "{chosen["kind"]}"
poll_s = {chosen["poll_s"]}
health_s = {chosen["health_s"]}
[stores.main.orders]
accept = "{chosen["accept"]}"
"""

    # -- the world

    def later(self, seconds: float, do: Callable[..., Any], *args: Any) -> None:
        """Let something happen in the world."""
        self.loop.call_later(seconds, self._happens, do, *args, context=self.world.context)

    def _happens(self, do: Callable[..., Any], *args: Any) -> None:
        made = do(*args)
        if asyncio.iscoroutine(made):
            self.loop.create_task(made, context=self.world.context.copy())

    def _kitchen(self, record: str) -> None:
        """Let the kitchen go on with a ticket."""
        ticket = next(each for each in self.till.tickets if each.record == record)
        if not ticket.live or len(self.till.live(ticket.key)) > 1:
            return
        order = self.service.orders[ticket.key]
        steps = ["accepted", "preparing", "ready"]
        place = steps.index(ticket.status) + 1 if ticket.status in steps else 0
        if ticket.status == "ready":
            return
        if self.plan.settings["accept"] == "when_written" and place == 0:
            place = 1
        self.till.move(ticket, steps[place])
        if steps[place] == "ready":
            self.later(self.noise.uniform(2.0, 20.0), self._courier, order)
        else:
            self.later(self.noise.uniform(1.0, 15.0), self._kitchen, record)

    def _courier(self, order: Order) -> None:
        if order.state == "ready" and self.noise.random() < 0.6:
            self.service.complete(order)
            self.send_all()

    def send_all(self) -> None:
        """Send the events that are due."""
        for sending in self.service.sendings:
            if not sending.done and sending.attempts == 0 and sending.next_at <= self.loop.now:
                sending.attempts = 1
                self.later(self.noise.uniform(0.005, 0.1), self._send, sending)

    async def _send(self, sending: Any) -> None:
        weather, rng = self.network.weather, self.noise
        status = 0
        if rng.random() >= weather.webhook_lost:
            headers = {
                "X-Service-Event": sending.event_type,
                "X-Service-Delivery-Id": f"dlv_{self.noise.randrange(10**9)}",
                "X-Service-Signature": sending.signature,
                "X-Service-Location-Id": LOCATION,
            }
            if rng.random() < weather.webhook_slow:
                await asyncio.sleep(rng.uniform(1.0, 9.0))
            status = await self.machine.deliver(headers, sending.body)
            if status in range(200, 300):
                invariants.acknowledged_is_on_disk(self, sending)
                self.acked[sending.event_id] = sending.order
                self.unhandled.setdefault(sending.event_id, self.loop.now)
                self.acked_at.setdefault(sending.event_id, self.loop.now)
            elif status not in {0, 503}:
                self.violated("1 acknowledged", f"{sending.event_id} was refused with {status}")
            if rng.random() < weather.webhook_twice:
                self.later(rng.uniform(0.0, 5.0), self._send_again, sending)
            if rng.random() < weather.webhook_answer_lost:
                status = 0
        self.note("delivery", event=sending.event_id, order=sending.order, status=status)
        if status in range(200, 300):
            sending.done = True
        elif sending.attempts <= len(RETRIES_S):
            pause = 5.0 if self.healed else RETRIES_S[sending.attempts - 1]
            sending.attempts += 0 if self.healed else 1
            self.later(pause, self._send, sending)

    async def _send_again(self, sending: Any) -> None:
        if self.noise.random() < 0.5:
            headers = {"X-Service-Delivery-Id": f"dlv_{self.noise.randrange(10**9)}"}
            headers["X-Service-Signature"] = sending.signature
            status = await self.machine.deliver(headers, sending.body)
            self.note("delivery.again", event=sending.event_id, status=status)

    # -- events of the plan

    def do_order(self, lines: int, pick: int) -> None:
        """Place an order of what the storefront shows."""
        shown = [each for each in self.service.items.values() if each.get("available", True)]
        if not shown or self.service.status != "active" or self.service.integration is None:
            return
        chosen = [shown[(pick * (n + 7)) % len(shown)] for n in range(lines)]
        order = self.service.place(
            [
                {
                    "product_id": f"prod_{each['external_id']}",
                    "product_variant_id": None,
                    "product_name": each["name"],
                    "quantity": 1 + pick % 2,
                    "unit_price": each["price"],
                    "subtotal": each["price"] * (1 + pick % 2),
                    "tax_amount": 0,
                    "external_id": each["external_id"],
                    "variant_external_id": None,
                    "options": [],
                }
                for each in chosen
            ]
        )
        self.note("order", order=order.id)
        self.send_all()

    def _fault(self, kind: str, **detail: Any) -> None:
        self.disturbed.add(kind)
        if kind == "till":  # what else it does wrong ends at a moment that nobody knows
            lasts_s = detail["seconds"] if detail["what"] in {"off", "slow"} else float("inf")
            self.till_works_at = max(self.till_works_at, self.loop.now + lasts_s)
        self.note(f"fault.{kind}", **detail)

    def do_crash(self, after: int, down: float, power: bool, on: str = "") -> None:
        """End the process after so many more of its steps; `on`: once that has happened."""
        process = self.machine.process
        if process is None or self.healed:
            return
        self._fault("crash", on=on, after=after, power=power)
        if on:
            self.crashes_on, self.crash_after = on, after
        else:
            process.crash_after = process.steps + after
        self.power_cut, self.down_s = power, down

    def do_crash_at_commit(
        self, after: int, place: str, down: float, power: bool, on: str = ""
    ) -> None:
        """End the process at one of its next commits; `on`: once that has happened."""
        if self.healed:
            return
        self._fault("crash", on=on, commit=after, place=place, power=power)
        if on:
            self.commits_on, self.commit_crash = on, (after, place)
        else:
            self._crash_at_commit(after, place)
        self.power_cut, self.down_s = power, down

    def _crash_at_commit(self, after: int, place: str) -> None:
        disk = self.machine.disk
        disk.crash_at = (disk.commits + after, place)

    def do_restart(self, down: float) -> None:
        """Stop in order."""
        self._fault("restart")
        self.down_s = down
        self.machine.stop()

    def do_weather(self, seconds: float, **more: float) -> None:
        if self.healed:
            return
        self._fault("network", seconds=seconds, **more)
        for name, value in more.items():
            setattr(self.network.weather, name, value)
        self.later(seconds, self.network.weather.heal)

    def do_till_off(self, seconds: float) -> None:
        if self.healed:
            return
        self._fault("till", what="off", seconds=seconds)
        self.till.offline = True
        self.later(seconds, setattr, self.till, "offline", False)

    def do_till_hangs(self, seconds: float) -> None:
        self._fault("till", what="hangs", seconds=seconds)
        self.till.hang_s = seconds

    def do_till_slow(self, seconds: float, slow: float) -> None:
        self._fault("till", what="slow", seconds=seconds)
        self.till.slow_s = slow
        self.later(seconds, setattr, self.till, "slow_s", 0.0)

    def do_till_breaks(self) -> None:
        self._fault("till", what="breaks")
        self.till.breaks_after = True

    def do_till_odd(self, what: str, number: int) -> None:
        """Let the till answer twice, lie, or have an adapter with a defect."""
        if self.healed:
            return
        self._fault("till", what=what, number=number)
        if what == "lies":
            self.till.lies = True
            self.later(10.0 * number, setattr, self.till, "lies", False)
        else:
            setattr(self.till, what, number)

    def do_till_refuses(self, which: int) -> None:
        self._fault("refusal")
        self.till.refuses = till.REFUSALS[which]

    def do_disk(self, seconds: float, what: str, amount: float) -> None:
        if self.healed:
            return
        self._fault("disk", what=what, seconds=seconds)
        disk = self.machine.disk
        self.disk_works_at = self.loop.now + seconds
        if what == "full":
            disk.full = True
            self.later(seconds, setattr, disk, "full", False)
        elif what == "slow":
            disk.slow_s = amount
            self.later(seconds, setattr, disk, "slow_s", 0.0)
        else:
            disk.fails = int(amount) + 1

    def do_limit(self, seconds: float) -> None:
        if self.healed:
            return
        self._fault("limit", seconds=seconds)
        self.service.limited_until = self.loop.now + seconds

    def do_tokens(self) -> None:
        """Let all access tokens end."""
        self._fault("tokens")
        self.service.access.clear()

    async def do_forged(self) -> None:
        """Let a stranger send an order."""
        order = '{"event_type": "order.created", "event_id": "evil", "data": {"id": "ord_evil"}}'
        headers = {"X-Service-Signature": "0" * 64, "X-Service-Delivery-Id": "evil"}
        invariants.forged_is_refused(self, await self.machine.deliver(headers, order.encode()))

    def do_consent(self, seconds: float) -> None:
        """Let the merchant withdraw the consent for a while."""
        if self.healed or not self.service.consent:
            return
        self._fault("consent", seconds=seconds)
        self.service.consent = False
        self.later(seconds, self._consent)

    async def _consent(self) -> None:
        """Let a technician connect the store until the bridge has the merchant's consent."""
        asked = {"store": "main"}
        begun: dict[str, Any] | None = None
        try:
            begun = await self.machine.perform("connect", asked, STAFF)
        except BridgeError as failure:
            self.note("staff", did="connect", failed=str(failure))
        process = self.machine.process
        if begun is not None and process is not None:
            query = {"code": self.service.consented(), "state": begun["state"]}
            returned = self.machine.connections.returned(query)
            task = self.loop.create_task(returned, context=process.context.copy())
            while not task.done() and process.alive:
                await asyncio.sleep(0.1)
            self.note("staff", did="connect")
        self.later(20.0, self._look_at_consent)

    def _look_at_consent(self) -> None:
        """Look again and again: the bridge may find out much later that it has no consent."""
        open_now = [code for (code,) in self.machine.rows("SELECT code FROM problems")]
        if not self.service.consent or any(each.startswith("consent.") for each in open_now):
            self._happens(self._consent)
        else:
            self.later(20.0, self._look_at_consent)

    def do_deploy(self, seconds: float, pick: int, pushing: bool) -> None:
        """Let the service be away for a new release, which knows no job any more."""
        if self.healed:
            return
        self._fault("deploy", seconds=seconds, pushing=pushing)
        if pushing and (item := self._item(pick)):
            self.till.items[item.external_id] = replace(item, price=item.price + 7)
            self._happens(lambda: self._asked("menu.push", store="main", full=True))
        self.later(1.5, self._deployed, seconds)

    def _deployed(self, seconds: float) -> None:
        if not self.healed:
            self.network.weather.down = True
            self.service.jobs.clear()
            self.later(seconds, setattr, self.network.weather, "down", False)

    def do_settings(self, what: str, seconds: float) -> None:
        """Let somebody change the settings of a running bridge, and back."""
        good = self.machine.config
        changed = {
            "live": good.replace("[bridge]", "[bridge]\nkeep_backups = 3"),
            "restart": good.replace("poll_s = ", "poll_s = 1"),
            "broken": good[: len(good) // 2],
        }
        self._fault("settings", what=what, seconds=seconds)
        self.machine.write_settings(changed[what])
        self.later(seconds, self.machine.write_settings, good)

    async def do_second(self) -> None:
        """Let somebody start the bridge twice."""
        process = self.machine.process
        if self.healed or not self.machine.running:
            return
        self._fault("second")
        failure = await self.machine.start_second()
        if self.machine.is_ready and self.machine.process is process:
            invariants.second_ends(self, failure)

    def do_version(self, is_newer: bool, down: float) -> None:
        """Let somebody install another version, which has the ledger for a while."""
        if self.healed or not self.machine.running:
            return
        self._fault("version", is_newer=is_newer)
        self.version, self.down_s = "newer" if is_newer else "older", down
        self.machine.stop()

    def _item(self, pick: int) -> Item | None:
        items = list(self.till.items.values())
        return items[pick % len(items)] if items else None

    def _menu_changed(self, item: Item | None, what: str, **more: Any) -> None:
        """Let the till have this item, in place of the one of that id."""
        if item is not None:
            self.till.items[item.external_id] = item
            self.note("till.menu", what=what, id=item.external_id, **more)
        self.later(0.1, self.till.notify, Change.CATALOGUE)

    def do_price(self, pick: int, percent: int) -> None:
        if item := self._item(pick):
            price = max(1, item.price * (100 + percent) // 100)
            self._menu_changed(replace(item, price=price), "price", price=price)

    def do_rename(self, pick: int) -> None:
        if item := self._item(pick):
            self._menu_changed(replace(item, name=f"{item.name} {pick}"), "name")

    def do_add(self, pick: int) -> None:
        item = Item(f"n{pick}", f"New {pick}", 500 + pick, categories=("c1",))
        self._menu_changed(item, "add")

    def do_remove(self, pick: int) -> None:
        if item := self._item(pick):
            del self.till.items[item.external_id]
            self.note("till.menu", what="remove", id=item.external_id)
            self._menu_changed(None, "")

    def do_cut(self, keep: int) -> None:
        """Let the till really sell much less: a person has to approve that."""
        for name in list(self.till.items)[keep:]:
            del self.till.items[name]
        self.note("till.menu", what="cut", keep=keep)
        self._menu_changed(None, "")

    def do_sold_out(self, pick: int, seconds: float) -> None:
        if item := self._item(pick):
            self._menu_changed(replace(item, available=False), "sold out")
            self.later(seconds, self._back_in_till, item.external_id)

    def _back_in_till(self, name: str) -> None:
        if item := self.till.items.get(name):
            self._menu_changed(replace(item, available=True), "back")

    def do_86(self, pick: int, seconds: float) -> None:
        """Let staff take an item off sale, and put it back later."""
        if item := self._item(pick):
            self._happens(self._staff, "item.86", item.external_id)
            if seconds < 100:
                self.later(seconds, self._happens, self._staff, "item.restore", item.external_id)

    async def do_cancel(self, pick: int, code: str) -> None:
        """Let staff cancel an order."""
        open_ones = [each for each in self.service.orders.values() if each.state not in FINAL]
        if open_ones:
            order = open_ones[pick % len(open_ones)].id
            self.given_up[order] = code
            await self._asked("order.cancel", order=order, reason_code=code)

    async def do_retry(self, pick: int) -> None:
        """Let staff press Try again, whatever there is to try."""
        if orders := list(self.service.orders):
            await self._asked("order.retry", order=orders[pick % len(orders)])

    def do_reject(self, pick: int) -> None:
        """Let the kitchen reject a ticket."""
        live = [each for each in self.till.tickets if each.live and each.status != "ready"]
        if live:
            ticket = live[pick % len(live)]
            self.given_up[ticket.key] = "OTHER"
            self.till.move(ticket, "rejected", "other", "burnt")

    async def _asked(self, what: str, **arguments: Any) -> None:
        try:
            answer = await self.machine.perform(what, arguments, STAFF)
        except BridgeError as failure:
            answer = str(failure)
        self.note("staff", did=what, **arguments, answer=answer)

    async def _staff(self, what: str, item: str) -> None:
        if what == "item.restore":
            self.off.pop(item, None)  # it may come back from now on
        try:
            answer = await self.machine.perform(what, {"store": "main", "item": item}, STAFF)
        except BridgeError as failure:
            self.note("staff", did=what, item=item, failed=str(failure))
            if what == "item.restore":
                self.later(10.0, self._staff, what, item)
            return
        self.note("staff", did=what, item=item, ok=answer is not None and answer["ok"])
        if answer is None and what == "item.86":
            self.unanswered.add(item)
        elif answer is not None:
            self.unanswered.discard(item)
        if answer is None and what == "item.restore":
            self.later(10.0, self._staff, what, item)  # the page does not answer: again
        if answer is not None and answer["ok"] and what == "item.restore":
            self.later(invariants.OFF_WITHIN_S, invariants.on_at_once, self, item)
        if answer is not None and answer["ok"] and what == "item.86":
            self.off[item] = self.loop.now
            self.later(invariants.OFF_WITHIN_S, invariants.off_at_once, self, item)

    async def _approve(self) -> None:
        """Let a technician approve what is held, as long as the till's menu is whole."""
        if self.machine.running and invariants.menu_is_open(self):
            self.approved = True
            try:
                await self.machine.perform("menu.approve", {"store": "main"}, STAFF)
            except BridgeError as failure:
                self.note("staff", did="menu.approve", failed=str(failure))
        self.later(20.0, self._approve)

    def do_torn(self, how: str, seconds: float) -> None:
        if self.healed:
            return
        self._fault("export", how=how, seconds=seconds)
        self.till.torn = how
        self.till.notify(Change.CATALOGUE)
        self.later(seconds, self._whole_again)

    def _whole_again(self) -> None:
        self.till.torn = ""
        self.till.notify(Change.CATALOGUE)

    def do_jump(self, seconds: float) -> None:
        self._fault("jump", seconds=seconds)
        self.clock.jumped_s += seconds

    # -- the process

    def ended(self, which: Machine, failure: BaseException | None) -> None:
        """Take note that the program has ended by itself."""
        if self.over:
            return
        self.note("bridge.ended", failure=str(failure or ""))
        if self.version == "refused":  # ours is installed again
            self.version = "ours"
            invariants.newer_is_refused(self, failure)
            self.later(0.0, self._restart_later)
            return
        expected = failure is None or bool(self.disturbed & {"disk", "crash"})
        if failure is not None and not (expected and isinstance(failure, BridgeError)):
            self.violated("12 supervised", f"the bridge ended: {failure!r}")
        self.later(0.0, self._restart_later)

    def _restart_later(self) -> None:
        self.machine.ended()
        self.later(getattr(self, "down_s", 1.0), self._start)

    def _start(self) -> None:
        if self.machine.process is None:
            if self.version == "ours":
                self.machine.rows("UPDATE alembic_version SET version_num = ?", VERSION)
                self.machine.ended()
                self.version = ""
            elif self.version:
                self.machine.change_version(is_newer=self.version == "newer")
                self.version = "refused" if self.version == "newer" else ""
            self.logged_open.clear()
            self.note("bridge.start")
            self.machine.start()

    def _crashed(self) -> None:
        power = self.power_cut
        self.note("bridge.crashed", power=power)
        self.machine.end(power_cut=power)
        invariants.all_acknowledged_are_on_disk(self)
        # What worked again just before, and was not recorded, has to be called again.
        failed = self.machine.rows("SELECT subject FROM problems WHERE code = 'adapter.failed'")
        self.till.failing |= {subject.rpartition(".")[2] for (subject,) in failed}
        self.later(getattr(self, "down_s", 1.0), self._start)

    # -- a run

    def run(self) -> None:
        """Run the plan, heal the world, and let everything converge."""
        random.seed(self.plan.seed)
        till.current.append(self.till)
        machine._machines.append(self.machine)
        machine._clocks.append(self.clock)
        machine._disk.append(self.machine.disk)
        gc.disable()
        asyncio._set_running_loop(self.loop)
        token = OWNER.set(self.world)
        try:
            self._run()
        except Violation as violation:
            self.violations.append(violation)
        finally:
            self.over = True
            if self.machine.process is not None:
                self.machine.end()
            self.world.alive = False
            self.world.context.run(self.machine._kill, self.world)
            OWNER.reset(token)
            asyncio._set_running_loop(None)
            gc.enable()
            for stack in (till.current, machine._machines, machine._clocks, machine._disk):
                stack.pop()

    def _run(self) -> None:
        self._begin()
        self._until(self.loop.now + 60.0, lambda: self.machine.running)
        if not self.machine.running:
            raise Violation("12 supervised", "the bridge does not start")
        if self.template is None:
            self._connect()
        self._look()
        began = self.loop.now
        for event in self.plan.events:
            self.loop.call_at(began + event.at, self._event, event, context=self.world.context)
        self._until(began + self.plan.seconds, lambda: False)
        self._heal()
        self._until(self.loop.now + CONVERGES_WITHIN_S, self._converged)
        invariants.at_end(self)
        for failure in self.loop.failures:
            self.violated(
                "12 supervised", f"{failure.get('message')}: {failure.get('exception')!r}"
            )

    def _event(self, event: Event) -> None:
        self._happens(lambda: getattr(self, f"do_{event.what}")(**event.args))

    def _begin(self) -> None:
        machine.clear(self.folder / "data")
        if self.template is not None:
            for name, content in self.template.items():
                path = self.folder / "data" / name
                path.write_bytes(content)
                path.chmod(0o600)
            self._connected_already()
        self._start()

    def _connected_already(self) -> None:
        """Let the service know of the integration that the template has."""
        service = self.service
        for _n in range(3):
            service.next_id("x")
        service.secret = TEMPLATE["secret"]
        service.access = {TEMPLATE["access"]: self.loop.now + 3600.0}
        service.refresh = {TEMPLATE["refresh"]: self.loop.now + 7 * 86400}
        service.number = TEMPLATE["number"]
        service.items = copy.deepcopy(TEMPLATE["items"])
        service.versions = {
            name: {f"{item['name']} {item['price']}"} for name, item in service.items.items()
        }
        service.synced_at = TEMPLATE["synced_at"]
        service.integration = {
            **copy.deepcopy(TEMPLATE["integration"]),
            "auto_accept_orders": self.plan.settings["auto_accept"],
        }

    def _connect(self) -> None:
        """Let a technician connect the store, and the merchant consent."""

        async def connect() -> None:
            begun = await self.machine.perform("connect", {"store": "main"}, STAFF)
            query = {"code": self.service.consented(), "state": begun["state"]}
            process = self.machine.process
            assert process is not None
            task = self.loop.create_task(
                self.machine.connections.returned(query), context=process.context.copy()
            )
            while not task.done():
                await asyncio.sleep(0.1)

        self._happens(connect)
        self._until(self.loop.now + 60.0, lambda: bool(self.service.items))

    def _look(self) -> None:
        """Check now and then what has to hold at any time."""
        if not self.over:
            self.on_look()
            invariants.acknowledged_is_handled(self)
            if self.version == "refused" and self.machine.running:
                invariants.newer_is_refused(self, None)
            self.later(2.0, self._look)

    def _until(self, ends: float, is_done: Callable[[], bool]) -> None:
        """Run until then, or until it is done; a process that crashes is cleared up after."""
        look_at = self.loop.now
        while True:
            if self.violations:
                raise self.violations.pop()
            if self.loop.now >= look_at:
                if is_done():
                    return
                look_at = self.loop.now + 2.0
            try:
                if not self.loop.step(ends):
                    return
            except Crash:
                self._crashed()

    def _heal(self) -> None:
        """End all faults; what waits for a delivery is delivered again soon."""
        self.note("healed")
        self.healed = True
        self.network.weather.heal()
        till_ = self.till
        till_.offline, till_.slow_s, till_.hang_s, till_.refuses = False, 0.0, 0.0, None
        till_.breaks_after = till_.lies = False
        till_.raises = till_.garbles = till_.repeats = 0
        self.crashes_on = self.commits_on = ""
        self._whole_again()
        self.later(10.0, self._approve)
        disk = self.machine.disk
        disk.full, disk.fails, disk.slow_s, disk.crash_at = False, 0, 0.0, None
        self.service.limited_until = 0.0
        if self.machine.process is not None:
            self.machine.process.crash_after = float("inf")
        for sending in self.service.sendings:
            if not sending.done and sending.attempts <= 1 + len(RETRIES_S):
                self.later(5.0 + self.noise.random(), self._send, sending)

    def _converged(self) -> bool:
        return not invariants.open_ends(self)


TEMPLATE: dict[str, Any] = {}


def make_template(folder: Path) -> dict[str, bytes]:
    """Connect a store once; return the machine's files. Every run but that begins with them."""
    plan = plan_of(0, orders=0, seconds=30.0, faults=False)
    sim = Simulation(plan, folder, None)
    files: dict[str, bytes] = {}

    def look() -> None:
        files.update(machine.template_of(folder))
        service = sim.service
        TEMPLATE.update(
            secret=service.secret,
            access=next(reversed(service.access)),
            refresh=next(iter(service.refresh)),
            number=service.number + 100,
            integration=dict(service.integration or {}),
            items=service.items,
            synced_at=service.synced_at,
        )

    heal = sim._heal

    def at_heal() -> None:
        sim.machine.stop()
        sim._until(sim.loop.now + 30.0, lambda: sim.machine.process is None)
        look()
        heal()

    sim._heal = at_heal  # type: ignore[method-assign]  # this once
    sim.run()
    if not files:
        raise RuntimeError(f"no template: {sim.violations} {sim.history[-10:]}")
    return files
