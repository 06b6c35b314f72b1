"""The first page: stores, orders, how to connect, and the buttons that make things go wrong."""

import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tillbridge.sandbox.endpoints import SITE, origin
from tillbridge.sandbox.middleware import Armed, FaultRule
from tillbridge.sandbox.pages import Button, Group, clock_time, read_form
from tillbridge.sandbox.validation import Json, ServiceError
from tillbridge.sandbox.webhooks import Delivery

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox

_FAULTS = Path(__file__).with_name("faults.toml")


def _fault(label: str, watch: str, rule: Mapping[str, Any]) -> Button:
    def switch_on(sandbox: "Sandbox") -> None:
        sandbox.traffic.rules.append(Armed(FaultRule.model_validate(rule)))

    return Button(label, watch, switch_on)


def _rules(sandbox: "Sandbox") -> str:
    lines = [
        " ".join(
            filter(
                None,
                (
                    rule.action,
                    str(rule.status) if rule.action == "error" else "",
                    "after it took effect," if rule.when == "after" else "",
                    f"({rule.count - armed.hits} to go)" if rule.count else "(every call)",
                ),
            )
        )
        for armed in sandbox.traffic.rules
        for rule in (armed.rule,)
    ]
    return f"Switched on: {'; '.join(lines)}." if lines else "No faults are switched on."


_CALLS: Mapping[str, Button] = {
    name: _fault(**declared) for name, declared in tomllib.loads(_FAULTS.read_text("utf-8")).items()
}


def _last_order(sandbox: "Sandbox") -> Delivery:
    found = [each for each in sandbox.webhooks.deliveries.values() if each.order_id]
    if not found:
        raise ServiceError("control.refused", "There is no order yet; place one first", status=409)
    return found[-1]


_DELIVERIES: Mapping[str, Button] = {
    "again": Button(
        "Deliver the last order again",
        "The till still has one ticket: the bridge knows the order.",
        lambda sandbox: sandbox.webhooks.redeliver(_last_order(sandbox), "new_delivery_id"),
    ),
    "forge": Button(
        "Deliver three orders with a wrong signature",
        "The bridge refuses them, so there is no ticket, and its page says what is wrong. Order "
        "something: with a right signature that is over.",
        lambda sandbox: [
            sandbox.webhooks.redeliver(_last_order(sandbox), "new_event_id", forged=True)
            for _number in range(3)
        ],
    ),
    "pause": Button(
        "Pause deliveries",
        "Order something: the bridge does not know of it until you resume.",
        lambda sandbox: sandbox.webhooks.pause(),
    ),
    "resume": Button(
        "Resume deliveries",
        "What was held is delivered now.",
        lambda sandbox: sandbox.webhooks.resume(),
    ),
}
_CONSENT: Mapping[str, Button] = {
    "revoke": Button(
        "Revoke consent",
        "Within a minute the bridge's page says that the access was withdrawn. "
        'Orders still reach the till. "Connect the store" on that page mends it; "Put everything '
        'right" does not.',
        lambda sandbox: sandbox.tokens.revoke(),
    ),
    "expire": Button(
        "Expire access tokens",
        "The bridge renews its token at the next call. Nobody notices.",
        lambda sandbox: sandbox.tokens.expire("access"),
    ),
}


def _clock(sandbox: "Sandbox") -> str:
    speed = sandbox.clock.speed
    pace = "at normal speed" if speed == 1 else f"{speed:g} times as fast"
    pace = "standing still" if speed == 0 else pace
    return f"{clock_time(sandbox.clock.now_ms())}, {pace}."


def _jump(label: str, watch: str, seconds: float) -> Button:
    return Button(label, watch, lambda sandbox: sandbox.clock.jump(seconds))


_TIME: Mapping[str, Button] = {
    "jump_minute": _jump(
        "+ 1 minute", "A delivery that waits for its second attempt is made now.", 60
    ),
    "jump_hour": _jump("+ 1 hour", "Access tokens expire, and so do most snoozes.", 3600),
    "jump_day": _jump("+ 1 day", "After seven of them the merchant has to consent again.", 86400),
    "speed_60": Button(
        "60 times as fast", "A minute takes a second.", lambda sandbox: sandbox.clock.run_at(60)
    ),
    "speed_1": Button(
        "Normal speed", "A second takes a second.", lambda sandbox: sandbox.clock.run_at(1)
    ),
}
_GROUPS = (
    Group("Calls to the service", _CALLS, _rules),
    Group(
        "Orders on their way to the bridge",
        _DELIVERIES,
        lambda sandbox: "Deliveries are paused." if sandbox.webhooks.paused else "",
    ),
    Group("The merchant's consent", _CONSENT),
    Group("The service's clock", _TIME, _clock),
)


def _groups(sandbox: "Sandbox") -> Iterator[Group]:
    if sandbox.pages.demo:
        yield from sandbox.pages.demo.groups
    yield from _GROUPS


async def _mend(sandbox: "Sandbox") -> None:
    """Everything as it was before the first button, but for what cannot be taken back."""
    sandbox.traffic.clear_faults()
    sandbox.webhooks.resume()
    sandbox.clock.run_at(1)
    if sandbox.pages.demo:
        sandbox.pages.demo.mend()


@SITE.serves("GET", "/")
def _index(sandbox: "Sandbox", request: web.Request) -> web.Response:
    world = sandbox.world
    return sandbox.pages.render(
        "index.html",
        base_url=origin(sandbox, request) + sandbox.settings.api_prefix,
        apps=list(world.apps.values()),
        merchants=list(world.merchants.values()),
        stores=[(store, world.active_link(store.store_id)) for store in world.stores.values()],
        communities=list(world.communities.values()),
        orders=list(reversed(world.orders.values()))[:12],
        groups=[(each, each.state(sandbox)) for each in _groups(sandbox)],
        version=_version(sandbox),
        did=request.query.get("did", ""),
    )


@SITE.serves("GET", "/version")
def _show_version(sandbox: "Sandbox") -> Json:
    return {"version": _version(sandbox)}


@SITE.serves("POST", "/panel")
async def _press(sandbox: "Sandbox", request: web.Request) -> web.Response:
    name = (await read_form(request)).get("do", "")
    buttons = {key: each for group in _groups(sandbox) for key, each in group.buttons.items()}
    press: Callable[[Sandbox], object]
    if name == "clear":
        press = _mend
    elif name in buttons:
        press = buttons[name].press
    else:
        return sandbox.pages.message("No such button", "Go back and press another one.", status=400)
    pressed = press(sandbox)
    if inspect.isawaitable(pressed):
        await pressed
    raise web.HTTPSeeOther(f"/?did={name}#did")


def _version(sandbox: "Sandbox") -> str:
    """Changes with everything that the first page shows, but for the time."""
    world = sandbox.world
    counts = (
        sum(len(community.store_ids) for community in world.communities.values()),
        len(world.stores),
        sum(len(order.history) for order in world.orders.values()),
        sum(link.active is not None for link in world.links.values()),
        sum(link.catalogue.revision for link in world.links.values()),
        sum(each.hits for each in sandbox.traffic.rules),
    )
    states = [each.state(sandbox) for each in _groups(sandbox) if each.buttons is not _TIME]
    return ".".join(map(str, (*counts, *states, sandbox.clock.speed)))
