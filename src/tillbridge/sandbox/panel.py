"""The first page: stores, orders, how to connect, and the buttons that make things go wrong."""

import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
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


def _last_order(sandbox: "Sandbox") -> Delivery:
    found = [each for each in sandbox.webhooks.deliveries.values() if each.order_id]
    if not found:
        raise ServiceError("control.refused", "There is no order yet; place one first", status=409)
    return found[-1]


def _clock(sandbox: "Sandbox") -> str:
    speed = sandbox.clock.speed
    pace = "at normal speed" if speed == 1 else f"{speed:g} times as fast"
    pace = "standing still" if speed == 0 else pace
    return f"{clock_time(sandbox.clock.now_ms())}, {pace}."


#: What buttons do that have neither a rule nor anything to do with the clock.
_PRESS: Mapping[str, Callable[["Sandbox"], object]] = {
    "again": lambda sandbox: sandbox.webhooks.redeliver(_last_order(sandbox), "new_delivery_id"),
    "forge": lambda sandbox: [
        sandbox.webhooks.redeliver(_last_order(sandbox), "new_event_id", forged=True)
        for _number in range(3)
    ],
    "pause": lambda sandbox: sandbox.webhooks.pause(),
    "resume": lambda sandbox: sandbox.webhooks.resume(),
    "revoke": lambda sandbox: sandbox.tokens.revoke(),
    "expire": lambda sandbox: sandbox.tokens.expire("access"),
}


def _press(sandbox: "Sandbox", name: str, declared: Mapping[str, Any]) -> None:
    if "rule" in declared:
        sandbox.traffic.rules.append(Armed(FaultRule.model_validate(declared["rule"])))
    elif "jump_s" in declared:
        sandbox.clock.jump(declared["jump_s"])
    elif "speed" in declared:
        sandbox.clock.run_at(declared["speed"])
    else:
        _PRESS[name](sandbox)


_STATES: Mapping[str, Callable[["Sandbox"], str]] = {
    "calls": _rules,
    "deliveries": lambda sandbox: "Deliveries are paused." if sandbox.webhooks.paused else "",
    "consent": lambda _sandbox: "",
    "time": _clock,
}
_GROUPS = tuple(
    Group(
        group["title"],
        {
            name: Button(each["label"], each["watch"], partial(_press, name=name, declared=each))
            for name, each in group["buttons"].items()
        },
        _STATES[key],
    )
    for key, group in tomllib.loads(
        Path(__file__).with_name("panel.toml").read_text("utf-8")
    ).items()
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
async def _press_button(sandbox: "Sandbox", request: web.Request) -> web.Response:
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
    states = [each.state(sandbox) for each in _groups(sandbox) if each.state is not _clock]
    return ".".join(map(str, (*counts, *states, sandbox.clock.speed)))
