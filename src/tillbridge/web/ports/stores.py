"""What is asked about a store itself, its integration, and communities."""

from typing import Protocol

from tillbridge.web.ports.answer import Answer


class IntegrationControl(Protocol):
    """What commands ask about a store's integration; as `Control`. Nothing shows a secret."""

    async def show(self, store: str) -> Answer:
        """Return `service` (as it is there) and `configured`, each a mapping, and `plan`.

        Also `secret` ("known", "unknown" or "none"), `secret_since`, `old_secret_until`,
        `open_orders` (how many are not over) and `removed_since`.
        """
        ...

    async def plan(self, store: str) -> Answer:
        """Return what differs, as `IntegrationPlan.to_json()`; changes nothing."""
        ...

    async def apply(self, store: str) -> Answer:
        """Do what the plan says."""
        ...

    async def rotate_secret(self, store: str) -> Answer:
        """Get a new webhook secret."""
        ...

    async def remove(self, store: str) -> Answer:
        """Take the store off this bridge."""
        ...

    async def reintegrate(self, store: str) -> Answer:
        """Remove the integration and make it anew."""
        ...


class CommunitiesControl(Protocol):
    """What commands ask about a community, by its name in the configuration; as `Control`."""

    async def items(self, community: str) -> Answer:
        """Return `items`: each with `available` (both sides) and `own`, this bridge's word."""
        ...

    async def availability(self, community: str) -> Answer:
        """Return `items` off sale by this bridge's word, `waiting` (untold), `last_told_at`.

        An item has `item_id`, `name`, `at`, `until`, `by` and `told_at`.
        """
        ...

    async def sync(self, community: str, *, full: bool) -> Answer:
        """Read the catalogue now: what has changed in it, or all of it."""
        ...

    async def item_86(
        self, community: str, item_id: str, *, until_ms: int | None, by: str
    ) -> Answer:
        """Take an item off sale in the community."""
        ...

    async def item_restore(self, community: str, item_id: str, *, by: str) -> Answer:
        """Let the community sell an item again."""
        ...

    async def orders(self, community: str, limit: int) -> Answer:
        """Return `orders`, newest first, each with its `children`."""
        ...

    async def hours(self, community: str) -> Answer:
        """Return `stores`, each with its `hours`, and `pushed_at`: the community has these."""
        ...

    async def push_hours(self, community: str) -> Answer:
        """Push the hours of every store, changed or not; the answer is that of `hours`."""
        ...

    async def webhook_test(self, community: str) -> Answer:
        """Let the service send a test delivery, and tell whether it arrived."""
        ...

    async def webhook_deliveries(self, community: str) -> Answer:
        """Return `deliveries`, the attempts that the service remembers."""
        ...

    async def webhook_remake(self, community: str) -> Answer:
        """Make a new subscription, with a new secret."""
        ...
