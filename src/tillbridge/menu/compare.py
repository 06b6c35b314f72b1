"""A reading compared with what the service has: what differs, and what the guard must know.

Of a reading, whole or given as changes, and of availability alone. They read the ledger (run them
in its reader) and otherwise only compute. The comparison of changes looks only at items that the
changes touch, and finds what the whole one finds.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection

from tillbridge.core.i18n import _
from tillbridge.ledger import menu
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import Refusal, refused_items
from tillbridge.ledger.menu_codec import AcceptedItem, Parts
from tillbridge.ledger.models import Hold
from tillbridge.ledger.overrides import get_overrides
from tillbridge.ledger.pushes import get_hold
from tillbridge.menu.codec import fingerprint
from tillbridge.menu.diff import AVAILABILITY, Diff, ItemChange, diff
from tillbridge.menu.guard import FEW, Source, Totals, left_by_category, plain, wanted_counts
from tillbridge.menu.overlay import Overlay, lay, next_change
from tillbridge.model.catalogue import BadRow, Catalogue, CatalogueChanges, Item
from tillbridge.model.export_facts import FileEncoding
from tillbridge.model.texts import printable

SOURCE = "menu_source"  # the fact: what the accepted menu was read from
_LONGEST_PLACE = 200


@dataclass(frozen=True, slots=True)
class Record:
    """Where an item comes from: as the export has it, and the record's fingerprint."""

    from_export: Item
    fingerprint: int | None

    @classmethod
    def of(cls, known: AcceptedItem) -> "Record":
        """Return the record that an accepted item is known to come from."""
        return cls(known.pos_item, known.fingerprint)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between the service and the POS.

    `acknowledged` and `current` are the compared parts of both sides, whole where `whole` is set.
    `records` are where the compared items come from; `refreshed` are items whose record alone is
    new; `no_longer_refused` are refusals whose record is gone. `next_change` (ms) is when an item
    comes back by itself. `hold` is the plan that waited until now.
    """

    changes: Diff
    acknowledged: Catalogue
    current: Catalogue
    totals: Totals
    menus: int
    records: Mapping[str, Record] = field(default_factory=dict)
    refreshed: tuple[AcceptedItem, ...] = ()
    no_longer_refused: tuple[str, ...] = ()
    bad_rows: tuple[BadRow, ...] = ()
    items_read: int = 0
    next_change: int | None = None
    whole: bool = False
    source: Source = field(default_factory=Source)
    hold: Hold | None = None


def compare(
    connection: Connection, store: str, reading: Catalogue | CatalogueChanges, overlay: Overlay
) -> Comparison:
    """Compare a reading with what the service has; the staff's overrides lie over both.

    Of a whole export with all of it, of changes with what they touch, and what lies over the rest.
    """
    overlay = _with_overrides(connection, store, overlay)
    refused = refused_items(connection, store)
    fresh = reading if isinstance(reading, Catalogue) else reading.fresh
    has = Parts(fresh.categories, fresh.add_ons, fresh.addon_groups, fresh.menus)
    records = {key: Record(item, fingerprint_of(fresh, item)) for key, item in fresh.items.items()}
    bad_rows = fresh.bad_rows
    if isinstance(reading, Catalogue):
        accepted = menu.all_items(connection, store)
        had = menu.all_parts(connection, store)
        items_read = len(reading.items)
        no_longer_refused = tuple(refused.keys() - reading.items.keys())
        for key, refusal in refused.items():
            if key in records and records[key].fingerprint == refusal.fingerprint:
                del records[key]
                if key in accepted:  # refused is a change of it: it stays as it was
                    records[key] = Record.of(accepted[key])
    else:
        accepted = menu.items_by_id(connection, store, fresh.items)
        doubled = tuple(_doubled(fresh, accepted, refused, reading.unseen))
        for row in doubled:
            records.pop(row.external_id, None)
        bad_rows = (*bad_rows, *doubled)
        gone = menu.items_by_fingerprint(connection, store, reading.unseen)
        gone |= menu.unrecorded_items(connection, store)
        accepted |= gone | touched_by(connection, store, overlay)
        still_refused = {
            key for key, each in refused.items() if each.fingerprint not in reading.unseen
        }
        leaving = gone.keys() - fresh.items.keys() - still_refused
        for key, known in accepted.items():
            if key not in records and key not in leaving:
                records[key] = Record.of(known)
        had = menu.parts_like(connection, store, has)
        items_read = reading.items_read
        no_longer_refused = tuple(refused.keys() - still_refused)
    acknowledged = Catalogue(
        {key: each.item for key, each in accepted.items()},
        had.categories,
        had.add_ons,
        had.addon_groups,
        had.menus,
    )
    laid = {
        key: lay(each.from_export, overlay, at_service=acknowledged.items.get(key))
        for key, each in records.items()
    }
    current = replace(fresh, items=laid, bad_rows=bad_rows)
    doubtful = frozenset(key for key, each in accepted.items() if each.doubtful)
    changes = diff(acknowledged, current, doubtful=doubtful)
    source = source_of(fresh)
    return Comparison(
        changes=changes,
        acknowledged=acknowledged,
        current=current,
        totals=_totals(connection, store, changes, source),
        menus=len(menu.menu_ids(connection, store) | has.menus.keys()),
        # What a bad row stands for keeps its record: a full push sends it as it was.
        records={key: Record.of(each) for key, each in accepted.items()} | records,
        refreshed=tuple(_refreshed(accepted, records, changes, bad_rows)),
        no_longer_refused=no_longer_refused,
        bad_rows=bad_rows,
        items_read=items_read,
        next_change=next_change(overlay, [each.from_export for each in records.values()]),
        whole=isinstance(reading, Catalogue),
        source=source,
        hold=get_hold(connection, store),
    )


def compare_variants(connection: Connection, store: str, overlay: Overlay) -> Comparison:
    """Compare availability alone, of the items of which it changes a variant."""
    found = compare_availability(connection, store, overlay)
    return replace(found, changes=Diff(changed=found.changes.content))


def compare_availability(
    connection: Connection,
    store: str,
    overlay: Overlay,
    *,
    unconfirmed: AbstractSet[str] = frozenset(),
) -> Comparison:
    """Compare availability alone; `unconfirmed` items differ whatever the ledger has of them."""
    overlay = _with_overrides(connection, store, overlay)
    accepted = touched_by(connection, store, overlay)
    accepted |= menu.items_by_id(connection, store, unconfirmed - accepted.keys())
    current = {
        key: lay(each.pos_item, overlay, at_service=each.item) for key, each in accepted.items()
    }
    changed = {}
    for external_id, after in current.items():
        before = accepted[external_id].item
        if before != after:
            fields = AVAILABILITY if before.variants == after.variants else frozenset({"variants"})
            if fields != AVAILABILITY and before.available != after.available:
                fields |= {"available"}
            changed[external_id] = ItemChange(before, after, frozenset(fields))
        elif external_id in unconfirmed:
            changed[external_id] = ItemChange(before, after, AVAILABILITY)
    return Comparison(
        changes=Diff(changed=changed),
        acknowledged=Catalogue(items={key: each.item for key, each in accepted.items()}),
        current=Catalogue(items=current),
        totals=Totals(len(accepted)),
        menus=1,
        records={key: Record.of(each) for key, each in accepted.items()},
        next_change=next_change(overlay, [each.pos_item for each in accepted.values()]),
    )


def _with_overrides(connection: Connection, store: str, overlay: Overlay) -> Overlay:
    ends = {key: each.until for key, each in get_overrides(connection, store).items()}
    return replace(overlay, overrides={**overlay.overrides, **ends})


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


def _doubled(
    fresh: Catalogue,
    accepted: Mapping[str, AcceptedItem],
    refused: Mapping[str, Refusal],
    unseen: AbstractSet[int],
) -> Iterator[BadRow]:
    """Yield a bad row for each new record of an item whose known record is there as well.

    A record that stands there once more, word for word, contradicts nothing.
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
                    "{column} {id} stands twice, with different contents; the other record is"
                    " unchanged"
                ).format(column=column, id=external_id),
                fix=_("Give each item an id of its own."),
                external_id=external_id,
                field=column,
                value=external_id,
            )


def _refreshed(
    accepted: Mapping[str, AcceptedItem],
    records: Mapping[str, Record],
    changes: Diff,
    bad_rows: Iterable[BadRow],
) -> Iterator[AcceptedItem]:
    """Yield the items that did not change, and come from another record."""
    passed_over = changes.changed.keys() | {row.external_id for row in bad_rows}
    for key, record in records.items():
        if key in accepted and key not in passed_over:
            now = AcceptedItem.of(accepted[key].item, record.from_export, record.fingerprint)
            if now != accepted[key]:
                yield now


def _totals(connection: Connection, store: str, changes: Diff, source: Source) -> Totals:
    left = {key: count for key, count in left_by_category(changes).items() if count > 1}
    names = menu.parts_like(connection, store, Parts(categories=dict.fromkeys(left))).categories  # type: ignore[arg-type] # only the ids are looked at
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
        accepted_from=_accepted_source(connection, store),
        read_from=source,
    )


def source_of(export: Catalogue) -> Source:
    """Return what a menu was read from."""
    return Source(export.ends_with_newline, export.facts.encodings)


def _accepted_source(connection: Connection, store: str) -> Source:
    """Return what the accepted menu was read from, as far as that is known."""
    known = get_fact(connection, store, SOURCE)
    if not isinstance(known, Mapping):
        return Source()
    encodings = {
        name: FileEncoding(**how)
        for name, how in (known.get("encodings") or {}).items()
        if isinstance(how, Mapping)
    }
    return Source(known.get("ends_with_newline"), encodings)


def touched_by(connection: Connection, store: str, overlay: Overlay) -> dict[str, AcceptedItem]:
    """Return the accepted items whose availability an overlay touches, or did when last sent."""
    accepted = menu.overlaid_items(connection, store)
    by_pos = overlay.by_pos or {}
    off = {key for key, each in by_pos.items() if not each.available}
    if len(off) < len(by_pos):  # others are on sale over an export that has them off
        accepted |= menu.items_off_by_pos(connection, store)
    off |= overlay.overrides.keys()
    accepted |= menu.items_by_id(connection, store, off - accepted.keys())
    strange = overlay.named - accepted.keys()
    strange -= menu.accepted_ids(connection, store, strange)
    if strange:
        owners = menu.variant_owners(connection, store, strange)
        accepted |= menu.items_by_id(
            connection, store, frozenset(owners.values()) - accepted.keys()
        )
    return accepted
