"""The sandbox put together: each part is built here, once, and given what it needs."""

from aiohttp import web

from tillbridge.sandbox.baskets import Baskets
from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.communities import Communities
from tillbridge.sandbox.community_front import CommunityFront
from tillbridge.sandbox.community_routes import CommunityRoutes
from tillbridge.sandbox.control_communities import ControlCommunities
from tillbridge.sandbox.control_stores import ControlStores
from tillbridge.sandbox.control_traffic import ControlTraffic
from tillbridge.sandbox.control_world import ControlWorld
from tillbridge.sandbox.faults import Faults
from tillbridge.sandbox.gate import Gate
from tillbridge.sandbox.jobs import Jobs
from tillbridge.sandbox.limits import RateLimit
from tillbridge.sandbox.menus import MenuRoutes
from tillbridge.sandbox.middleware import api_middlewares, control_errors, page_errors, same_origin
from tillbridge.sandbox.mirror import Mirror
from tillbridge.sandbox.oauth import OAuth
from tillbridge.sandbox.order_routes import OrderRoutes
from tillbridge.sandbox.orders import Orders
from tillbridge.sandbox.pages import STATIC, Pages
from tillbridge.sandbox.panel import Panel
from tillbridge.sandbox.parent_orders import ParentOrders
from tillbridge.sandbox.request_log import RequestLog
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import World
from tillbridge.sandbox.storefront import Storefront
from tillbridge.sandbox.stores import StoreRoutes
from tillbridge.sandbox.subscriptions import Broadcast, SubscriptionRoutes
from tillbridge.sandbox.tables import TableRoutes
from tillbridge.sandbox.tokens import Tokens
from tillbridge.sandbox.webhooks import Webhooks


class Sandbox:
    """One ordering service in memory. `world` and `clock` are for tests in the same process."""

    def __init__(self, settings: SandboxSettings) -> None:
        self.settings = settings
        self.clock = Clock(settings.clock_speed)
        self.world = World(settings)
        self._tokens = Tokens(self.clock, settings)
        self._webhooks = Webhooks(self.clock, settings)
        self._jobs = Jobs(self.world, self.clock, settings)
        self._orders = Orders(self.world, self._webhooks, self.clock, settings)
        self.communities = Communities(self.world, settings)
        self._mirror = Mirror(
            self.communities,
            external_ids=settings.community_external_ids,
            removed=settings.community_tells_removed,
        )
        self._parents = ParentOrders(
            self.world,
            self.communities,
            self._orders,
            Broadcast(self.communities, self._webhooks, self.clock),
            self.clock,
        )
        self._orders.moved = self._parents.child_moved
        self._faults = Faults(settings.fault_seed)
        self._limit = RateLimit(self.clock, settings.rate_limit, settings.rate_window_s)
        self._log = RequestLog(self.clock, settings)
        self._baskets = Baskets()
        self._pages = Pages()
        self._oauth = OAuth(self.world, self._tokens, self._pages, settings)

    def app(self) -> web.Application:
        """The whole site: the API below its prefix, the control API, the pages."""
        site = web.Application(client_max_size=self.settings.max_body_bytes)
        site.add_subapp(self.settings.api_prefix, self._api())
        control = [
            *ControlWorld(
                self.world,
                self._orders,
                self._jobs,
                self._tokens,
                self._webhooks,
                self.clock,
                self.communities,
                self.reset,
            ).routes(),
            *ControlStores(self.world, self.communities).routes(),
            *ControlCommunities(
                self.world, self.communities, self._parents, self._webhooks, self.clock
            ).routes(),
            *ControlTraffic(
                self.world, self._webhooks, self._faults, self._limit, self._log, self.clock
            ).routes(),
        ]
        pages = [
            *Panel(
                self.world,
                self._tokens,
                self._webhooks,
                self._faults,
                self.clock,
                self._pages,
                self.communities,
                self.settings,
            ).routes(),
            *Storefront(self.world, self._orders, self._baskets, self._pages, self.clock).routes(),
            *CommunityFront(
                self.communities,
                self._mirror,
                self._parents,
                self._baskets,
                self._pages,
                self.clock,
            ).routes(),
        ]
        site.add_routes(control)
        site.add_routes(pages)
        site.router.add_static("/static", STATIC)
        site.middlewares.extend(
            [
                same_origin(self.settings.api_prefix),
                control_errors,
                page_errors(self._pages, self.settings.api_prefix),
            ]
        )
        site.on_startup.append(self._start)
        site.on_cleanup.append(self._stop)
        return site

    def _api(self) -> web.Application:
        settings = self.settings
        gate = Gate(self.world, self._tokens, settings.community_audience)
        api = web.Application(
            middlewares=api_middlewares(settings.api_prefix, self._log, self._faults, self._limit),
            client_max_size=settings.max_body_bytes,
        )
        api.add_routes(self._oauth.routes())
        api.add_routes(StoreRoutes(self.world, gate, self._webhooks, self.clock, settings).routes())
        api.add_routes(MenuRoutes(self.world, gate, self._jobs, self.clock, settings).routes())
        api.add_routes(TableRoutes(gate, settings).routes())
        api.add_routes(OrderRoutes(self._orders, gate, settings).routes())
        api.add_routes(
            CommunityRoutes(self.communities, self._mirror, gate, self.clock, settings).routes()
        )
        api.add_routes(
            SubscriptionRoutes(
                self.communities, gate, self._webhooks, self.clock, settings
            ).routes()
        )
        return api

    def reset(self) -> None:
        """Everything back to the seeds; the clock keeps its time and goes at its first speed."""
        self._webhooks.reset()
        self._jobs.reset()
        self._tokens.reset()
        self._oauth.reset()
        self._baskets.reset()
        self._faults.clear()
        self._log.clear()
        self._limit.set(self.settings.rate_limit, self.settings.rate_window_s)
        self.clock.stop()
        self.clock.run_at(self.settings.clock_speed)
        self.world.reset()
        self.communities.reset()

    async def _start(self, _app: web.Application) -> None:
        await self._webhooks.start()

    async def _stop(self, _app: web.Application) -> None:
        self.clock.stop()
        await self._webhooks.stop()
