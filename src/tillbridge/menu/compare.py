"""A reading compared with what the service has: what differs, and what the guard must know.

Of a reading, whole or given as changes, and of availability alone. They read the ledger (run them
in its reader) and otherwise only compute. The comparison of changes looks only at items that the
changes touch, and finds what the whole one finds.

Of availability three layers lie over each other, the upper one counts:
1. the item as the export has it (its own snooze may end);
2. the POS's availability reading, where it names the item and its time is not over;
3. a staff override, until it is lifted or its time is over: off sale, whatever lies below.
A reading or an override may name an item, a variant or an add-on. No call sells out an add-on: it
is left out of its groups, and where a guest has to choose and too few are left, the items that
offer the group are off sale. Instants are ms since the epoch.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import xxhash
from sqlalchemy import Connection

from tillbridge.core.i18n import _
from tillbridge.ledger import menu
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import Refusal, refused_items
from tillbridge.ledger.menu_codec import PARTS, AcceptedItem, Parts, item_text
from tillbridge.ledger.models import Hold, StoreOverride
from tillbridge.ledger.pushes import get_hold, get_overrides
from tillbridge.menu.diff import AVAILABILITY, Diff, ItemChange, diff
from tillbridge.menu.guard import FEW, Source, Totals, left_by_category, plain, wanted_counts
from tillbridge.model.catalogue import (
    AddOnGroup,
    Availability,
    BadRow,
    Catalogue,
    CatalogueChanges,
    Item,
)
from tillbridge.model.numbers import printable

SOURCE = "menu_source"  # the fact: what the accepted menu was read from
_LONGEST_PLACE = 200
_SIGN = 1 << 63
_ON, _OFF = Availability(available=True), Availability(available=False)


# -- availability: what lies over the export


def availability_of(item: Item) -> Availability:
    """Return the item's availability."""
    if item.snooze_until is not None:
        return Availability(item.available, item.snooze_until)
    return _ON if item.available else _OFF


@dataclass(frozen=True, slots=True)
class Overlay:
    """Everything that lies over the export at `now_ms`: the POS's reading and the overrides.

    `by_pos` is None while the POS's availability is not known (not read yet): then nothing that the
    service has off sale comes back. Items with one of the `closed` add-on groups are off sale.
    """

    now_ms: int
    by_pos: Mapping[str, Availability] | None = field(default_factory=dict)
    overrides: Mapping[str, int | None] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()

    @property
    def off(self) -> set[str]:
        """The ids that the POS or staff have off sale, whatever the export says."""
        off = {key for key, each in (self.by_pos or {}).items() if not each.available}
        return off | self.overrides.keys()

    def over(
        self, external_id: str, exported: Availability, at_service: Availability
    ) -> Availability:
        """Return what holds now for the item or variant that the export has like this."""
        now = self.now_ms
        state = _ON if exported.available or _is_over(exported.until, now) else exported
        read = (self.by_pos or {}).get(external_id)
        if read is not None and not _is_over(read.until, now):
            state = _ON if read.available else read
        if external_id in self.overrides and not _is_over(self.overrides[external_id], now):
            override = Availability(available=False, until=self.overrides[external_id])
            state = _longer(state, override)
        if self.by_pos is None and not (at_service.available or _is_over(at_service.until, now)):
            state = _longer(state, at_service)
        return state


def apply_overlay(item: Item, overlay: Overlay, *, at_service: Item | None = None) -> Item:
    """Return the item as it should be on sale now; `at_service` is how the service has it."""
    there = _ON if at_service is None else availability_of(at_service)
    state = overlay.over(item.external_id, availability_of(item), there)
    if not overlay.closed.isdisjoint(item.addon_groups):
        state = _OFF
    had = () if at_service is None else at_service.variants
    off = {each.external_id for each in had if not each.available}
    variants = []
    for each in item.variants:
        there = _OFF if each.external_id in off else _ON
        on = overlay.over(each.external_id, _ON if each.available else _OFF, there).available
        variants.append(each if on == each.available else replace(each, available=on))
    laid = (state.available, state.until, tuple(variants))
    if laid == (item.available, item.snooze_until, item.variants):
        return item
    return replace(item, available=laid[0], snooze_until=laid[1], variants=laid[2])


def lay_groups(
    groups: Mapping[str, AddOnGroup],
    overlay: Overlay,
    *,
    add_ons: AbstractSet[str],
    at_service: Mapping[str, AddOnGroup],
) -> dict[str, AddOnGroup]:
    """Return the groups with what is sold out of them now.

    Entries that are not among the `add_ons` are items, which have an availability of their own.
    """
    laid = {}
    for key, group in groups.items():
        had = at_service[key].sold_out if key in at_service else ()
        sold_out = tuple(
            each
            for each in group.add_ons
            if each in add_ons
            and not overlay.over(each, _ON, _OFF if each in had else _ON).available
        )
        laid[key] = group if sold_out == group.sold_out else replace(group, sold_out=sold_out)
    return laid


def next_change(overlay: Overlay, snoozed: Iterable[int | None]) -> int | None:
    """Return when something comes back by itself: the next end of a snooze or an override."""
    ends = [*snoozed]
    ends += [read.until for read in (overlay.by_pos or {}).values() if not read.available]
    ends += overlay.overrides.values()
    return min((end for end in ends if end is not None and end > overlay.now_ms), default=None)


def _is_over(until: int | None, now_ms: int) -> bool:
    return until is not None and until <= now_ms


def _longer(one: Availability, other: Availability) -> Availability:
    """Return that of two states which keeps the thing off sale longer."""
    if one.available or other.available:
        return other if one.available else one
    if one.until is None or other.until is None:
        return _OFF
    return one if one.until >= other.until else other


# -- the comparison


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between the service and the POS.

    `acknowledged` and `current` are the compared parts of both sides, whole where `whole` is set.
    `menus` is how many there are, where items are added. `targets` are the compared items as they
    are acknowledged once the service has them, with the record they come from; `refreshed` are
    those of which the record alone is new. `no_longer_refused` are refusals whose record is gone.
    `next_change` (ms) is when an item comes back by itself. `hold` is the plan that waited until
    now.
    """

    changes: Diff
    acknowledged: Catalogue
    current: Catalogue
    totals: Totals
    menus: int
    targets: Mapping[str, AcceptedItem] = field(default_factory=dict)
    refreshed: tuple[AcceptedItem, ...] = ()
    no_longer_refused: tuple[str, ...] = ()
    items_read: int = 0
    next_change: int | None = None
    whole: bool = False
    hold: Hold | None = None


def compare(
    connection: Connection, store: str, reading: Catalogue | CatalogueChanges, overlay: Overlay
) -> Comparison:
    """Compare a reading with what the service has; the staff's overrides lie over both.

    Of a whole export with all of it, of changes with what they touch, and what lies over the rest.
    """
    overrides = get_overrides(connection, store, StoreOverride)
    overlay = replace(overlay, overrides={key: each.until for key, each in overrides.items()})
    refused = refused_items(connection, store)
    whole = isinstance(reading, Catalogue)
    fresh = reading if isinstance(reading, Catalogue) else reading.fresh
    touched = {} if whole else menu.groups_of(connection, store, overlay.off)
    has = Parts(fresh.categories, fresh.add_ons, touched | dict(fresh.addon_groups), fresh.menus)
    ids = {} if whole else {kind: getattr(has, kind) for kind in PARTS}
    had = menu.parts(connection, store, **ids)
    groups, overlay = _lay_groups(connection, store, has, overlay, had.addon_groups)
    records: dict[str, tuple[Item, int | None]] = {  # as exported, and the record's fingerprint
        key: (item, fingerprint_of(fresh, item)) for key, item in fresh.items.items()
    }
    bad_rows = fresh.bad_rows
    if isinstance(reading, Catalogue):
        accepted = menu.all_items(connection, store)
        still_refused = refused.keys() & reading.items.keys()
        for key, refusal in refused.items():
            if key in records and records[key][1] == refusal.fingerprint:
                del records[key]  # if refused is a change of it, it stays as it was
        known = accepted.keys() & still_refused
    else:
        accepted = menu.items_by_id(connection, store, fresh.items)
        doubled = tuple(_doubled(fresh, accepted, refused, reading.unseen))
        for row in doubled:
            records.pop(row.external_id, None)
        bad_rows = (*bad_rows, *doubled)
        gone = menu.items_of_records(connection, store, reading.unseen)
        accepted |= gone | _touched(connection, store, overlay)
        still_refused = {
            key for key, each in refused.items() if each.fingerprint not in reading.unseen
        }
        leaving = gone.keys() - fresh.items.keys() - still_refused
        known = accepted.keys() - leaving
    for key in known - records.keys():
        records[key] = accepted[key].pos_item, accepted[key].fingerprint
    items = {key: each.item for key, each in accepted.items()}
    acknowledged = Catalogue(items, had.categories, had.add_ons, had.addon_groups, had.menus)
    targets = {
        key: AcceptedItem.of(apply_overlay(item, overlay, at_service=items.get(key)), item, record)
        for key, (item, record) in records.items()
    }
    laid = {key: each.item for key, each in targets.items()}
    current = replace(fresh, items=laid, addon_groups=groups, bad_rows=bad_rows)
    doubtful = frozenset(key for key, each in accepted.items() if each.doubtful)
    changes = diff(acknowledged, current, doubtful=doubtful)
    passed_over = changes.changed.keys() | {row.external_id for row in bad_rows}
    return Comparison(
        changes=changes,
        acknowledged=acknowledged,
        current=current,
        totals=_totals(connection, store, changes, fresh),
        menus=len(menu.menu_ids(connection, store) | has.menus.keys()) if changes.added else 1,
        targets=accepted | targets,  # what a bad row stands for is sent as it was
        refreshed=tuple(
            each
            for key, each in targets.items()
            if key in accepted and key not in passed_over and each != accepted[key]
        ),
        no_longer_refused=tuple(refused.keys() - still_refused),
        items_read=len(fresh.items) if isinstance(reading, Catalogue) else reading.items_read,
        next_change=next_change(overlay, [each.pos_until for each in targets.values()]),
        whole=whole,
        hold=get_hold(connection, store),
    )


def compare_availability(
    connection: Connection,
    store: str,
    overlay: Overlay,
    *,
    unconfirmed: AbstractSet[str] = frozenset(),
) -> Comparison:
    """Compare availability alone; `unconfirmed` items differ whatever the ledger has of them."""
    overrides = get_overrides(connection, store, StoreOverride)
    overlay = replace(overlay, overrides={key: each.until for key, each in overrides.items()})
    had = menu.groups_of(connection, store, overlay.off)
    groups, overlay = _lay_groups(connection, store, Parts(addon_groups=had), overlay, had)
    accepted = _touched(connection, store, overlay)
    accepted |= menu.items_by_id(connection, store, unconfirmed - accepted.keys())
    targets = {
        key: replace(each, item=apply_overlay(each.pos_item, overlay, at_service=each.item))
        for key, each in accepted.items()
    }
    items = {key: each.item for key, each in accepted.items()}
    acknowledged = Catalogue(items=items, addon_groups=had)
    laid = {key: each.item for key, each in targets.items()}
    current = Catalogue(items=laid, addon_groups=groups)
    found = diff(acknowledged, current)
    again = {
        key: ItemChange(accepted[key].item, current.items[key], AVAILABILITY)
        for key in unconfirmed & accepted.keys()
    }
    return Comparison(
        changes=Diff(changed=again | dict(found.changed), addon_groups=found.addon_groups),
        acknowledged=acknowledged,
        current=current,
        totals=Totals(len(accepted)),
        menus=1,
        targets=targets,
        next_change=next_change(overlay, [each.pos_until for each in targets.values()]),
    )


def _touched(connection: Connection, store: str, overlay: Overlay) -> dict[str, AcceptedItem]:
    """Return the accepted items whose availability an overlay touches, or did when last sent."""
    accepted = menu.overlaid_items(connection, store)
    by_pos = overlay.by_pos or {}
    off = {key for key, each in by_pos.items() if not each.available}
    if len(off) < len(by_pos):  # others are on sale over an export that has them off
        accepted |= menu.items_off_by_pos(connection, store)
    off |= overlay.overrides.keys()
    accepted |= menu.items_by_id(connection, store, off - accepted.keys())
    strange = frozenset(by_pos.keys() | overlay.overrides.keys()) - accepted.keys()
    if strange:  # variants, add-ons, or nothing of this menu
        strange -= menu.accepted_ids(connection, store, strange)
        owners = set(menu.variant_owners(connection, store, strange).values())
        accepted |= menu.items_by_id(connection, store, owners - accepted.keys())
    if overlay.closed:
        accepted |= menu.items_with_groups(connection, store, overlay.closed)
    return accepted


def _lay_groups(
    connection: Connection,
    store: str,
    has: Parts,
    overlay: Overlay,
    at_service: Mapping[str, AddOnGroup],
) -> tuple[Mapping[str, AddOnGroup], Overlay]:
    """Return the groups with what is sold out of them, and the overlay with those closed by it."""
    groups = {key: replace(each, sold_out=()) for key, each in has.addon_groups.items()}
    if not (overlay.off or any(each.sold_out for each in at_service.values())):
        return groups, overlay
    listed = {each for group in groups.values() for each in group.add_ons} - has.add_ons.keys()
    accepted = menu.parts(connection, store, add_ons=listed).add_ons
    add_ons = has.add_ons.keys() | accepted.keys()
    laid = lay_groups(groups, overlay, add_ons=add_ons, at_service=at_service)
    closed = frozenset(key for key, each in laid.items() if not each.is_open)
    return laid, replace(overlay, closed=closed)


# -- the records of an export


def changes_from(export: Catalogue, known: AbstractSet[int]) -> CatalogueChanges:
    """Return a whole export as changes, for an adapter that gives none."""
    prints = {item.external_id: fingerprint_of(export, item) for item in export.items.values()}
    fresh = {key: item for key, item in export.items.items() if prints[key] not in known}
    return CatalogueChanges(
        fresh=replace(export, items=fresh, fingerprints={key: prints[key] for key in fresh}),
        unseen=frozenset(known - set(prints.values())),
        items_read=len(export.items),
    )


def fingerprint_of(export: Catalogue, item: Item) -> int:
    """Return the fingerprint that the adapter gave for the item, else one of its content."""
    given = export.fingerprints.get(item.external_id)
    return fingerprint(item) if given is None else given


def fingerprint(item: Item) -> int:
    """Return a stable signed 64-bit number of the item's content, as the export has it."""
    number = xxhash.xxh3_64_intdigest(item_text(item).encode("utf-8", "surrogatepass"))
    return number - (1 << 64) if number >= _SIGN else number


def _doubled(
    fresh: Catalogue,
    accepted: Mapping[str, AcceptedItem],
    refused: Mapping[str, Refusal],
    unseen: AbstractSet[int],
) -> Iterator[BadRow]:
    """Yield a bad row for each new record of an item whose known record is there as well.

    A record that is there once more, word for word, contradicts nothing.
    """
    column = fresh.source.columns.get("external_id", "external_id")
    for external_id, item in fresh.items.items():
        known = [
            accepted[external_id].fingerprint if external_id in accepted else None,
            refused[external_id].fingerprint if external_id in refused else None,
        ]
        own = fingerprint_of(fresh, item)
        if any(each is not None and each not in unseen and each != own for each in known):
            place = str(fresh.source.places.get(external_id) or "")
            yield BadRow(
                place=printable(place, most=_LONGEST_PLACE)
                or _("external_id {id}").format(id=external_id),
                text=_(
                    "{column} {id} appears twice with different contents; the other record is "
                    "unchanged"
                ).format(column=column, id=external_id),
                fix=_("Give each item a different id."),
                external_id=external_id,
                field=column,
                value=external_id,
            )


def _totals(connection: Connection, store: str, changes: Diff, fresh: Catalogue) -> Totals:
    left = {key: count for key, count in left_by_category(changes).items() if count > 1}
    names = menu.parts(connection, store, categories=left).categories
    fields, kinds = wanted_counts(changes)
    twins: frozenset[str] = frozenset()
    if len(changes.added) > FEW:
        there = {
            plain(name)
            for key, name in menu.item_names(connection, store)
            if key not in changes.removed
        }
        twins = frozenset(key for key, each in changes.added.items() if plain(each.name) in there)
    return Totals(
        items=menu.item_count(connection, store),
        category_items={
            key: menu.count_in_category(connection, store, key, at_most=count + 1)
            for key, count in left.items()
        },
        category_names={key: category.name for key, category in names.items()},
        having={each: menu.count_having(connection, store, each) for each in fields},
        parts={each: menu.count_parts(connection, store, each) for each in kinds},
        twins=twins,
        accepted_from=get_fact(connection, store, SOURCE, Source) or Source(),
        read_from=Source(fresh.ends_with_newline, fresh.facts.encodings),
    )
