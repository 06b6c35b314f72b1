"""What commands and the page ask of the bridge, while it runs and while it does not."""

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

import tillbridge
from tillbridge.adapters.level import adapters_of
from tillbridge.catalogue.report import PlanReport
from tillbridge.daemon.building import Building
from tillbridge.daemon.connecting import Connecting, Wanted
from tillbridge.daemon.figures import CountedFigures
from tillbridge.daemon.operations_diagnostics import DiagnosticOperations
from tillbridge.daemon.rooms import StoreRooms
from tillbridge.errors import BridgeError, ConfigError
from tillbridge.i18n import _
from tillbridge.ledger.menu import accepted_ids, variant_owners
from tillbridge.ledger.open_problem import OpenProblem
from tillbridge.ledger.orders import find_orders
from tillbridge.ledger.snapshot import take_snapshot
from tillbridge.model.instant import to_iso
from tillbridge.model.order import ReasonCode
from tillbridge.orders.marks import ByHand
from tillbridge.status.acting import actor
from tillbridge.status.document import document
from tillbridge.status.facts import BridgeFacts
from tillbridge.status.words import clock_time

if TYPE_CHECKING:
    from tillbridge.daemon.operations_audit import AuditOperations
    from tillbridge.daemon.operations_communities import CommunityOperations
    from tillbridge.daemon.operations_fleet import FleetOperations
    from tillbridge.daemon.operations_integration import IntegrationOperations
    from tillbridge.daemon.operations_items import ItemOperations
    from tillbridge.daemon.operations_menu import MenuOperations
    from tillbridge.daemon.operations_orders import OrderOperations
    from tillbridge.daemon.operations_problems import AlertOperations, ProblemOperations
    from tillbridge.daemon.operations_setup import SetupOperations
    from tillbridge.daemon.operations_store import StoreOperations
    from tillbridge.daemon.operations_tables import TableOperations

Answer = dict[str, Any]

_IN_THE_WAY = (
    "export.unreadable",
    "menu.push_not_allowed",
    "menu.push_failed",
    "menu.held",
    "menu.items_refused",
    "menu.taken_in_part",
)


class Operations:
    """The operations; `running_since` (ms) is None where no daemon runs."""

    def __init__(
        self,
        building: Building,
        connecting: Connecting | None = None,
        *,
        running_since: int | None = None,
    ) -> None:
        self._building = building
        self._connecting = connecting
        self._running_since = running_since
        self._house = building.house
        self.diagnostics = DiagnosticOperations()
        # Made by the daemon, where there is a page on which to set things up.
        self.make_setup: Callable[[], SetupOperations] | None = None
        self._counted = CountedFigures(building.house)

    @cached_property
    def audit(self) -> "AuditOperations":
        """What is asked about the audit trail."""
        # Only where somebody asks.
        from tillbridge.daemon.operations_audit import (  # noqa: PLC0415 -- (as above)
            AuditOperations,
        )

        return AuditOperations(self._house.ledger)

    @cached_property
    def fleet(self) -> "FleetOperations":
        """What is asked about the reports of this bridge."""
        # Only where somebody asks.
        from tillbridge.daemon.operations_fleet import (  # noqa: PLC0415 -- (as above)
            FleetOperations,
        )

        return FleetOperations(self._house)

    @cached_property
    def integration(self) -> "IntegrationOperations":
        """What is asked about integrations."""
        # Only where somebody asks.
        from tillbridge.daemon.operations_integration import (  # noqa: PLC0415 -- (as above)
            IntegrationOperations,
        )

        return IntegrationOperations(self._rooms, self._house.ledger)

    @cached_property
    def problems(self) -> "ProblemOperations":
        """What is asked about problems."""
        # Only where somebody asks.
        from tillbridge.daemon.operations_problems import (  # noqa: PLC0415 -- (as above)
            ProblemOperations,
        )

        return ProblemOperations(self._house, self.status)

    @cached_property
    def alerts(self) -> "AlertOperations":
        """What is asked about alerts."""
        # Only where somebody asks.
        from tillbridge.daemon.operations_problems import (  # noqa: PLC0415 -- (as above)
            AlertOperations,
        )

        return AlertOperations(self._house)

    @cached_property
    def store(self) -> "StoreOperations":
        """What is asked about a store."""
        # Only where somebody asks.
        from tillbridge.daemon.operations_store import (  # noqa: PLC0415 -- (as above)
            StoreOperations,
        )

        return StoreOperations(self._rooms, self._later)

    @cached_property
    def tables(self) -> "TableOperations":
        """What is asked about tables."""
        # Only where somebody asks.
        from tillbridge.daemon.operations_tables import (  # noqa: PLC0415 -- (as above)
            TableOperations,
        )

        return TableOperations(self._rooms, self._later)

    @cached_property
    def communities(self) -> "CommunityOperations":
        """What is asked about communities."""
        # Only where somebody asks: most bridges are in no community.
        from tillbridge.daemon.operations_communities import (  # noqa: PLC0415 -- (as above)
            CommunityOperations,
        )

        return CommunityOperations(self._building.communities, self._later)

    @cached_property
    def orders(self) -> "OrderOperations":
        """What is asked about orders."""
        # Only where somebody looks at them.
        from tillbridge.daemon.operations_orders import OrderOperations  # noqa: PLC0415 -- (as above)

        house = self._house
        return OrderOperations(house.ledger, house.settings, house.clock)

    @cached_property
    def items(self) -> "ItemOperations":
        """What is asked about items."""
        # Only where somebody looks at them.
        from tillbridge.daemon.operations_items import ItemOperations  # noqa: PLC0415 -- (as above)

        return ItemOperations(self._rooms, self._house.ledger, self._house.clock)

    @cached_property
    def menu(self) -> "MenuOperations":
        """What is asked about menus."""
        # Only where somebody looks at them.
        from tillbridge.daemon.operations_menu import MenuOperations  # noqa: PLC0415 -- (as above)

        return MenuOperations(self._rooms, self._house.ledger)

    @cached_property
    def setup(self) -> "SetupOperations":
        """What is asked about setting the bridge up."""
        if self.make_setup is None:
            raise BridgeError(_("The bridge is not running."), fix=_("Start it: tillbridge run"))
        return self.make_setup()

    async def status(self) -> Answer:
        """Return the status document."""
        return document(await self._facts(), self._house.clock.now_ms())

    async def measures(self) -> Answer:
        """Return what `/metrics` tells: the status document, and what it does not hold."""
        # Only where somebody measures.
        from tillbridge.daemon.measuring import measures  # noqa: PLC0415 -- see above

        return {"status": await self.status(), **await measures(self._house)}

    async def overview(self) -> Answer:
        """Return the status document with the chain, the day and what waits."""
        # Only the page asks for it.
        from tillbridge.ledger.day import read_day  # noqa: PLC0415 -- see above
        from tillbridge.status.overview import overview  # noqa: PLC0415 -- see above

        now = self._house.clock.now_ms()
        facts = await self._facts()
        day = await self._house.ledger.read(lambda connection: read_day(connection, now))
        return overview(document(facts, now), facts, day, now)

    async def _facts(self) -> BridgeFacts:
        house = self._house
        snapshot = await house.ledger.read(take_snapshot)
        figures = await self._counted.figures()
        running = self._running_since is not None
        seen = {name: rooms.orders.pos_seen_at for name, rooms in self._building.stores.items()}
        return BridgeFacts(
            version=tillbridge.__version__,
            running=running,
            adapters={name: each.pos.adapter for name, each in house.settings.stores.items()},
            stores=snapshot.stores,
            problems=house.desk.current(),
            pid=os.getpid() if running else None,
            started_at=self._running_since,
            facts=snapshot.facts,
            figures=figures,
            tills={
                name: adapters_of(each.pos_adapter[0], (each.order_adapter or (None,))[0])
                for name, each in house.settings.stores.items()
            },
            pos_seen={name: at for name, at in seen.items() if at is not None},
            communities={
                name: each.community_id for name, each in house.settings.communities.items()
            },
        )

    async def connect(
        self, store: str, *, reintegrate: bool, store_id: str = "", email: str = ""
    ) -> Answer:
        """Begin to connect a store."""
        self._rooms(store)
        return self._daemon().begin(Wanted(store, reintegrate, store_id, email))

    async def connect_choose(self, store: str, *, store_id: str, reintegrate: bool) -> Answer:
        """Go on with a store of the merchant."""
        self._rooms(store)
        return await self._daemon().choose(Wanted(store, reintegrate, store_id))

    async def signup(self, store: str, *, form: Mapping[str, str], flow_type: str) -> Answer:
        """Begin to sign a merchant up."""
        self._rooms(store)
        return await self._daemon().sign_up(store, form, flow_type)

    async def connect_result(self, state: str) -> Answer:
        """Return how far a connection is."""
        return self._daemon().result(state)

    async def menu_plan(self, store: str) -> Answer:
        """Return what would be pushed now, as JSON and in words."""
        report = await self._rooms(store).catalogue.plan_only()
        return {**report.to_json(), "lines": list(report.lines)}

    async def menu_push(self, store: str, *, full: bool) -> Answer:
        """Push now: what differs, or everything."""
        rooms = self._rooms(store)
        if rooms.service_store_id is None:
            raise BridgeError(
                _("The store {store} is not connected to the service yet.").format(store=store),
                fix=_("Run: tillbridge connect {store}").format(store=store),
            )
        push = rooms.catalogue.push_full if full else rooms.catalogue.push_again
        return _pushed(await push(), self._open_problem(store))

    async def menu_approve(self, store: str) -> Answer:
        """Release the plan that is held."""
        hold = await self._rooms(store).catalogue.approve()
        if hold is None:
            return {**_done(_("No menu change waits for approval.")), "ok": False}
        return _done(
            self._later(_("The menu change of {since} is released.")).format(
                since=to_iso(hold.since)
            )
        )

    async def menu_dismiss(self, store: str) -> Answer:
        """Leave the menu as it is: the plan that is held is not offered again."""
        hold = await self._rooms(store).catalogue.dismiss(by=actor().who)
        if hold is None:
            return {**_done(_("No menu change waits for approval.")), "ok": False}
        return _done(
            _(
                "The menu change is dismissed: the storefront stays as it is until the till tells "
                "something else."
            )
        )

    async def item_86(
        self, store: str, external_id: str, *, until_ms: int | None, by: str
    ) -> Answer:
        """Take an item off sale, whatever the POS says."""
        rooms = self._rooms(store)
        await self._check_item(store, external_id)
        if until_ms is not None and until_ms <= self._house.clock.now_ms():
            raise ConfigError(
                _("That time is over."), fix=_("Give a time to come, or none at all.")
            )
        await rooms.catalogue.take_off(external_id, until=until_ms, by=by)
        text = (
            _("{item} is off sale until it is restored.")
            if until_ms is None
            else _("{item} is off sale until {until}.")
        )
        until = "" if until_ms is None else clock_time(until_ms, self._house.clock.now_ms())
        return _done(self._later(text).format(item=external_id, until=until))

    async def item_restore(self, store: str, external_id: str, *, by: str) -> Answer:  # noqa: ARG002 -- the audit trail comes with the page's actions
        """Lift the staff's word on an item."""
        if not await self._rooms(store).catalogue.restore(external_id):
            text = _("{item} was not taken off sale here.").format(item=external_id)
            return {**_done(text), "ok": False}
        text = self._later(_("{item} is again as the till says."))
        return _done(text.format(item=external_id))

    async def order_retry(self, order_id: str) -> Answer:
        """Try at once what still has to be done for an order."""
        rooms = await self._rooms_of_order(order_id)
        return _done(self._later(await rooms.orders.retry(order_id, by=actor().who)))

    async def order_cancel(self, order_id: str, *, reason_code: str) -> Answer:
        """Cancel an order."""
        rooms = await self._rooms_of_order(order_id)
        code = ReasonCode(reason_code)
        return _done(self._later(await rooms.orders.cancel(order_id, code, by=actor().who)))

    async def order_done(self, order_id: str, *, how: str) -> Answer:
        """Leave an order to a person."""
        rooms = await self._rooms_of_order(order_id)
        by_hand: ByHand = "typed" if how == "typed" else "settled"
        return _done(self._later(await rooms.orders.done(order_id, by_hand, by=actor().who)))

    async def reporting_token(self, scope: str) -> Answer:
        """Return a token for the reporting API."""
        house = self._house
        audience = house.settings.assumptions.reporting_audience
        token = house.link.app(audience=audience, scope=scope).token
        text = await token.access_token()
        return {
            "ok": True,
            "access_token": text,
            "expires_at": to_iso(token.expires_at_ms),
            "audience": audience,
            "scope": token.access.scope,
        }

    # -- inside

    def _open_problem(self, store: str) -> OpenProblem | None:
        """Return what stands in the way of the store's menu, the worst first."""
        found = {
            each.code: each
            for each in self._house.desk.current()
            if each.store == store and each.subject in {"", "menu"}
        }
        return next((found[code] for code in _IN_THE_WAY if code in found), None)

    def _rooms(self, store: str) -> StoreRooms:
        rooms = self._building.stores.get(store)
        if rooms is None:
            raise ConfigError(
                _("There is no store {store}.").format(store=store),
                fix=_("There are: {names}.").format(names=", ".join(self._building.stores)),
            )
        return rooms

    async def _rooms_of_order(self, order_id: str) -> StoreRooms:
        rows = await self._house.ledger.read(lambda connection: find_orders(connection, order_id))
        known = [row.store for row in rows if row.store in self._building.stores]
        if not known:
            raise BridgeError(
                _("There is no order {order}.").format(order=order_id),
                fix=_("See which there are with: tillbridge orders list"),
            )
        return self._building.stores[known[0]]

    async def _check_item(self, store: str, external_id: str) -> None:
        def known(connection: Connection) -> bool:
            return bool(
                accepted_ids(connection, store, [external_id])
                or variant_owners(connection, store, [external_id])
            )

        if not await self._house.ledger.read(known):
            raise BridgeError(
                _("The menu has no item {item}.").format(item=external_id),
                fix=_("Give its id in the till, which the export calls external_id."),
            )

    def _daemon(self) -> Connecting:
        if self._connecting is None:
            raise BridgeError(_("The bridge is not running."), fix=_("Start it: tillbridge run"))
        return self._connecting

    def _later(self, text: str) -> str:
        if self._running_since is not None:
            return text
        return text + " " + _("The bridge is not running: it is told when it runs.")


def _done(text: str) -> Answer:
    return {"ok": True, "text": text}


def _pushed(report: PlanReport | None, problem: OpenProblem | None) -> Answer:
    """Tell what came of a push."""
    if problem is not None:
        return {"ok": False, "text": problem.text, "fix": problem.fix}
    if report is None:
        return {
            "ok": False,
            "text": _("The menu was not pushed."),
            "fix": _("See what is wrong with: tillbridge status"),
        }
    if report.calls:
        return _done(_("The menu is pushed."))
    return _done(_("Nothing had to be pushed: the service has what the till says."))
