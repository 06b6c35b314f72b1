"""One community's rooms, wired. Imported only where the configuration names a community."""

from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

from tillbridge.communities.context import CommunityContext
from tillbridge.communities.flow import CommunityFlow
from tillbridge.communities.hours import Hours
from tillbridge.config.restaurant import StoreFiles
from tillbridge.daemon.rooms import House, StoreRooms
from tillbridge.service.community_calls import CommunityCalls


class CommunityRooms:
    """Everything of one community; `stores` are those of this bridge, by their local names."""

    def __init__(self, name: str, house: House, stores: Mapping[str, StoreRooms]) -> None:
        settings = house.settings.communities[name]
        assumed = house.settings.assumptions
        members = settings.stores or list(stores)
        link = house.link.app(
            audience=assumed.community_audience,
            on_contact=partial(house.metrics.called, f"communities/{name}"),
        )
        self.name = name
        context = CommunityContext(
            name,
            settings,
            CommunityCalls(
                link.caller,
                settings.community_id,
                secret_field=assumed.subscription_secret_field,
            ),
            house.ledger,
            house.desk,
            house.clock,
            partial(_ids, stores, members),
        )
        files = {each: StoreFiles.of(stores[each].settings, house.base_dir) for each in members}
        with_files = {each: found for each, found in files.items() if found.paths()}
        hours = Hours(
            context,
            with_files if settings.push_hours else {},
            hours_field=assumed.override_hours_field,
        )
        self.flow = CommunityFlow(context, hours, public_url=house.settings.receiver.public_url)

    @property
    def key(self) -> str:
        """The end of its webhook's path."""
        return self.flow.context.key

    def tasks(self) -> Mapping[str, Coroutine[Any, Any, object]]:
        """Return what runs for this community; each is supervised."""
        return {f"{self.key} {each.name}": each.run() for each in self.flow.workers}


def build(house: House, stores: Mapping[str, StoreRooms]) -> dict[str, CommunityRooms]:
    """Return the rooms of every community of the configuration, by name."""
    return {name: CommunityRooms(name, house, stores) for name in house.settings.communities}


def _ids(stores: Mapping[str, StoreRooms], members: list[str]) -> dict[str, str | None]:
    return {name: stores[name].service_store_id for name in members}
