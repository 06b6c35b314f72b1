"""The sandbox's records in a file: written after changes, and read at the next start.

Stores, merchants, menus, tables, orders, communities, consents, tokens, and deliveries that are
still under way. Faults, the request log, baskets and what was delivered are forgotten.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

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
    World,
)
from tillbridge.sandbox.tokens import Consent, Token
from tillbridge.sandbox.webhooks import Delivery, Target

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox


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


#: The tables of the world, each record with its key; a record refers to those of tables above.
_TABLES: Mapping[str, tuple[type, Callable[[Any], object]]] = {
    "merchants": (Merchant, lambda each: each.email.lower()),
    "stores": (Store, lambda each: each.store_id),
    "links": (Link, lambda each: (each.app_id, each.store.store_id)),
    "jobs": (Job, lambda each: each.job_id),
    "orders": (Order, lambda each: each.order_id),
    "communities": (Community, lambda each: each.community_id),
    "subscriptions": (Subscription, lambda each: each.webhook_id),
    "parent_orders": (ParentOrder, lambda each: each.order_id),
}
_OF_DELIVERY = "delivery_id event_id event_type target body retry order_id attempts".split()


# -- writing


def dump(sandbox: "Sandbox") -> bytes:
    """Return the records as JSON; what refers to another one names it."""
    world = sandbox.world
    current, issued = sandbox.tokens.records()
    of_tokens = [each.consent for each in issued.values() if each.consent is not None]
    consents = list({id(each): each for each in [*current, *of_tokens]}.values())
    places = {id(each): place for place, each in enumerate(consents)}
    pending = [each for each in sandbox.webhooks.deliveries.values() if each.state == "pending"]
    state = {
        "version": _VERSION,
        "ahead_s": sandbox.clock.ahead_s,
        "last_order_number": world.last_order_number,
        "auto_consent": world.auto_consent,
        "signups": world.signups,
        "rejected_items": world.rejected_items,
        **{name: [_fields(each) for each in getattr(world, name).values()] for name in _TABLES},
        "consents": [[each, each in current] for each in consents],
        "tokens": {
            text: {**_fields(each), "consent": places.get(id(each.consent))}
            for text, each in issued.items()
        },
        "deliveries": [{name: _fields(each)[name] for name in _OF_DELIVERY} for each in pending],
    }
    return orjson.dumps(state, default=_plain)


def _fields(record: Any) -> dict[str, object]:  # noqa: ANN401 -- any dataclass
    return {each.name: _named(getattr(record, each.name)) for each in fields(record)}


def _named(value: object) -> object:
    match value:
        case Store():
            return value.store_id
        case Link():
            return [value.app_id, value.store.store_id]
        case Community():
            return value.community_id
        case Subscription():
            return [value.webhook_id]
        case list() if value and isinstance(value[0], Order):
            return [each.order_id for each in value]
    return value


def _plain(value: object) -> object:
    match value:
        case set():
            return sorted(value)
        case bytes():
            return value.decode()
        case BaseModel():
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
    world.signups = TypeAdapter(dict[str, Signup]).validate_python(state["signups"])
    world.rejected_items = dict(state["rejected_items"])
    for name, (kind, key) in _TABLES.items():
        records = [kind(**_read(world, kind, each)) for each in state[name]]
        setattr(world, name, {key(each): each for each in records})
    for job in world.jobs.values():
        if job.status == world.settings.job_running_status:
            job.status = "failed"
            why = "The service was restarted before the job was done"
            job.error = {"code": "menu.forward_failed", "message": why}
    consents = [
        (Consent(**_read(world, Consent, each)), bool(current))
        for each, current in state["consents"]
    ]
    issued = {}
    for text, each in state["tokens"].items():
        issued[text] = Token(**_read(world, Token, {**each, "consent": None}))
        if each["consent"] is not None:
            issued[text].consent = consents[each["consent"]][0]
    sandbox.tokens.restore([each for each, current in consents if current], issued)
    for each in state["deliveries"]:
        sandbox.webhooks.record(Delivery(**_read(world, Delivery, each)))


#: What stands for a record that another one refers to, by the type of the field.
_FIND: Mapping[object, Callable[[World, Any], object]] = {
    Store: lambda world, store_id: world.stores[store_id],
    Link: lambda world, key: world.links[_pair(key)],
    Community: lambda world, community_id: world.communities[community_id],
    list[Order]: lambda world, order_ids: [world.orders[each] for each in order_ids],
    Target: lambda world, key: (
        world.links[_pair(key)] if len(key) > 1 else world.subscriptions[key[0]]
    ),
}


def _pair(key: list[str]) -> tuple[str, str]:
    app_id, store_id = key
    return app_id, store_id


def _read(world: World, kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record, with what it refers to."""
    wanted = _OF_DELIVERY if kind is Delivery else [each.name for each in fields(kind)]
    types = _types(kind)
    return {
        name: _FIND[types[name]](world, data[name])
        if types[name] in _FIND
        else _adapter(types[name]).validate_python(data[name])
        for name in wanted
    }


_types = cache(get_type_hints)
_adapter = cache(TypeAdapter)
