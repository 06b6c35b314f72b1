"""What was seen of a link counts for the address that it was seen at, and for no other. Pure."""

from collections.abc import Mapping


class Evidence:
    """Instants of a store's links; `addresses` is the bridge's fact of that name."""

    def __init__(self, addresses: object, store: str) -> None:
        known = addresses if isinstance(addresses, Mapping) else {}
        self._since_ms = {
            name: each["since_ms"]
            for name, each in known.items()
            if isinstance(each, Mapping) and isinstance(each.get("since_ms"), int)
        }
        self._store_id = f"store_id/{store}"

    def of_service(self, at_ms: object) -> int | None:
        """Return when the service was seen, None for a time before it or the store was this one."""
        return self._counted(at_ms, "base_url", self._store_id)

    def of_public_address(self, at_ms: object) -> int | None:
        """Return when the public address was seen to lead here; None as above."""
        return self._counted(at_ms, "public_url")

    def of_delivery(self, at_ms: object) -> int | None:
        """Return when the service delivered through the public address; None as above."""
        return self._counted(at_ms, "public_url", "base_url", self._store_id)

    def _counted(self, at_ms: object, *bound_to: str) -> int | None:
        since = max(self._since_ms.get(name, 0) for name in bound_to)
        return at_ms if isinstance(at_ms, int) and at_ms >= since else None
