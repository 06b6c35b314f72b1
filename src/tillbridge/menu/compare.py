"""A reading compared with what the service has: what differs, and what the guard must know.

Three comparisons, one result: of a whole export, of a reading given as changes, and of availability
alone. They read the ledger (run them in its reader) and otherwise only compute. The comparison of
changes looks only at items that the changes touch, and finds what the whole one finds.
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
from tillbridge.menu.guard import FEW, Source, Totals, left_by_category, wanted_counts
from tillbridge.menu.guard_rules import plain
from tillbridge.menu.overlay import Overlay, lay, next_change
from tillbridge.model.catalogue import BadRow, Catalogue, CatalogueChanges, Item
from tillbridge.model.export_facts import ExportFacts, FileEncoding
from tillbridge.model.texts import printable

SOURCE = "menu_source"  # the fact: what the accepted menu was read from
_LONGEST_PLACE = 200


@dataclass(frozen=True, slots=True)
class Record:
    """Where an item comes from: as the export has it, and the record's fingerprint."""

    from_export: Item
    fingerprint: int | None


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
    """Compare a reading with what the service has; the staff's overrides lie over both."""
    overlay = _with_overrides(connection, store, overlay)
    if isinstance(reading, Catalogue):
        found = compare_whole(connection, store, reading, overlay)
    else:
        found = compare_changes(connection, store, reading, overlay)
    return replace(found, hold=get_hold(connection, store))


def compare_whole(
    connection: Connection, store: str, export: Catalogue, overlay: Overlay
) -> Comparison:
    """Compare a whole export with everything the service has."""
    accepted = menu.all_items(connection, store)
    refused = refused_items(connection, store)
    records: dict[str, Record] = {}
    for external_id, item in export.items.items():
        record = Record(item, fingerprint_of(export, item))
        if _is_refused(refused.get(external_id), record):
            if external_id not in accepted:
                continue
            known = accepted[external_id]
            record = Record(known.pos_item, known.fingerprint)
        records[external_id] = record
    return _compared(
        connection,
        store,
        accepted,
        records,
        overlay,
        parts=(menu.all_parts(connection, store), _parts_of(export)),
        facts=export.facts,
        bad_rows=export.bad_rows,
        items_read=len(export.items),
        no_longer_refused=tuple(refused.keys() - export.items.keys()),
        whole=True,
        source=source_of(export),
    )


def compare_changes(
    connection: Connection, store: str, reading: CatalogueChanges, overlay: Overlay
) -> Comparison:
    """Compare what a reading changed, and what lies over the rest."""
    fresh = reading.fresh
    refused = refused_items(connection, store)
    accepted = menu.items_by_id(connection, store, fresh.items)
    doubled = tuple(_doubled(fresh, accepted, refused, reading.unseen))
    doubled_ids = {row.external_id for row in doubled}
    unseen = menu.items_by_fingerprint(connection, store, reading.unseen)
    unrecorded = menu.unrecorded_items(connection, store)
    overlaid = touched_by(connection, store, overlay)
    records = {
        external_id: Record(item, fingerprint_of(fresh, item))
        for external_id, item in fresh.items.items()
        if external_id not in doubled_ids
    }
    gone = {
        external_id
        for external_id in unseen.keys() | unrecorded.keys()
        if external_id not in fresh.items and not _refused_is_there(refused, external_id, reading)
    }
    accepted |= unseen | unrecorded | overlaid
    for external_id, known in accepted.items():
        if external_id not in records and external_id not in gone:
            records[external_id] = Record(known.pos_item, known.fingerprint)
    fresh_parts = _parts_of(fresh)
    return _compared(
        connection,
        store,
        accepted,
        records,
        overlay,
        parts=(menu.parts_like(connection, store, fresh_parts), fresh_parts),
        facts=fresh.facts,
        bad_rows=(*fresh.bad_rows, *doubled),
        items_read=reading.items_read,
        no_longer_refused=tuple(
            external_id
            for external_id, refusal in refused.items()
            if refusal.fingerprint in reading.unseen
        ),
        source=source_of(fresh),
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
        records=_as_known(accepted),
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


def _compared(  # noqa: PLR0913 -- the one place where a comparison comes together
    connection: Connection,
    store: str,
    accepted: Mapping[str, AcceptedItem],
    records: Mapping[str, Record],
    overlay: Overlay,
    *,
    parts: tuple[Parts, Parts],
    facts: ExportFacts,
    bad_rows: tuple[BadRow, ...],
    items_read: int,
    no_longer_refused: tuple[str, ...],
    source: Source,
    whole: bool = False,
) -> Comparison:
    had, has = parts
    acknowledged = _catalogue({key: each.item for key, each in accepted.items()}, had)
    current = _catalogue(
        {
            key: lay(each.from_export, overlay, at_service=_at_service(accepted, key))
            for key, each in records.items()
        },
        has,
        bad_rows,
        facts,
    )
    doubtful = frozenset(key for key, each in accepted.items() if each.doubtful)
    changes = diff(acknowledged, current, doubtful=doubtful)
    return Comparison(
        changes=changes,
        acknowledged=acknowledged,
        current=current,
        totals=_totals(connection, store, changes, source),
        menus=len(menu.menu_ids(connection, store) | has.menus.keys()),
        # What a bad row stands for keeps its record: a full push sends it as it was.
        records={**_as_known(accepted), **records},
        refreshed=tuple(_refreshed(accepted, records, changes, bad_rows)),
        no_longer_refused=no_longer_refused,
        bad_rows=bad_rows,
        items_read=items_read,
        next_change=next_change(overlay, [each.from_export for each in records.values()]),
        whole=whole,
        source=source,
    )


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


def _is_refused(refusal: Refusal | None, record: Record) -> bool:
    return refusal is not None and refusal.fingerprint == record.fingerprint


def _refused_is_there(
    refused: Mapping[str, Refusal], external_id: str, reading: CatalogueChanges
) -> bool:
    return external_id in refused and refused[external_id].fingerprint not in reading.unseen


def _as_known(accepted: Mapping[str, AcceptedItem]) -> dict[str, Record]:
    return {key: Record(each.pos_item, each.fingerprint) for key, each in accepted.items()}


def _at_service(accepted: Mapping[str, AcceptedItem], external_id: str) -> Item | None:
    known = accepted.get(external_id)
    return None if known is None else known.item


def _refreshed(
    accepted: Mapping[str, AcceptedItem],
    records: Mapping[str, Record],
    changes: Diff,
    bad_rows: Iterable[BadRow],
) -> Iterator[AcceptedItem]:
    bad = {row.external_id for row in bad_rows}
    for external_id, record in records.items():
        known = accepted.get(external_id)
        if known is None or external_id in bad or external_id in changes.changed:
            continue
        now = AcceptedItem.of(known.item, record.from_export, record.fingerprint)
        if now != known:
            yield now


def _totals(connection: Connection, store: str, changes: Diff, source: Source) -> Totals:
    left = {key: count for key, count in left_by_category(changes).items() if count > 1}
    names = menu.parts_like(connection, store, Parts(categories=dict.fromkeys(left))).categories  # type: ignore[arg-type] # only the ids are looked at
    fields, kinds = wanted_counts(changes)
    return Totals(
        items=menu.item_count(connection, store),
        category_items={
            key: menu.count_in_category(connection, store, key, at_most=count + 1)
            for key, count in left.items()
        },
        category_names={key: category.name for key, category in names.items()},
        having={each: menu.count_having(connection, store, each) for each in fields},
        parts={each: menu.count_parts(connection, store, each) for each in kinds},
        twins=_twins(connection, store, changes),
        accepted_from=accepted_source(connection, store),
        read_from=source,
    )


def _twins(connection: Connection, store: str, changes: Diff) -> frozenset[str]:
    """Return the added items that have the name of an accepted one which stays."""
    if len(changes.added) <= FEW:
        return frozenset()
    there = {
        plain(name)
        for external_id, name in menu.item_names(connection, store)
        if external_id not in changes.removed
    }
    return frozenset(key for key, item in changes.added.items() if plain(item.name) in there)


def source_of(export: Catalogue) -> Source:
    """Return what a menu was read from."""
    return Source(export.ends_with_newline, export.facts.encodings)


def accepted_source(connection: Connection, store: str) -> Source:
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


def _catalogue(
    items: Mapping[str, Item],
    parts: Parts,
    bad_rows: tuple[BadRow, ...] = (),
    facts: ExportFacts | None = None,
) -> Catalogue:
    return Catalogue(
        items=items,
        categories=parts.categories,
        add_ons=parts.add_ons,
        addon_groups=parts.addon_groups,
        menus=parts.menus,
        bad_rows=bad_rows,
        facts=facts or ExportFacts(),
    )


def _parts_of(export: Catalogue) -> Parts:
    return Parts(export.categories, export.add_ons, export.addon_groups, export.menus)


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
