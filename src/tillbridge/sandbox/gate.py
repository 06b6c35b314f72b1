"""Who is calling, and which stores and orders they may touch (specification, "Authentication")."""

from dataclasses import dataclass

from aiohttp import web

from tillbridge.sandbox.bodies import PUSH_DIRECTIONS
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.state import Integration, Link, Merchant, Order, World
from tillbridge.sandbox.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Caller:
    """An app, calling on behalf of a merchant."""

    app_id: str
    merchant: Merchant


class Gate:
    """Turns a request into the records that its caller may use, or into the right refusal."""

    def __init__(self, world: World, tokens: Tokens, community_audience: str) -> None:
        self._world = world
        self._tokens = tokens
        self._community_audience = community_audience

    def caller(self, request: web.Request) -> Caller:
        """The app and merchant of the bearer token. Raises the auth.* refusals."""
        consent = self._tokens.consent_of(_bearer(request))
        merchant = self._world.merchant(consent.merchant_email)
        if merchant is None:
            raise ServiceError("auth.invalid_token", "The token's merchant is gone")
        return Caller(consent.app_id, merchant)

    def app(self, request: web.Request) -> str:
        """The app of a bearer token for communities. Raises the auth.* refusals."""
        return self._tokens.app_of(_bearer(request), self._community_audience)

    def link(self, request: web.Request) -> Link:
        """The caller's link to the store in the path, integrated or not."""
        caller = self.caller(request)
        store_id = request.match_info["store_id"]
        if store_id not in caller.merchant.store_ids:
            raise ServiceError("store.not_found", f"No store {store_id} within reach of this token")
        return self._world.link(caller.app_id, self._world.stores[store_id])

    def integrated(self, request: web.Request) -> tuple[Link, Integration]:
        """The caller's link to the store in the path, which must have an active integration."""
        link = self.link(request)
        return link, _active(link)

    def pushing(self, request: web.Request) -> Link:
        """As `integrated`, and the direction must allow pushes from the POS."""
        link, integration = self.integrated(request)
        if integration.menu_sync_direction not in PUSH_DIRECTIONS:
            raise ServiceError(
                "menu.push_not_allowed",
                f"menu_sync_direction is {integration.menu_sync_direction}; "
                f"pushes need {' or '.join(PUSH_DIRECTIONS)}",
            )
        return link

    def order(self, request: web.Request) -> Order:
        """The order in the path, if it belongs to a store that the caller is integrated with."""
        caller = self.caller(request)
        order_id = request.match_info["order_id"]
        order = self._world.orders.get(order_id)
        if (
            order is None
            or order.link.app_id != caller.app_id
            or order.link.store.store_id not in caller.merchant.store_ids
        ):
            raise ServiceError("order.not_found", f"No order {order_id} for this integration")
        _active(order.link)
        return order


def _bearer(request: web.Request) -> str:
    scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not credential.strip():
        raise ServiceError("auth.invalid_token", "Send a token: Authorization: Bearer ...")
    return credential.strip()


def _active(link: Link) -> Integration:
    integration = link.active
    if integration is None:
        raise ServiceError(
            "store.not_integrated",
            f"Store {link.store.store_id} has no active integration with this app "
            f"({link.integration_status})",
        )
    return integration
