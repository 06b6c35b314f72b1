"""Availability: what lies over the export, and which of two calls beside each other counts.

Three layers, the upper one counts:
1. the item as the export has it (its own snooze may end);
2. the POS's availability reading, where it names the item and its time is not over;
3. a staff override, until it is lifted or its time is over: off sale, whatever lies below.
A reading or an override may name an item or a variant. Instants are ms since the epoch.

Availability does not wait for a menu push, and it has the last word (invariant 13). What its lane
sent since a plan was made is put into the plan's calls (`sent`). Where a menu call under way
differs, nobody knows which of the two the service applies last: such an item is sent once more
after it. Calls of availability alone, of either lane, take turns (`turn`).
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tillbridge.model.catalogue import Availability, Item

AvailabilityById = Mapping[str, Availability | None]  # None: the item is taken off the menu

_ON, _OFF = Availability(available=True), Availability(available=False)


def availability_of(item: Item) -> Availability:
    """Return the item's availability."""
    if item.snooze_until is not None:
        return Availability(item.available, item.snooze_until)
    return _ON if item.available else _OFF


@dataclass(frozen=True, slots=True)
class Overlay:
    """Everything that lies over the export at `now_ms`: the POS's reading and the overrides.

    `by_pos` is None while the POS's availability is not known (not read yet): then nothing that the
    service has off sale comes back.
    """

    now_ms: int
    by_pos: Mapping[str, Availability] | None = field(default_factory=dict)
    overrides: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def named(self) -> frozenset[str]:
        """The ids of items and variants that the overlay names."""
        return frozenset((self.by_pos or {}).keys() | self.overrides.keys())

    def over(self, external_id: str, exported: Availability) -> Availability:
        """Return what holds now for the item or variant that the export has like this."""
        state = self._now(exported)
        read = (self.by_pos or {}).get(external_id)
        if read is not None and not (read.until is not None and read.until <= self.now_ms):
            state = _ON if read.available else read
        if external_id in self.overrides:
            until = self.overrides[external_id]
            if until is None or until > self.now_ms:
                state = _longer(state, Availability(available=False, until=until))
        return state

    def stays_off(self, state: Availability, at_service: Availability) -> Availability:
        """Return `state`, or off sale as at the service while the POS has not been read."""
        if self.by_pos is not None or self._now(at_service).available:
            return state
        return _longer(state, at_service)

    def _now(self, exported: Availability) -> Availability:
        return _ON if exported.at(self.now_ms) else exported


def lay(item: Item, overlay: Overlay, *, at_service: Item | None = None) -> Item:
    """Return the item as it should be on sale now; `at_service` is how the service has it."""
    state = overlay.over(item.external_id, availability_of(item))
    off: set[str] = set()
    if at_service is not None:
        state = overlay.stays_off(state, availability_of(at_service))
        off = {each.external_id for each in at_service.variants if not each.available}
    variants = []
    for each in item.variants:
        on = overlay.over(each.external_id, _ON if each.available else _OFF)
        if each.external_id in off:
            on = overlay.stays_off(on, _OFF)
        same = on.available == each.available
        variants.append(each if same else replace(each, available=on.available))
    laid = (state.available, state.until, tuple(variants))
    if laid == (item.available, item.snooze_until, item.variants):
        return item
    return replace(item, available=laid[0], snooze_until=laid[1], variants=laid[2])


def next_change(overlay: Overlay, items: Iterable[Item]) -> int | None:
    """Return when something comes back by itself: the next end of a snooze or an override."""
    ends = [item.snooze_until for item in items]
    ends += [read.until for read in (overlay.by_pos or {}).values() if not read.available]
    ends += overlay.overrides.values()
    return min((end for end in ends if end is not None and end > overlay.now_ms), default=None)


def _longer(one: Availability, other: Availability) -> Availability:
    """Return that of two states which keeps the thing off sale longer."""
    if one.available or other.available:
        return other if one.available else one
    if one.until is None or other.until is None:
        return Availability(available=False)
    return one if one.until >= other.until else other


class CallsInFlight:
    """The calls under way of one store. Used from the event loop."""

    def __init__(self) -> None:
        self.push_ids: set[int] = set()  # rows of the ledger that this process will end
        self.turn = asyncio.Lock()
        self.sent: dict[
            str, Availability
        ] = {}  # by the availability lane, since the latest plan began
        self._menu: list[AvailabilityById] = []
        self._availability: list[tuple[AvailabilityById, set[str]]] = []

    @contextmanager
    def menu(self, carried: AvailabilityById) -> Iterator[None]:
        """Hold while a menu call carries this availability of its items."""
        for others, clashed in self._availability:
            clashed.update(_unlike(others, carried))
        self._menu.append(carried)
        try:
            yield
        finally:
            self._menu = [each for each in self._menu if each is not carried]

    @contextmanager
    def availability(self, carried: AvailabilityById) -> Iterator[set[str]]:
        """Hold while an availability call carries this; yields the items of which others differ."""
        clashed: set[str] = set()
        for others in self._menu:
            clashed.update(_unlike(carried, others))
        entry = (carried, clashed)
        self._availability.append(entry)
        try:
            yield clashed
        finally:
            self._availability = [each for each in self._availability if each is not entry]


def _unlike(carried: AvailabilityById, others: AvailabilityById) -> Iterator[str]:
    for external_id, availability in carried.items():
        if external_id in others and others[external_id] != availability:
            yield external_id
