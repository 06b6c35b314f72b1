"""Communities: their catalogue, items off sale there, their orders, hours and webhook."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

from tillbridge.core.actor import Role, current_actor
from tillbridge.core.errors import BridgeError, ConfigError, ServiceError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Argument, operation
from tillbridge.model.instant import to_iso
from tillbridge.operations.arguments import ends_at, until_of_community

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tillbridge.communities.flow import CommunityFlow
    from tillbridge.model.community import Record
    from tillbridge.operations.bridge import Bridge


async def _community(bridge: "Bridge", _arguments: Mapping[str, Any], name: str) -> "CommunityFlow":
    from tillbridge.ledger.community import key_of

    found = bridge.communities.get(name)
    if found is None and name in bridge.settings.communities:
        raise bridge.not_here(key_of(name))
    if found is None:
        there = ", ".join(bridge.settings.communities)
        raise ConfigError(
            _("There is no community {name}.").format(name=name),
            fix=_("Choose from: {names}.").format(names=there)
            if there
            else _("Add a table [communities.{name}]; see docs/communities.md.").format(name=name),
        )
    return found


_COMMUNITY = Argument(
    "COMMUNITY",
    _("The community's name in bridge.toml."),
    complete="communities",
    audit="community",
)
CommunityName = Annotated[str, _COMMUNITY]
Community = Annotated["CommunityFlow", replace(_COMMUNITY, resolve=_community)]
Item = Annotated[
    str,
    Argument(
        "ITEM",
        _("The item's id in the community, or in the till if only one store has it."),
        complete="community_items",
        audit="target",
    ),
]


@operation("communities.items", role=Role.LOOK, reads=True, command="community items")
async def items(
    _bridge: "Bridge",
    community: Community,
    *,
    off: Annotated[bool, Argument(help=_("Only items that the community does not offer now."))] = (
        False
    ),
) -> Answer:
    """List the community's items, and whether guests can order them.

    An item is on sale if both its own store and the community offer it.

    Example: tillbridge community items hall --off
    """
    from tillbridge.communities.catalogue import item_availability

    records, overrides = await _records(community), await community.overrides.all()
    stores = {each.record_id: each.name for each in records if each.kind == "store"}
    now = community.context.bridge.clock.now_ms()
    found = [
        {
            "item_id": each.record_id,
            "external_id": each.external_id,
            "name": each.name,
            "store_id": each.store_id,
            "store_name": stores.get(each.store_id, ""),
            "price": each.price,
            "snoozed_until": each.snoozed_until,
            **item_availability(each, overrides.get(each.record_id), now),
        }
        for each in records
        if each.kind == "item"
    ]
    return {
        "as_of": (await community.mirror.state()).get("as_of"),
        "items": [each for each in found if not off or each["available"] is False],
    }


@operation("communities.availability", role=Role.LOOK, reads=True)
async def availability(_bridge: "Bridge", community: Community) -> Answer:
    """Return what this bridge has taken off sale, and when that was last sent to the service."""
    from tillbridge.ledger.community import get_records
    from tillbridge.ledger.models import CommunityOverride
    from tillbridge.ledger.pushes import get_overrides

    context = community.context

    def read(connection: "Connection") -> Answer:
        overrides = get_overrides(connection, context.key, CommunityOverride).values()
        names = {
            each.record_id: each.name
            for each in get_records(connection, context.key)
            if each.kind == "item"
        }
        sent_at = [each.sent_at for each in overrides if each.sent_at is not None]
        return {
            "items": [
                {
                    "item_id": each.external_id,
                    "name": names.get(each.external_id, ""),
                    "at": to_iso(each.at),
                    "until": to_iso(each.until),
                    "by": each.by,
                    "told_at": to_iso(each.sent_at),
                }
                for each in overrides
                if not each.available
            ],
            "waiting": sum(each.sent_at is None for each in overrides),
            "last_told_at": to_iso(max(sent_at)) if sent_at else None,
        }

    return await context.bridge.ledger.read(read)


@operation("communities.sync", role=Role.TECHNICIAN, command="community sync")
async def sync(
    _bridge: "Bridge",
    community: Community,
    *,
    full: Annotated[
        bool, Argument(help=_("Read all of it, not only changes."), audit="full")
    ] = False,
) -> Answer:
    """Read the community's catalogue now.

    Example: tillbridge community sync hall --full
    """
    state = await (community.mirror.whole() if full else community.mirror.round())
    text = _("Catalogue read: {items} items of {stores} stores.").format(
        items=state["items"], stores=state["stores"]
    )
    return {"ok": True, "text": text, **state}


@operation("communities.item_86", role=Role.STAFF, command="community 86")
async def take_off(
    _bridge: "Bridge",
    community: Community,
    item: Item,
    *,
    until: Annotated[
        int | None,
        ends_at(
            _("Until when: 18:30, tomorrow, 2h, 2026-11-21T18:30. Default: until you restore it."),
            until_of_community,
        ),
    ] = None,
) -> Answer:
    """Mark an item as sold out in the community; its own storefront still offers it.

    Carts with this item then fail in the community. Times are the store's local time.

    Example: tillbridge community 86 hall B1 --until 18:30
    """
    record = await _item(community, item)
    by = current_actor().name
    await community.overrides.set(record.record_id, available=False, until=until, by=by)
    text = (
        _("{item} is sold out in the community until you restore it.")
        if until is None
        else _("{item} is sold out in the community until {until}.")
    )
    end = "" if until is None else to_iso(until)
    return await _pushed(community, text.format(item=record.name or item, until=end))


@operation("communities.item_restore", role=Role.STAFF, command="community restore")
async def restore(_bridge: "Bridge", community: Community, item: Item) -> Answer:
    """Put an item back on sale in the community.

    Example: tillbridge community restore hall B1
    """
    record = await _item(community, item)
    await community.overrides.set(
        record.record_id, available=True, until=None, by=current_actor().name
    )
    text = _("{item} is on sale in the community again, if its store offers it.")
    return await _pushed(community, text.format(item=record.name or item))


@operation("communities.orders", role=Role.LOOK, reads=True, command="community orders")
async def orders(
    _bridge: "Bridge",
    community: Community,
    *,
    limit: Annotated[int, Argument("N", _("How many, the newest first."), least=1, most=1000)] = 20,
) -> Answer:
    """List the latest orders of the community, each with its parts in this bridge's stores.

    Example: tillbridge community orders hall --limit 5
    """
    from tillbridge.ledger.community import latest_parents, tied_children

    key = community.context.key

    def read(connection: "Connection") -> list[Answer]:
        return [
            {
                "order_id": parent.order_id,
                "order_number": parent.order_number,
                "status": parent.status,
                "received_at": to_iso(parent.received_at),
                "updated_at": to_iso(parent.updated_at),
                "children": [
                    {
                        "order_id": each.child.order_id,
                        "store_id": each.child.store_id,
                        "store_name": each.child.store_name,
                        "status": each.child.status,
                        "subtotal": each.child.subtotal,
                        # our store that has the POS order, and what was reported of it
                        "store": each.local_store,
                        "told": each.state,
                    }
                    for each in tied_children(connection, key, parent.order_id)
                ],
            }
            for parent in latest_parents(connection, key, limit)
        ]

    return {"orders": await community.context.bridge.ledger.read(read)}


@operation("communities.hours", role=Role.LOOK, reads=True)
async def hours(_bridge: "Bridge", community: Community) -> Answer:
    """Return the opening hours as the community is to have them."""
    listed = await community.hours.listed()
    return {
        "ok": True,
        "text": ""
        if listed
        else _("No store of this community has an hours file, or push_hours is off."),
        "stores": [
            {
                "store": each.store,
                "hours": dict(each.body),
                "pushed_at": to_iso(each.pushed_at),
            }
            for each in listed
        ],
    }


@operation("communities.push_hours", role=Role.TECHNICIAN)
async def push_hours(bridge: "Bridge", community: Community) -> Answer:
    """Push the opening hours of every store, changed or not."""
    await community.hours.push_all()
    answer = await hours(bridge, community)
    pushed = [each["store"] for each in answer["stores"] if each["pushed_at"]]
    if not pushed:
        return {**answer, "ok": False, "text": answer["text"] or _("No store is connected yet.")}
    text = _("Opening hours sent: {stores}.").format(stores=", ".join(pushed))
    return {**answer, "text": text}


@operation("communities.webhook_test", role=Role.TECHNICIAN, command="community webhook test")
async def webhook_test(bridge: "Bridge", community: Community) -> Answer:
    """Ask the service for a test delivery, and check that it arrives.

    Example: tillbridge community webhook test hall
    """
    from tillbridge.communities.subscription import describe, remedy

    tested = await community.subscriber.test()
    if tested is None:
        raise _no_subscription(community)
    name, attempt = community.context.name, tested.attempt
    if tested.ok:
        return {"ok": True, "text": _("The test delivery arrived.")}
    if attempt is None:
        text = _("The service has not tried to deliver the test within twelve seconds.")
        fix = _("See the deliveries: tillbridge community webhook deliveries {name}").format(
            name=name
        )
    elif attempt.succeeded:
        text = _("Another program answered the test delivery, not this bridge.")
        fix = bridge.later(_("Check public_url in [receiver]."))
    else:
        text = bridge.later(_("The test delivery failed. {what}"))
        text = text.format(what=describe(attempt))
        fix = remedy(attempt, name, community.subscriber.wanted.url)
    return {"ok": False, "text": text, "fix": fix}


@operation(
    "communities.webhook_deliveries",
    role=Role.LOOK,
    reads=True,
    command="community webhook deliveries",
)
async def webhook_deliveries(_bridge: "Bridge", community: Community) -> Answer:
    """List the service's latest deliveries and how they were answered.

    Example: tillbridge community webhook deliveries hall
    """
    if community.subscriber.webhook_id is None:
        raise _no_subscription(community)
    return {
        "deliveries": [
            {
                **asdict(each),
                "attempted_at": to_iso(each.attempted_at),
                "succeeded": each.succeeded,
            }
            for each in await community.subscriber.deliveries()
        ]
    }


@operation("communities.webhook_remake", role=Role.TECHNICIAN, command="community webhook remake")
async def webhook_remake(_bridge: "Bridge", community: Community) -> Answer:
    """Renew the subscription, with a new signing secret.

    Example: tillbridge community webhook remake hall
    """
    await community.subscriber.remake()
    return {"ok": True, "text": _("The subscription is renewed, with a new signing secret.")}


async def _records(community: "CommunityFlow") -> "list[Record]":

    from tillbridge.ledger.community import get_records

    if not await community.mirror.state():
        await community.mirror.whole()
    return await community.context.bridge.ledger.read(get_records, community=community.context.key)


async def _item(community: "CommunityFlow", item: str) -> "Record":
    """Find an item by its id in the community, or by the till's where only one has it."""
    items = [each for each in await _records(community) if each.kind == "item"]
    found = [each for each in items if each.record_id == item] or [
        each for each in items if each.external_id == item
    ]
    if not found:
        raise BridgeError(
            _("The community has no item {item}.").format(item=item),
            fix=_("See all items: tillbridge community items {name}").format(
                name=community.context.name
            ),
        )
    if len(found) > 1:
        ids = ", ".join(f"{each.record_id} ({each.store_id})" for each in found)
        raise BridgeError(
            _("Several stores have an item {item}.").format(item=item),
            fix=_("Give the community's own id: {ids}.").format(ids=ids),
        )
    return found[0]


async def _pushed(community: "CommunityFlow", text: str) -> Answer:
    import contextlib

    try:
        await community.overrides.push()
    except ServiceError as failure:
        community.soon("words")
        pending = _("Saved. The bridge sends it as soon as it can: {detail}")
        return {"ok": True, "told": False, "text": f"{text} {pending.format(detail=failure.text)}"}
    # The catalogue shows it from now on; if it cannot be read just now, the next round does.
    with contextlib.suppress(ServiceError):
        await community.mirror.round()
    return {"ok": True, "told": True, "text": text}


def _no_subscription(community: "CommunityFlow") -> BridgeError:
    fix = _("Start the bridge: it creates one. Or run: tillbridge community webhook remake {name}")
    return BridgeError(
        _("There is no subscription yet."), fix=fix.format(name=community.context.name)
    )
