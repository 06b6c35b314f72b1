"""The whole world as JSON, for the control API only: webhook secrets included, tokens not."""

from typing import Any

from tillbridge.sandbox.catalogue import is_available
from tillbridge.sandbox.clock import Clock, as_timestamp
from tillbridge.sandbox.communities import Communities
from tillbridge.sandbox.deliveries import delivery_body
from tillbridge.sandbox.jobs import job_body
from tillbridge.sandbox.parent_orders import parent_body
from tillbridge.sandbox.state import AddOn, Item, Link, Order, World
from tillbridge.sandbox.stores import integration_body
from tillbridge.sandbox.subscriptions import subscription_body
from tillbridge.sandbox.tokens import Tokens
from tillbridge.sandbox.webhooks import Webhooks


def dump(world: World, tokens: Tokens, webhooks: Webhooks, clock: Clock) -> dict[str, Any]:
    """Everything, as it is now."""
    now = clock.now_ms()
    return {
        "clock": {"now": as_timestamp(now), "speed": clock.speed},
        "auto_consent": world.auto_consent,
        "apps": [app.client_id for app in world.apps.values()],
        "merchants": [
            {"email": merchant.email, "store_ids": merchant.store_ids}
            for merchant in world.merchants.values()
        ],
        "stores": {
            store.store_id: {
                "name": store.name,
                "description": store.description,
                "status": store.status,
                "currency": store.currency,
                "settings": store.settings,
                "tax_config": store.tax_config,
                "flags": store.flags,
                "integrations": [link_dump(link, now) for link in world.links_of(store.store_id)],
            }
            for store in world.stores.values()
        },
        "orders": [order_dump(order) for order in world.orders.values()],
        "jobs": [job_body(job) for job in world.jobs.values()],
        "tokens": tokens.summary(),
        "channel_events": world.channel_events,
        "webhooks": {"paused": webhooks.paused},
        "deliveries": [delivery_body(delivery) for delivery in webhooks.deliveries.values()],
        "rejected_items": world.rejected_items,
    }


def communities_dump(communities: Communities, now_ms: int) -> dict[str, Any]:
    """Communities with their members, hours, orders, and subscriptions with their secrets."""
    return {
        community.community_id: {
            "name": community.name,
            "app_id": community.app_id,
            "stores": {
                store.store_id: {
                    "name": store.name,
                    "is_open": communities.is_open(community, store, now_ms),
                    "hours": community.hours.get(store.store_id),
                }
                for store in communities.stores(community)
            },
            "items_off": sorted(
                item.external_id
                for _, _, item in communities.items(community)
                if not community.own_state(item.product_id, now_ms).available
            ),
            "webhooks": [
                {**subscription_body(subscription), "secret": subscription.secret}
                for subscription in communities.subscriptions.values()
                if subscription.community_id == community.community_id
            ],
            "orders": [
                {**parent_body(parent), "history": parent.history}
                for parent in communities.orders.values()
                if parent.community is community
            ],
        }
        for community in communities.all.values()
    }


def link_dump(link: Link, now_ms: int) -> dict[str, Any]:
    """An app's side of a store. The integration's fields are absent when there is none."""
    catalogue = link.catalogue
    body: dict[str, Any] = {"app_id": link.app_id}
    if link.integration is not None:
        body = {
            **integration_body(link, link.integration),
            "webhook_secret": link.integration.webhook_secret,
        }
    synced = link.last_synced_at_ms
    return {
        **body,
        "integration_status": link.integration_status,
        "location_id": link.location_id,
        "last_synced_at": as_timestamp(synced) if synced is not None else None,
        "menus": {menu.external_id: menu.name for menu in catalogue.menus.values()},
        "categories": catalogue.categories,
        "items": {item.external_id: _item(item, now_ms) for item in catalogue.items.values()},
        "add_ons": {
            add_on.external_id: {
                "name": add_on.name,
                "price": add_on.price,
                **_availability(add_on, now_ms),
            }
            for add_on in catalogue.add_ons.values()
        },
        "addon_groups": {
            group.external_id: {
                "name": group.name,
                "min_select": group.min_select,
                "max_select": group.max_select,
                "add_ons": list(group.add_ons),
            }
            for group in catalogue.addon_groups.values()
        },
        "tables": {
            table.external_id: {
                "table_id": table.table_id,
                "qr_token": table.qr_token,
                "name": table.name,
                "seats": table.seats,
                "zone": table.zone,
                "active": table.active,
            }
            for table in link.tables.values()
        },
    }


def _item(item: Item, now_ms: int) -> dict[str, Any]:
    return {
        **item.fields,
        "product_id": item.product_id,
        **_availability(item, now_ms),
        "variants": {
            variant.external_id: {
                "variant_name": variant.name,
                "price": variant.price,
                "available": variant.available,
                "active": variant.active,
            }
            for variant in item.variants.values()
        },
    }


def _availability(thing: Item | AddOn, now_ms: int) -> dict[str, Any]:
    """As a customer finds it now; `snooze_until` only while the snooze lasts."""
    available = is_available(thing, now_ms)
    until = None if available else thing.snooze_until_ms
    return {
        "available": available,
        "snooze_until": as_timestamp(until) if until is not None else None,
    }


def order_dump(order: Order) -> dict[str, Any]:
    """An order with its history."""
    return {
        "order_id": order.order_id,
        "order_number": order.order_number,
        "store_id": order.link.store.store_id,
        "state": order.state,
        "history": order.history,
        "cancellation": order.cancellation,
        "effects": order.effects,
        "data": order.data,
    }
