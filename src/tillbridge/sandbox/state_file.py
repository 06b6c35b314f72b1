"""The sandbox's records in a file: written after changes, and read at the next start.

Stores, merchants, menus, tables, orders, communities, consents, tokens, and deliveries that are
still under way. Faults, the request log, baskets and what was delivered are forgotten.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import orjson
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel, TypeAdapter

from tillbridge.sandbox.bodies import Signup
from tillbridge.sandbox.state import (
    Community,
    Job,
    Link,
    Merchant,
    Order,
    ParentOrder,
    Store,
    Subscription,
)
from tillbridge.sandbox.tokens import Consent, Token
from tillbridge.sandbox.webhooks import Delivery

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox

R = TypeVar("R")

_VERSION = 1
_SETTLE_S = 0.3
_log = structlog.get_logger("tillbridge.sandbox")


class UnusableStateError(Exception):
    """The file cannot be read, is damaged or of another version, or cannot be written."""


class StateFile:
    """Keeps a sandbox's records in a file. Making it raises UnusableStateError."""

    def __init__(self, path: Path, sandbox: "Sandbox") -> None:
        self._path = path
        self._sandbox = sandbox
        self._written = b""
        self._timer: asyncio.TimerHandle | None = None
        try:
            if path.exists():
                restore(sandbox, path.read_bytes())
            self._write(dump(sandbox))
        except OSError as failure:
            raise UnusableStateError(f"{path}: {failure.strerror}") from failure
        except (KeyError, IndexError, TypeError, ValueError) as damage:
            raise UnusableStateError(
                f"{path} is damaged, or no state of a sandbox of this version"
            ) from damage

    @web.middleware
    async def after_each_request(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Write what the request has changed, a moment later."""
        try:
            return await handler(request)
        finally:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_SETTLE_S, self.save)

    def save(self) -> None:
        """Write what differs from the file."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        data = dump(self._sandbox)
        if data == self._written:
            return
        try:
            self._write(data)
        except OSError as failure:
            _log.warning("sandbox.state_not_written", file=str(self._path), why=failure.strerror)

    def _write(self, data: bytes) -> None:
        fresh = self._path.with_name(f"{self._path.name}.new")
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        # It holds tokens and secrets.
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self._written = data


# -- writing


def dump(sandbox: "Sandbox") -> bytes:
    """Return the records as JSON; what refers to another one names it."""
    world = sandbox.world
    current, issued = sandbox.tokens.records()
    consents = list({id(each): each for each in [*current, *_consents_of(issued)]}.values())
    places = {id(each): place for place, each in enumerate(consents)}
    pending = [each for each in sandbox.webhooks.deliveries.values() if each.state == "pending"]
    state = {
        "version": _VERSION,
        "ahead_s": sandbox.clock.ahead_s,
        "last_order_number": world.last_order_number,
        "auto_consent": world.auto_consent,
        "merchants": list(world.merchants.values()),
        "stores": list(world.stores.values()),
        "links": [_fields(each, store=each.store.store_id) for each in world.links.values()],
        "jobs": list(world.jobs.values()),
        "signups": world.signups,
        "orders": [_fields(each, link=_key(each.link)) for each in world.orders.values()],
        "rejected_items": world.rejected_items,
        "communities": list(world.communities.values()),
        "subscriptions": list(world.subscriptions.values()),
        "parent_orders": [
            _fields(
                each,
                community=each.community.community_id,
                children=[child.order_id for child in each.children],
            )
            for each in world.parent_orders.values()
        ],
        "consents": [[each, each in current] for each in consents],
        "tokens": {
            text: _fields(each, consent=places.get(id(each.consent)))
            for text, each in issued.items()
        },
        "deliveries": [
            {
                **{name: getattr(each, name) for name in _OF_DELIVERY},
                "target": _key(each.target),
                "body": each.body.decode(),
            }
            for each in pending
        ],
    }
    return orjson.dumps(state, default=_plain)


_OF_DELIVERY = ("delivery_id", "event_id", "event_type", "retry", "order_id", "attempts")


def _consents_of(issued: Mapping[str, Token]) -> list[Consent]:
    return [each.consent for each in issued.values() if each.consent is not None]


def _fields(record: Any, **named: object) -> dict[str, object]:  # noqa: ANN401 -- any dataclass
    return {each.name: named.get(each.name, getattr(record, each.name)) for each in fields(record)}


def _key(target: Link | Subscription) -> list[str]:
    if isinstance(target, Subscription):
        return [target.webhook_id]
    return [target.app_id, target.store.store_id]


def _plain(value: object) -> object:
    if isinstance(value, set):
        return sorted(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    raise TypeError(type(value).__name__)


# -- reading


def restore(sandbox: "Sandbox", data: bytes) -> None:
    """Put the records of a file into a sandbox that has not begun.

    Raises KeyError, IndexError, TypeError or ValueError for what `dump` has not written.
    """
    state, world = orjson.loads(data), sandbox.world
    if state["version"] != _VERSION:
        raise ValueError(state["version"])
    sandbox.clock.jump(max(0, int(state["ahead_s"])))
    world.last_order_number = int(state["last_order_number"])
    world.auto_consent = bool(state["auto_consent"])
    merchants = [_read(Merchant, each) for each in state["merchants"]]
    world.merchants = {each.email.lower(): each for each in merchants}
    world.stores = {each.store_id: each for each in _all(Store, state["stores"])}
    links = [_read(Link, each, store=world.stores[each["store"]]) for each in state["links"]]
    world.links = {(each.app_id, each.store.store_id): each for each in links}
    world.jobs = {each.job_id: each for each in _all(Job, state["jobs"])}
    for job in world.jobs.values():
        if job.status == world.settings.job_running_status:
            job.status = "failed"
            why = "The service was restarted before the job was done"
            job.error = {"code": "menu.forward_failed", "message": why}
    world.signups = TypeAdapter(dict[str, Signup]).validate_python(state["signups"])
    orders = [_read(Order, each, link=world.links[_pair(each["link"])]) for each in state["orders"]]
    world.orders = {each.order_id: each for each in orders}
    world.rejected_items = dict(state["rejected_items"])
    hubs = _all(Community, state["communities"])
    world.communities = {each.community_id: each for each in hubs}
    world.subscriptions = {
        each.webhook_id: each for each in _all(Subscription, state["subscriptions"])
    }
    for each in state["parent_orders"]:
        children = [world.orders[order_id] for order_id in each["children"]]
        community = world.communities[each["community"]]
        parent = _read(ParentOrder, each, community=community, children=children)
        world.parent_orders[parent.order_id] = parent
        world.parents |= {child.order_id: parent for child in children}
    _restore_tokens(sandbox, state)
    for each in state["deliveries"]:
        target = each["target"]
        named: dict[str, Any] = {
            "target": world.links[_pair(target)]
            if len(target) > 1
            else world.subscriptions[target[0]],
            "body": each["body"].encode(),
        }
        for name in _OF_DELIVERY:
            named[name] = _adapter(Delivery, name).validate_python(each[name])
        sandbox.webhooks.record(Delivery(**named))


def _restore_tokens(sandbox: "Sandbox", state: Mapping[str, Any]) -> None:
    consents = [(_read(Consent, each), bool(current)) for each, current in state["consents"]]
    issued = {}
    for text, each in state["tokens"].items():
        place = each["consent"]
        consent = None if place is None else consents[place][0]
        issued[text] = _read(Token, each, consent=consent)
    sandbox.tokens.restore([each for each, current in consents if current], issued)


def _pair(key: list[str]) -> tuple[str, str]:
    app_id, store_id = key
    return app_id, store_id


def _all(kind: type[R], rows: list[dict[str, Any]]) -> list[R]:
    return [_read(kind, each) for each in rows]


def _read(kind: type[R], data: Mapping[str, Any], **named: object) -> R:
    """Return a record; what it refers to is `named`."""
    record: Any = kind  # a dataclass
    values = dict(named)
    for each in fields(record):
        if each.name not in named:
            values[each.name] = _adapter(record, each.name).validate_python(data[each.name])
    return kind(**values)


@cache
def _adapter(kind: Any, name: str) -> TypeAdapter[Any]:  # noqa: ANN401 -- (as above)
    return TypeAdapter(get_type_hints(kind)[name])
