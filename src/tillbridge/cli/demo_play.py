"""Plays the demo: until it is stopped, or once through, saying what happened."""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tillbridge.cli.exits import until_signalled
from tillbridge.cli.say import line
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log import configure
from tillbridge.demo.stage import DemoFailed, Stage, demo_of, set_up
from tillbridge.demo.till import NotHere
from tillbridge.sandbox import SandboxSettings

_COOKING_S = 4.0
_COOKING_ONCE_S = 0.3


def play(*, once: bool, adapter: str = "") -> int:
    """Play the demo with an adapter's till, or the sample one; returns an exit code.

    It is in a folder of its own that is removed at the end.
    """
    configure("auto", "warning")
    has_window = sys.stdout.isatty()
    with (
        tempfile.TemporaryDirectory(
            prefix="tillbridge-demo-", ignore_cleanup_errors=True
        ) as folder,
        suppress(KeyboardInterrupt, asyncio.CancelledError),
    ):
        playing = _once if once else _until_interrupted
        try:
            return asyncio.run(until_signalled(playing(Path(folder), adapter)))
        except OSError:
            # Printing to a window fails from the moment it is closed.
            if sys.stdout.isatty() or not has_window:
                raise
    return 0


async def _once(folder: Path, adapter: str) -> int:
    line(_("Playing the whole demo once. It touches nothing outside this machine."))
    line()
    settings = SandboxSettings(auto_consent=True, job_duration_s=0.5)
    async with set_up(
        folder, settings, cooking_s=_COOKING_ONCE_S, usual_ports=False, adapter=adapter
    ) as stage:
        return await scenario(stage)


async def _until_interrupted(folder: Path, adapter: str) -> int:
    line(_("Starting an ordering service, a till, and the bridge between them ..."))
    settings = SandboxSettings(auto_consent=True)
    async with set_up(
        folder, settings, cooking_s=_COOKING_S, usual_ports=True, adapter=adapter
    ) as stage:
        await stage.connect()
        await stage.until(_("the menu is on sale"), stage.menu_is_on_sale)
        stage.sandbox.pages.demo = demo_of(stage)
        _print_addresses(stage)
        await _print_events(stage)
    return 0


def _print_addresses(stage: Stage) -> None:
    rows = (
        (_("Storefront"), f"{stage.service_url}/store/st_main", _("order something here")),
        (_("The bridge"), f"{stage.page_url}/", _("what works, what does not, what to do")),
        (_("Control panel"), f"{stage.service_url}/", _("buttons that break something")),
        (_("The till"), *stage.till.place),
    )
    line()
    for name, place, what in rows:
        line(f"  {name:<14} {place:<43} {what}")
    line()
    line(_("Change what the till exports (a price, what is sold out): the storefront follows."))
    line(_("In a second terminal, every command works on this bridge:"))
    line(f"  {_program()} --config {stage.config_path} status")
    line(_("Ctrl-C stops the demo and removes everything."))
    line()


def _program() -> str:
    """Return how this program is called from any folder."""
    called = Path(sys.argv[0]).absolute()
    return f"{sys.executable} -m tillbridge" if called.name == "__main__.py" else str(called)


async def _print_events(stage: Stage) -> None:
    """Print the bridge's log as plain text, as it grows; start a bridge that was killed again.

    It ends with the window it prints to: only what started the demo (make, ssh) may notice that.
    """
    ended, attempts, has_window = False, dict[str, int](), sys.stdout.isatty()
    with stage.log_path.open(encoding="utf-8") as log:
        log.seek(0, 2)
        while sys.stdout.isatty() or not has_window:
            if not ended and not stage.bridge_runs():
                ended = True
                seconds = stage.starts_in_s()
                line(
                    _("The bridge was killed. It restarts in {n} s.").format(n=seconds)
                    if seconds
                    else _("The bridge has stopped. The demo restarts it, like a service manager.")
                )
                line(_("The service retries each failed delivery after 60 s."))
            if ended and stage.starts_in_s() == 0:
                await stage.start_bridge()
                line(_("The bridge is running again."))
                ended = False
            for text in log.read().splitlines():
                if message := _message_of(text, stage):
                    line(message)
            for message in _retries(stage, attempts):
                line(message)
            await asyncio.sleep(0.2)


def _retries(stage: Stage, attempts: dict[str, int]) -> Iterator[str]:
    """Say of each order that could not be delivered, once for each attempt, when the next one is.

    `attempts` are those already printed, by delivery.
    """
    webhooks = stage.sandbox.webhooks
    for delivery in webhooks.deliveries.values():
        seconds, made = webhooks.seconds_to_next(delivery), len(delivery.attempts)
        if seconds is None or delivery.order_id is None:
            continue
        if attempts.get(delivery.delivery_id) == made:
            continue
        attempts[delivery.delivery_id] = made
        yield _(
            "{at}  order {order}: not delivered to the bridge; the service retries in {n} s, "
            "at {next}"
        ).format(
            at=_clock_time(0),
            order=_number(stage, delivery.order_id),
            n=seconds,
            next=_clock_time(seconds),
        )


def _clock_time(later_s: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=later_s)).strftime("%H:%M:%S")


def _number(stage: Stage, order_id: str) -> str:
    """Return the number that the guest knows an order by."""
    order = stage.sandbox.world.orders.get(order_id)
    return order_id if order is None else order.order_number


_MESSAGES = {
    "order.received": _("order {order}: received"),
    "order.written": _("order {order}: the till has it"),
    "order.accepted": _("order {order}: accepted"),
    "order.preparing": _("order {order}: in the kitchen"),
    "order.ready": _("order {order}: ready"),
    "order.completed": _("order {order}: delivered"),
    "order.cancelled": _("order {order}: cancelled"),
    "export.read": _("the till's export was read"),
    "menu.pushed": _("the menu was pushed"),
    "availability.pushed": _("availability was pushed"),
    "menu.held": _("a menu change is on hold"),
    "problem.opened": _("problem: {code}"),
    "problem.closed": _("problem solved: {code}"),
}


def _message_of(text: str, stage: Stage) -> str:
    try:
        event: dict[str, Any] = json.loads(text)
    except ValueError:
        return ""
    message = _MESSAGES.get(str(event.get("event")))
    if message is None:
        return ""
    at = str(event.get("at", ""))[11:19]
    order = _number(stage, str(event.get("order", "?")))
    return f"{at}  {message.format_map({'code': '?', **event, 'order': order})}"


_Scene = Callable[[Stage], Awaitable[str]]


async def scenario(stage: Stage) -> int:
    """Play every scene; return 0 only if all that should happen happened."""
    for title, scene in _SCENES:
        try:
            report = await scene(stage)
        except NotHere as reason:
            line(f"  - {title:<62} {reason}")
            continue
        except (BridgeError, TimeoutError) as failure:
            line(f"  ✗ {title}", level="error")
            line(f"    {failure}", level="error")
            line()
            line(_("Not every step worked."), level="error")
            return 1
        line(f"  ✓ {title:<62} {report}", level="ok")
    line()
    line(_("Every step worked."), level="ok")
    return 0


async def _connect(stage: Stage) -> str:
    await stage.connect()
    return ""


async def _menu(stage: Stage) -> str:
    await stage.until(_("the menu is on sale"), stage.menu_is_on_sale)
    return _("{count} items").format(count=len(stage.till.menu.item_ids()))


async def _order(stage: Stage) -> str:
    order = await stage.place("P02", "B05")
    took = await stage.until(
        _("the till has the ticket"), lambda: order in stage.till.kitchen.tickets
    )
    lines = stage.till.kitchen.tickets[order]
    if sorted(lines) != sorted(map(stage.till.menu.id_of, ("P02", "B05"))):
        raise DemoFailed(_("The ticket's lines differ from the order: {lines}").format(lines=lines))
    return _in_ms(took)


async def _order_course(stage: Stage) -> str:
    if not stage.till.kitchen.reports_progress:
        raise NotHere(_("this till does not report it"))
    order = await stage.place("D01")
    await stage.until(_("the customer sees: ready"), lambda: stage.order_is(order, "ready"))
    await stage.control(f"orders/{order}/deliver", {})
    await stage.until(_("it is completed"), lambda: stage.order_is(order, "completed"))
    return ""


async def _sold_out(stage: Stage) -> str:
    before = _noted(stage)
    stage.till.menu.sell_out("D01")
    took = await stage.until(_("D01 is off sale"), lambda: _on_sale(stage, "D01", wanted=False))
    await stage.until(_("the bridge has saved it"), lambda: _noted(stage) > before)
    try:
        await stage.place("D01")
    except DemoFailed:
        return _in_ms(took)
    raise DemoFailed(_("A customer could still order what is sold out."))


async def _back(stage: Stage) -> str:
    before = _noted(stage)
    stage.till.menu.restock("D01")
    took = await stage.until(_("D01 is back"), lambda: _on_sale(stage, "D01", wanted=True))
    await stage.until(_("the bridge has saved it"), lambda: _noted(stage) > before)
    return _in_ms(took)


def _noted(stage: Stage) -> int:
    """Count the calls about the menu that are in the ledger: until then they may be repeated."""
    log = stage.log_path.read_bytes()
    return log.count(b'"availability.pushed"') + log.count(b'"menu.pushed"')


async def _on_sale(stage: Stage, external_id: str, *, wanted: bool) -> bool:
    item = (await stage.storefront()).get(stage.till.menu.id_of(external_id))
    return item is not None and bool(item["available"]) is wanted


async def _price(stage: Stage) -> str:
    await stage.control("requests", method="DELETE")
    stage.till.menu.reprice("P03", "11.90")

    async def is_shown() -> bool:
        return bool((await stage.storefront())[stage.till.menu.id_of("P03")]["price"] == 1190)

    took = await stage.until(_("the new price is shown"), is_shown)
    calls = (await stage.control("requests", method="GET"))["requests"]
    writes = [f"{call['method']} {call['path']}" for call in calls if call["method"] != "GET"]
    if [each.partition(" ")[0] for each in writes] != ["PATCH"]:
        raise DemoFailed(_("Expected a single PATCH, got: {calls}").format(calls=writes))
    return _in_ms(took)


async def _emptied(stage: Stage) -> str:
    before = await stage.storefront()
    stage.till.menu.export_nothing()

    def distrusted() -> bool:
        log = stage.log_path.read_bytes()
        return b'"menu.held"' in log or b'"export.unreadable"' in log

    await stage.until(_("the empty export is on hold, or treated as incomplete"), distrusted)
    if set(await stage.storefront()) != set(before):
        raise DemoFailed(_("An empty export has wiped the menu."))
    stage.till.menu.export()
    return _("{count} items still on sale").format(count=len(before))


async def _killed(stage: Stage) -> str:
    await stage.control("clock", {"speed": 60})  # a delivery that was missed comes again soon
    orders = [await stage.place("P02") for _number in range(5)]
    await stage.kill_bridge()
    orders += [await stage.place("A02") for _number in range(5)]
    await stage.start_bridge()
    await stage.until(_("all tickets"), lambda: set(orders) <= stage.till.kitchen.tickets.keys())
    for order in orders:
        await stage.until(_("it is accepted"), partial(_is_accepted, stage, order))
    await stage.control("clock", {"speed": 1})
    return _("{count} orders, one ticket each").format(count=len(orders))


async def _is_accepted(stage: Stage, order: str) -> bool:
    document = await stage.control(f"orders/{order}", method="GET")
    return document["state"] in {"accepted", "preparing", "ready"}


async def _service_gone(stage: Stage) -> str:
    await stage.control("faults", {"path": "^/pos/", "action": "error", "status": 503})
    order = await stage.place("S01")
    await stage.until(_("the till has the ticket"), lambda: order in stage.till.kitchen.tickets)
    await stage.control("faults", method="DELETE")
    gone_until = time.monotonic()
    await stage.until(_("it is reported"), lambda: _is_accepted(stage, order))
    return _("reported {ms:.0f} ms after it was back").format(
        ms=(time.monotonic() - gone_until) * 1000
    )


async def _stopped(stage: Stage) -> str:
    started = time.monotonic()
    code = await stage.stop_bridge()
    if code != 0:
        raise DemoFailed(_("The bridge ended with {code}.").format(code=code))
    return _in_ms((time.monotonic() - started) * 1000)


def _in_ms(milliseconds: float) -> str:
    return _("in {ms:.0f} ms").format(ms=milliseconds)


_SCENES: tuple[tuple[str, _Scene], ...] = (
    (_("The restaurant authorizes the bridge"), _connect),
    (_("The till's export reaches the storefront"), _menu),
    (_("A signed order becomes a ticket in the till"), _order),
    (_("The customer sees it accepted, prepared, ready, delivered"), _order_course),
    (_("An item sold out in the till is off sale"), _sold_out),
    (_("It goes back on sale"), _back),
    (_("A new price needs only one small call"), _price),
    (_("An empty export does not wipe the menu"), _emptied),
    (_("The bridge is killed during a rush; no order lost or doubled"), _killed),
    (_("The service is down; the kitchen cooks, the report follows"), _service_gone),
    (_("The bridge shuts down cleanly"), _stopped),
)
