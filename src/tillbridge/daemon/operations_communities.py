"""What commands ask of the bridge about communities."""

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from tillbridge.core.errors import BridgeError, ConfigError, ServiceError
from tillbridge.core.i18n import _
from tillbridge.ledger.community import get_records, latest_parents, tied_children
from tillbridge.ledger.overrides import community_overrides
from tillbridge.model.instant import to_iso
from tillbridge.web.ports import Answer

if TYPE_CHECKING:
    from tillbridge.communities.flow import CommunityFlow
    from tillbridge.daemon.community_rooms import CommunityRooms
    from tillbridge.ledger.community import TiedChild
    from tillbridge.ledger.models import CommunityOrder
    from tillbridge.model.community import DeliveryAttempt, Record


class CommunityOperations:
    """The operations. `later` adds that nobody is told just yet, where that is so."""

    def __init__(
        self, communities: "Mapping[str, CommunityRooms]", later: Callable[[str], str]
    ) -> None:
        self._communities = communities
        self._later = later

    async def items(self, community: str) -> Answer:
        """Return the mirrored items, each with how it stands on both sides."""
        from tillbridge.communities.overrides import (  # noqa: PLC0415 -- only with communities
            item_availability,
        )

        flow = self._flow(community)
        records, overrides = await self._records(flow), await flow.overrides.all()
        stores = {each.record_id: each.name for each in records if each.kind == "store"}
        now = flow.context.clock.now_ms()
        return {
            "as_of": (await flow.mirror.state()).get("as_of"),
            "items": [
                {
                    "item_id": each.record_id,
                    "external_id": each.external_id,
                    "name": each.name,
                    "store_id": each.store_id,
                    "store_name": stores.get(each.store_id, ""),
                    "price": each.price,
                    "snoozed_until": each.snoozed_until,
                    **item_availability(each, overrides.get(each.record_id), now).to_json(),
                }
                for each in records
                if each.kind == "item"
            ],
        }

    async def availability(self, community: str) -> Answer:
        """Return what is off sale by this bridge's word, and when the service was last told."""
        context = self._flow(community).context

        def read(connection: Connection) -> Answer:
            words = community_overrides(connection, context.key).values()
            names = {
                each.record_id: each.name
                for each in get_records(connection, context.key)
                if each.kind == "item"
            }
            told = [each.sent_at for each in words if each.sent_at is not None]
            return {
                "items": [
                    {
                        "item_id": each.external_id,
                        "name": names.get(each.external_id, ""),
                        "at": to_iso(each.at),
                        "until": None if each.until is None else to_iso(each.until),
                        "by": each.by,
                        "told_at": None if each.sent_at is None else to_iso(each.sent_at),
                    }
                    for each in words
                    if not each.available
                ],
                "waiting": sum(each.sent_at is None for each in words),
                "last_told_at": to_iso(max(told)) if told else None,
            }

        return await context.ledger.read(read)

    async def sync(self, community: str, *, full: bool) -> Answer:
        """Read the catalogue now: what has changed in it, or all of it."""
        flow = self._flow(community)
        state = await (flow.mirror.whole() if full else flow.mirror.round())
        text = _("The catalogue is mirrored: {items} items of {stores} stores.").format(
            items=state["items"], stores=state["stores"]
        )
        return {"ok": True, "text": text, **state}

    async def item_86(
        self, community: str, item_id: str, *, until_ms: int | None, by: str
    ) -> Answer:
        """Take an item off sale in the community, whatever the merchant says."""
        flow = self._flow(community)
        if until_ms is not None and until_ms <= flow.context.clock.now_ms():
            raise ConfigError(
                _("That time is over."), fix=_("Give a time to come, or none at all.")
            )
        record = await self._item(flow, item_id)
        await flow.overrides.set(record.record_id, available=False, until=until_ms, by=by)
        text = (
            _("{item} is off sale in the community until it is restored.")
            if until_ms is None
            else _("{item} is off sale in the community until {until}.")
        )
        until = "" if until_ms is None else to_iso(until_ms)
        return await self._told(flow, text.format(item=record.name or item_id, until=until))

    async def item_restore(self, community: str, item_id: str, *, by: str) -> Answer:
        """Let the community sell an item again; what the merchant says counts alone."""
        flow = self._flow(community)
        record = await self._item(flow, item_id)
        await flow.overrides.set(record.record_id, available=True, until=None, by=by)
        text = _("{item} is on sale in the community again, as far as its store sells it.")
        return await self._told(flow, text.format(item=record.name or item_id))

    async def orders(self, community: str, limit: int) -> Answer:
        """Return the latest parent orders, newest first, with their parts."""
        flow = self._flow(community)
        key, ledger = flow.context.key, flow.context.ledger
        parents = await ledger.read(partial(latest_parents, community=key, limit=limit))
        return {
            "orders": [
                _parent(
                    each,
                    await ledger.read(
                        partial(tied_children, community=key, parent_id=each.order_id)
                    ),
                )
                for each in parents
            ]
        }

    async def hours(self, community: str) -> Answer:
        """Return the opening hours as the community is to have them."""
        listed = await self._flow(community).hours.listed()
        return {
            "ok": True,
            "text": ""
            if listed
            else _("No member store here names an hours file, or push_hours is off."),
            "stores": [
                {
                    "store": each.store,
                    "hours": dict(each.body),
                    "pushed_at": None if each.pushed_at is None else to_iso(each.pushed_at),
                }
                for each in listed
            ],
        }

    async def push_hours(self, community: str) -> Answer:
        """Push the opening hours of every store, changed or not."""
        await self._flow(community).hours.push_all()
        told = await self.hours(community)
        pushed = [each["store"] for each in told["stores"] if each["pushed_at"]]
        if not pushed:
            return {**told, "ok": False, "text": told["text"] or _("No store is connected yet.")}
        text = _("The opening hours are pushed: {stores}.").format(stores=", ".join(pushed))
        return {**told, "text": text}

    async def webhook_test(self, community: str) -> Answer:
        """Let the service send a test delivery, and tell what came of it."""
        flow = self._flow(community)
        tested = await flow.subscriber.test()
        if tested is None:
            raise _no_subscription(community)
        if tested.ok:
            return {"ok": True, "text": _("The test delivery arrived, and is on disk.")}
        if tested.attempt is None:
            fix = _("Look at: tillbridge community webhook deliveries {name}").format(
                name=community
            )
            text = _("The service has not tried to deliver the test within twelve seconds.")
            return {"ok": False, "text": text, "fix": fix}
        from tillbridge.communities.subscription import (  # noqa: PLC0415 -- only with communities
            describe,
            remedy,
        )

        if tested.attempt.succeeded:
            text = _("Something answered the test delivery, but it was not this bridge.")
            return {
                "ok": False,
                "text": text,
                "fix": self._later(_("Check public_url in [receiver].")),
            }
        return {
            "ok": False,
            "text": self._later(_("The test delivery failed. {what}")).format(
                what=describe(tested.attempt)
            ),
            "fix": remedy(tested.attempt, community, flow.subscriber.wanted.url),
        }

    async def webhook_deliveries(self, community: str) -> Answer:
        """Return the attempts to deliver that the service remembers."""
        flow = self._flow(community)
        if flow.subscriber.webhook_id is None:
            raise _no_subscription(community)
        return {"deliveries": [_attempt(each) for each in await flow.subscriber.deliveries()]}

    async def webhook_remake(self, community: str) -> Answer:
        """Make a new subscription, with a new secret, in place of the one there is."""
        await self._flow(community).subscriber.remake()
        return {"ok": True, "text": _("There is a new subscription, with a new signing secret.")}

    # -- inside

    def _flow(self, name: str) -> "CommunityFlow":
        rooms = self._communities.get(name)
        if rooms is None:
            there = ", ".join(self._communities)
            raise ConfigError(
                _("There is no community {name}.").format(name=name),
                fix=_("There are: {names}.").format(names=there)
                if there
                else _("Add a table [communities.{name}]; see docs/communities.md.").format(
                    name=name
                ),
            )
        return rooms.flow

    async def _records(self, flow: "CommunityFlow") -> "list[Record]":
        if not await flow.mirror.state():
            await flow.mirror.whole()
        return await flow.context.ledger.read(partial(get_records, community=flow.context.key))

    async def _item(self, flow: "CommunityFlow", item: str) -> "Record":
        """Find an item by its id in the community, or by the till's where only one has it."""
        items = [each for each in await self._records(flow) if each.kind == "item"]
        found = [each for each in items if each.record_id == item] or [
            each for each in items if each.external_id == item
        ]
        if not found:
            raise BridgeError(
                _("The community has no item {item}.").format(item=item),
                fix=_("See which there are with: tillbridge community items {name}").format(
                    name=flow.context.name
                ),
            )
        if len(found) > 1:
            ids = ", ".join(f"{each.record_id} ({each.store_id})" for each in found)
            raise BridgeError(
                _("Several stores have an item {item}.").format(item=item),
                fix=_("Give the community's own id: {ids}.").format(ids=ids),
            )
        return found[0]

    async def _told(self, flow: "CommunityFlow", text: str) -> Answer:
        try:
            await flow.overrides.push()
        except ServiceError as failure:
            flow.soon("words")
            kept = _("It is noted, and the service is told as soon as it can be: {detail}")
            return {"ok": True, "told": False, "text": f"{text} {kept.format(detail=failure.text)}"}
        # The catalogue shows it from now on; if it cannot be read just now, the next round does.
        with contextlib.suppress(ServiceError):
            await flow.mirror.round()
        return {"ok": True, "told": True, "text": text}


def _parent(parent: "CommunityOrder", children: "list[TiedChild]") -> Answer:
    return {
        "order_id": parent.order_id,
        "order_number": parent.order_number,
        "status": parent.status,
        "received_at": to_iso(parent.received_at),
        "updated_at": None if parent.updated_at is None else to_iso(parent.updated_at),
        "children": [
            {
                "order_id": each.child.order_id,
                "store_id": each.child.store_id,
                "store_name": each.child.store_name,
                "status": each.child.status,
                "subtotal": each.child.subtotal,
                # the store of this bridge that has the POS order, and what the service was told
                "store": each.local_store,
                "told": each.state,
            }
            for each in children
        ],
    }


def _attempt(each: "DeliveryAttempt") -> Answer:
    return {
        "event_type": each.event_type,
        "delivery_id": each.delivery_id,
        "attempted_at": None if each.attempted_at is None else to_iso(each.attempted_at),
        "response_status": each.response_status,
        "response_body": each.response_body,
        "error": each.error,
        "succeeded": each.succeeded,
    }


def _no_subscription(name: str) -> BridgeError:
    return BridgeError(
        _("There is no subscription yet."),
        fix=_(
            "The running bridge makes one; or run: tillbridge community webhook remake {name}"
        ).format(name=name),
    )
