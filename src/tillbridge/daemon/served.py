"""The stores and communities that the bridge serves. Each is started and ended while it runs.

It is opened, connected, and then its tasks and jobs begin; to end it, calls under way may come to
their end, then tasks and jobs are cancelled and its adapters closed.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from tillbridge.communities import CommunityContext
from tillbridge.communities.flow import CommunityFlow
from tillbridge.core.errors import ConfigError
from tillbridge.core.log import get_logger
from tillbridge.core.worker import Supervisor, Worker, in_thread, innermost
from tillbridge.daemon.store_services import Known, StoreServices, read_known
from tillbridge.ledger.community import key_of
from tillbridge.operations.bridge import Bridge
from tillbridge.pos.store_pos import OPENS_WITHIN_S, StoreOpening
from tillbridge.service.community_calls import CommunityCalls

log = get_logger()

_LOOK_EVERY_S = 15.0  # at adapters that are not open, and at stores that could not be started


Served = StoreServices | CommunityFlow


def keys_of(bridge: Bridge) -> tuple[str, ...]:
    """Return the names of all stores of the configuration, and `communities/NAME` of the others."""
    settings = bridge.settings
    return (*settings.stores, *map(key_of, settings.communities))


class ServedStores:
    """Starts and ends stores and communities by their keys (`keys_of`). Used from the event loop.

    What is open is in `bridge.stores` and `bridge.communities`.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._served: dict[str, Served] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wanted: tuple[str, ...] = ()
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._worker = Worker("open", self._settle, Supervisor("", bridge.problems), bridge.clock)
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Called with each store or community that was opened, before it runs.
        self.on_open: Callable[[Served], None] = lambda _served: None
        # Called with the key of each that has ended.
        self.on_end: Callable[[str], None] = lambda _key: None
        # Called with the key of each inbox that has a delivery and is worked on elsewhere.
        self.on_elsewhere: Callable[[str], None] = lambda _key: None
        # Called with the names of secrets that another bridge has changed.
        self.on_secrets: Callable[[Collection[str]], None] = lambda _names: None
        # By key: reports what cannot be opened.
        self._supervisors: dict[str, Supervisor] = {}

    @property
    def keys(self) -> Collection[str]:
        """The keys of all that is open."""
        return self._served.keys()

    def deliveries_arrived(self, key: str) -> bool:
        """Wake whoever works on this inbox, at its start it looks, too; False if it is not open."""
        if (served := self._served.get(key)) is None:
            return False
        served.deliveries_arrived()
        return True

    def delivery_stored(self, key: str) -> None:
        """Wake whoever works on the inbox of a store or community, in whichever bridge."""
        if not self.deliveries_arrived(key):
            self.on_elsewhere(key)

    async def read_secrets(self) -> None:
        """Read the secrets that other bridges have changed, also those of stores they serve."""
        if changed := await in_thread(self._bridge.ledger.vault.refresh):
            self.on_secrets(changed)

    def is_idle(self, key: str) -> bool:
        """Return whether this does not run, and is not to."""
        return key not in {*self._wanted, *self._served, *self._ending}

    async def ended(self) -> None:
        """Return once what was begun to be ended has ended."""
        if self._ending:  # whoever gives up waiting does not break it off
            await asyncio.wait(self._ending.values())

    async def open(self, keys: Collection[str]) -> None:
        """Open these, the adapters of all beside each other. Raises ConfigError."""
        for failure in (await self._open(keys)).values():
            raise failure

    async def _open(
        self, keys: Collection[str], on_opened: Callable[[], None] = lambda: None
    ) -> Mapping[str, ConfigError]:
        """Open these, and call `on_opened` after each; return why some could not be."""
        bridge, settings = self._bridge, self._bridge.settings
        if bridge.ledger.is_shared and keys:  # take over what others have left
            await self.read_secrets()
            await bridge.problems.adopt(keys)
        openings = {
            key: StoreOpening(key, settings.stores[key], bridge.base_dir)
            for key in keys
            if key in settings.stores
        }
        ends = bridge.clock.monotonic() + OPENS_WITHIN_S
        known: Mapping[str, Known] = {}
        if openings:
            known = await bridge.ledger.read(read_known, openings.keys())
        failures: dict[str, ConfigError] = {}
        for name, opening in openings.items():
            left_s = max(0.0, ends - bridge.clock.monotonic())
            try:
                may_act = partial(bridge.context.may_act, name)
                pos = await opening.pos(left_s, bridge.problems.report, may_act)
            except ConfigError as failure:
                failures[name] = failure
                continue
            store = bridge.stores[name] = StoreServices(name, bridge, opening, pos)
            self._served[name] = store
            self.on_open(store)
            try:
                await store.connected(known[name])
            except BaseException:
                self._end(name)
                raise
            on_opened()
        for name in settings.communities:
            if (key := key_of(name)) in keys:
                community = bridge.communities[name] = _community(name, bridge)
                self._served[key] = community
                self.on_open(community)
        return failures

    async def start(self, keys: Collection[str]) -> None:
        """Open these and let them run. Raises ConfigError."""
        self._wanted = tuple(keys)
        await self.open(keys)
        self._run_opened()
        self._worker.wake_in(_LOOK_EVERY_S)

    def serve(self, keys: Collection[str]) -> None:
        """Let exactly these run as soon as may be; what cannot be opened is reported."""
        self._wanted = tuple(keys)
        may_act = self._bridge.context.may_act
        for key in self._served.keys() - set(keys):
            # Where another bridge may serve it meanwhile, nothing may come to its end.
            self._end(key, self._bridge.settings.bridge.drain_s if may_act(key) else 0.0)
        self._worker.wake()

    def tasks(self) -> Mapping[str, Coroutine[Any, Any, object]]:
        """Return what is to be run and supervised: it raises what a task of a store died of."""
        return {"stores": self._until_failure(), "stores.settle": self._worker.run()}

    async def drain(self) -> None:
        """Begin nothing more for any of them, and return once no call is under way."""
        await asyncio.gather(*(each.drain() for each in self._served.values()))

    async def close(self) -> None:
        """End all of them; after `tasks`."""
        for key in tuple(self._served):
            self._end(key)
        await self.ended()

    async def _until_failure(self) -> None:
        await self._failed

    def _run_opened(self) -> None:
        """Let run what was opened, of which some may not be wanted any more."""
        for key in self._served.keys() - self._tasks.keys():
            if key in self._wanted:
                self._run(key)
            else:
                self._end(key)

    def _run(self, key: str) -> None:
        served = self._served[key]
        self._tasks[key] = task = asyncio.create_task(_run_all(served.tasks()), name=key)
        task.add_done_callback(self._died)
        served.plan(self._bridge.context.scheduler)

    def _died(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and not self._failed.done():
            failure = task.exception() or RuntimeError(f"{task.get_name()} returned")
            self._failed.set_exception(innermost(failure))

    async def _settle(self) -> float:
        """Let run what is wanted, and nothing else; return in how many seconds to look again.

        A store begins anew once adapters that could not be opened in time can be.
        """
        for name, store in self._bridge.stores.items():
            if not store.opening.is_complete and store.opening.can_be_complete():
                log.info("adapter.can_be_opened", store=name)
                self._end(name, self._bridge.settings.bridge.drain_s)
        missing = [key for key in self._wanted if key not in {*self._served, *self._ending}]
        try:
            # Each runs at once: what all have to do first would keep the leases from being renewed.
            failures = await self._open(missing, self._run_opened)
        finally:
            self._run_opened()
        for key in missing:
            supervisor = self._supervisors.setdefault(key, Supervisor(key, self._bridge.problems))
            if (failure := failures.get(key)) is not None:
                supervisor.failed("open", failure)
            elif key in self._served:
                supervisor.works("open")
        return _LOOK_EVERY_S

    def _end(self, key: str, drain_s: float = 0.0) -> None:
        """Begin to end one; calls that take longer than `drain_s` are cut off, and resumed later.

        None of the others waits for it.
        """
        if (served := self._served.pop(key, None)) is not None:
            self._ending[key] = asyncio.create_task(self._until_ended(key, served, drain_s))

    async def _until_ended(self, key: str, served: Served, drain_s: float) -> None:
        bridge = self._bridge
        try:
            if drain_s:
                with suppress(TimeoutError):
                    async with asyncio.timeout(drain_s):
                        await served.drain()
            if (task := self._tasks.pop(key, None)) is not None:
                task.cancel()
                await asyncio.wait({task})
            bridge.context.scheduler.remove(key)
            await served.close()
        finally:
            if isinstance(served, StoreServices):
                del bridge.stores[key]
            else:
                del bridge.communities[served.context.name]
            if bridge.ledger.is_shared:
                bridge.problems.give_up(key)
            del self._ending[key]
            self.on_end(key)
            self._worker.wake()


async def _run_all(tasks: Mapping[str, Coroutine[Any, Any, object]]) -> None:
    async with asyncio.TaskGroup() as group:
        for name, work in tasks.items():
            group.create_task(work, name=name)


def _community(name: str, bridge: Bridge) -> CommunityFlow:
    """Return the flow of one community; its members are stores of the bridge."""
    shared, stores = bridge.context, bridge.stores
    settings, assumed = shared.settings.communities[name], shared.settings.assumptions
    members = settings.stores or list(shared.settings.stores)
    link = bridge.link.app(
        audience=assumed.community_audience,
        on_contact=partial(shared.metrics.called, key_of(name)),
        may_act=partial(shared.may_act, key_of(name)),
    )
    calls = CommunityCalls(
        link.caller, settings.community_id, secret_field=assumed.subscription_secret_field
    )

    def connected() -> dict[str, str | None]:
        elsewhere = {} if bridge.cluster is None else bridge.cluster.store_ids
        return {
            each: stores[each].service_store_id if each in stores else elsewhere.get(each)
            for each in members
        }

    return CommunityFlow(CommunityContext(shared, name, calls, connected))
