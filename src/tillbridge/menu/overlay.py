"""Availability laid over the export: what the POS says apart from it, and what staff say over both.

Pure. Three layers, the upper one counts:
1. the item as the export has it (its own snooze may end);
2. the POS's availability reading, where it names the item and its time is not over;
3. a staff override, until it is lifted or its time is over: off sale, whatever lies below.
A reading or an override may name an item or a variant. Instants are ms since the epoch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tillbridge.model.catalogue import Availability, Item, Variant

_ON = Availability(available=True)


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
    state = overlay.over(item.external_id, Availability(item.available, item.snooze_until))
    if at_service is not None:
        state = overlay.stays_off(
            state, Availability(at_service.available, at_service.snooze_until)
        )
    variants = _variants(item, overlay, at_service)
    laid = (state.available, state.until, variants)
    if laid == (item.available, item.snooze_until, item.variants):
        return item
    return replace(item, available=state.available, snooze_until=state.until, variants=variants)


def next_change(overlay: Overlay, items: Iterable[Item]) -> int | None:
    """Return when something comes back by itself: the next end of a snooze or an override."""
    ends = [item.snooze_until for item in items]
    ends += [read.until for read in (overlay.by_pos or {}).values() if not read.available]
    ends += overlay.overrides.values()
    return min((end for end in ends if end is not None and end > overlay.now_ms), default=None)


def _variants(item: Item, overlay: Overlay, at_service: Item | None) -> tuple[Variant, ...]:
    if not item.variants:
        return item.variants
    off = (
        {each.external_id for each in at_service.variants if not each.available}
        if at_service
        else set()
    )
    laid = []
    for each in item.variants:
        state = overlay.over(each.external_id, Availability(each.available))
        if each.external_id in off:
            state = overlay.stays_off(state, Availability(available=False))
        laid.append(
            each if state.available == each.available else replace(each, available=state.available)
        )
    return tuple(laid)


def _longer(one: Availability, other: Availability) -> Availability:
    """Return that of two states which keeps the thing off sale longer."""
    if one.available or other.available:
        return other if one.available else one
    if one.until is None or other.until is None:
        return Availability(available=False)
    return one if one.until >= other.until else other
