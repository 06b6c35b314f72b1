"""The catalogue of a community: a mirror of its members, and what changed in it since an instant.

A record's `updated_at` is when the mirror noticed the change: at the first read after it.
"""

import hashlib
import json
from typing import Any

from tillbridge.sandbox.catalogue import is_available, is_orderable, live_variants
from tillbridge.sandbox.clock import as_timestamp
from tillbridge.sandbox.communities import Communities, Community, Mirrored
from tillbridge.sandbox.placing import find_add_on, groups_of
from tillbridge.sandbox.state import AddOnGroup, Item, Link, Store

_LISTS = ("stores", "categories", "items")


def _opaque(prefix: str, store: Store, external_id: str) -> str:
    digest = hashlib.sha256(f"{store.store_id}\n{external_id}".encode()).hexdigest()
    return f"{prefix}_{digest[:16]}"


class Mirror:
    """Reads of a community's catalogue."""

    def __init__(self, communities: Communities, *, external_ids: bool, removed: bool) -> None:
        self._communities = communities
        self._external_ids = external_ids
        self._removed = removed

    def catalogue(
        self, community: Community, now_ms: int, *, store_id: str | None, since_ms: int | None
    ) -> dict[str, Any]:
        """The whole of it, or of one store, or what has changed since an instant, or both."""
        self._observe(community, now_ms)
        body: dict[str, Any] = {
            "community_id": community.community_id,
            "name": community.name,
            "as_of": as_timestamp(now_ms),
        }
        for name in _LISTS:
            body[name] = [
                entry.record
                | {"updated_at": as_timestamp(entry.updated_at_ms)}
                | ({} if entry.fingerprint is not None else {"removed": True, "available": False})
                for key, entry in community.mirrored.items()
                if key.startswith(f"{name} ")
                and store_id in (None, entry.record["store_id"])
                and self._shown(entry, since_ms)
            ]
        return body

    def _shown(self, entry: Mirrored, since_ms: int | None) -> bool:
        if entry.fingerprint is None and (since_ms is None or not self._removed):
            return False
        return since_ms is None or entry.updated_at_ms >= since_ms

    def detail(
        self, community: Community, found: tuple[Store, Link, Item], now_ms: int
    ) -> dict[str, Any]:
        """One item: price, availability of both sides, snooze state, modifier groups."""
        self._observe(community, now_ms)
        item = found[2]
        record = self._item(community, found, now_ms)
        entry = community.mirrored[f"items {item.product_id}"]
        return {
            **record,
            "currency": found[0].currency,
            "merchant_available": is_orderable(item, now_ms),
            "community_available": community.own_state(item.product_id, now_ms).available,
            "updated_at": as_timestamp(entry.updated_at_ms),
        }

    def version(self, community: Community, now_ms: int) -> str:
        """Changes with everything that the catalogue tells."""
        self._observe(community, now_ms)
        latest = max((entry.updated_at_ms for entry in community.mirrored.values()), default=0)
        return f"{latest}.{len(community.mirrored)}"

    def _observe(self, community: Community, now_ms: int) -> None:
        """Compare the world with how it was last read."""
        current = self._records(community, now_ms)
        for key, record in current.items():
            fingerprint = json.dumps(record, sort_keys=True)
            entry = community.mirrored.get(key)
            if entry is None or entry.fingerprint != fingerprint:
                community.mirrored[key] = Mirrored(fingerprint, now_ms, record)
        for key, entry in community.mirrored.items():
            if key not in current and entry.fingerprint is not None:
                entry.fingerprint, entry.updated_at_ms = None, now_ms

    def _records(self, community: Community, now_ms: int) -> dict[str, dict[str, Any]]:
        records: dict[str, dict[str, Any]] = {}
        for store in self._communities.stores(community):
            records[f"stores {store.store_id}"] = {
                "store_id": store.store_id,
                "name": store.name,
                "status": store.status,
                "is_open": self._communities.is_open(community, store, now_ms),
                "hours": community.hours.get(store.store_id),
            }
            link = self._communities.link(store)
            for external_id, name in (link.catalogue.categories if link else {}).items():
                key = _opaque("cat", store, external_id)
                record = {"category_id": key, "store_id": store.store_id, "name": name}
                records[f"categories {key}"] = self._marked(record, external_id)
        for found in self._communities.items(community):
            records[f"items {found[2].product_id}"] = self._item(community, found, now_ms)
        return records

    def _item(
        self, community: Community, found: tuple[Store, Link, Item], now_ms: int
    ) -> dict[str, Any]:
        store, link, item = found
        own = community.own_state(item.product_id, now_ms)
        record = {
            "item_id": item.product_id,
            "store_id": store.store_id,
            "name": item.name,
            "description": item.fields.get("description", ""),
            "image_url": item.fields.get("image_url", ""),
            "price": item.price,
            "category_ids": [
                _opaque("cat", store, external_id)
                for external_id in item.fields.get("categories", ())
            ],
            "available": own.available and is_orderable(item, now_ms),
            "snoozed_until": as_timestamp(own.snoozed_until_ms) if own.snoozed_until_ms else None,
            "variants": [
                self._marked(
                    {
                        "variant_id": variant.variant_id,
                        "name": variant.name,
                        "price": variant.price,
                        "available": variant.available,
                    },
                    variant.external_id,
                )
                for variant in live_variants(item)
            ],
            "modifier_groups": [
                self._group(store, link, group, now_ms) for group in groups_of(link.catalogue, item)
            ],
        }
        return self._marked(record, item.external_id)

    def _group(self, store: Store, link: Link, group: AddOnGroup, now_ms: int) -> dict[str, Any]:
        things = [find_add_on(link.catalogue, external_id) for external_id in group.add_ons]
        record = {
            "modifier_group_id": _opaque("mgr", store, group.external_id),
            "name": group.name,
            "min_select": group.min_select,
            "max_select": group.max_select,
            "modifiers": [
                self._marked(
                    {
                        "modifier_id": thing.product_id,
                        "name": thing.name,
                        "price": thing.price,
                        "available": is_available(thing, now_ms),
                    },
                    thing.external_id,
                )
                for thing in things
                if thing is not None
            ],
        }
        return self._marked(record, group.external_id)

    def _marked(self, record: dict[str, Any], external_id: str) -> dict[str, Any]:
        return {**record, "external_id": external_id} if self._external_ids else record
