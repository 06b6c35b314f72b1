"""Availability laid over the export: what the POS says apart from it, and what staff say over both.

Pure. Three layers, the upper one counts:
1. the item as the export has it (its own snooze may end);
2. the POS's word on it, where the availability reading names it and the word's time is not over;
3. a staff override, until it is lifted or its time is over: off sale, whatever lies below.
A word or an override may name an item or a variant. Instants are ms since the epoch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tillbridge.model.catalogue import Availability, Item, Variant

_ON = Availability(available=True)


@dataclass(frozen=True, slots=True)
class Overlay:
    """Everything that lies over the export at `now_ms`: words of the POS, ends of overrides.

    `words` is None while the POS's words are not known (not read yet): then nothing that the
    service has off sale comes back.
    """

    now_ms: int
    words: Mapping[str, Availability] | None = field(default_factory=dict)
    overrides: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def named(self) -> frozenset[str]:
        """The ids of items and variants that the overlay says something of."""
        return frozenset((self.words or {}).keys() | self.overrides.keys())

    def over(self, external_id: str, said: Availability) -> Availability:
        """Return what holds now for the item or variant of which the export says `said`."""
        state = self._now(said)
        word = (self.words or {}).get(external_id)
        if word is not None and not (word.until is not None and word.until <= self.now_ms):
            state = _ON if word.available else word
        if external_id in self.overrides:
            until = self.overrides[external_id]
            if until is None or until > self.now_ms:
                state = _longer(state, Availability(available=False, until=until))
        return state

    def kept_off(self, state: Availability, told: Availability) -> Availability:
        """Return `state`, or off sale as `told` while the POS's words are not known."""
        if self.words is not None or self._now(told).available:
            return state
        return _longer(state, told)

    def _now(self, said: Availability) -> Availability:
        return _ON if said.at(self.now_ms) else said


def lay(item: Item, overlay: Overlay, *, told: Item | None = None) -> Item:
    """Return the item as it should be on sale now; `told` is how the service has it."""
    state = overlay.over(item.external_id, Availability(item.available, item.snooze_until))
    if told is not None:
        state = overlay.kept_off(state, Availability(told.available, told.snooze_until))
    variants = _variants(item, overlay, told)
    laid = (state.available, state.until, variants)
    if laid == (item.available, item.snooze_until, item.variants):
        return item
    return replace(item, available=state.available, snooze_until=state.until, variants=variants)


def next_change(overlay: Overlay, items: Iterable[Item]) -> int | None:
    """Return when something comes back by itself: the next end of a snooze or an override."""
    ends = [item.snooze_until for item in items]
    ends += [word.until for word in (overlay.words or {}).values() if not word.available]
    ends += overlay.overrides.values()
    return min((end for end in ends if end is not None and end > overlay.now_ms), default=None)


def _variants(item: Item, overlay: Overlay, told: Item | None) -> tuple[Variant, ...]:
    if not item.variants:
        return item.variants
    off = {each.external_id for each in told.variants if not each.available} if told else set()
    laid = []
    for each in item.variants:
        state = overlay.over(each.external_id, Availability(each.available))
        if each.external_id in off:
            state = overlay.kept_off(state, Availability(available=False))
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
