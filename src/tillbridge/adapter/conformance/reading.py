"""Checks of what an adapter reads: the menu, the tables, what is sold out and until when."""

import os
import sys
import time
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tillbridge.adapter.conformance.content import SAMPLE_MENU
from tillbridge.adapter.conformance.rig import CannotDo, Rig
from tillbridge.adapter.conformance.subject import (
    NAMES,
    ODD_PRICES,
    Subject,
    Violation,
    able,
    can,
    named_items,
    plain_items,
    priced_items,
    reader,
)
from tillbridge.adapter.failures import ExportUnreadable, PosFailure
from tillbridge.adapter.protocols import ReadsAvailability, ReadsTables
from tillbridge.model.catalogue import AddOn, Catalogue, Item
from tillbridge.model.restaurant import Table

MANY = 5000
_CUTS = 32


def reads_what_is_sold(subject: Subject) -> str:
    """Read a plain menu twice: what is sold, in the till's order, the same both times."""
    with subject.till() as rig:
        sold = rig.sell(plain_items(), "EUR")
        read = reader(rig, rig.open())
        first, second = read(), read()
        _same(sold, first)
        if first != second:
            raise Violation(
                "Two readings of the same export differ.",
                fix="Make reading depend on the export alone: no clock, no random ids.",
            )
        return f"{len(sold)} items, twice the same"


def keeps_names(subject: Subject) -> str:
    """Read names in many scripts, with quotes and separators in them."""
    with subject.till() as rig:
        sold = rig.sell(named_items(NAMES), "EUR")
        _same(sold, reader(rig, rig.open())())
        return f"{len(sold)} names"


def keeps_prices_exact(subject: Subject) -> str:
    """Read prices that binary fractions get wrong."""
    return _prices(subject, ODD_PRICES, "EUR")


def knows_currencies_without_decimals(subject: Subject) -> str:
    """Read prices in yen: 1500 is 1500, not 150000."""
    return _prices(subject, (0, 1, 80, 1500, 123_456), "JPY")


def knows_currencies_with_three_decimals(subject: Subject) -> str:
    """Read prices in Kuwaiti dinars: 1.500 is 1500."""
    return _prices(subject, (0, 1, 5, 250, 1500, 12_345), "KWD")


def reads_variants(subject: Subject) -> str:
    """Read items with variants: each with its id, name and price."""
    with subject.till() as rig:
        sold = rig.sell_menu(SAMPLE_MENU, "EUR")
        count = sum(len(item.variants) for item in sold.items.values())
        if not count:
            raise CannotDo("This till has no variants.")
        _same(list(sold.items.values()), reader(rig, rig.open())())
        return f"{count} variants"


def reads_add_ons(subject: Subject) -> str:
    """Read what goes with items: the groups of add-ons, and the price of each add-on."""
    with subject.till() as rig:
        sold = rig.sell_menu(SAMPLE_MENU, "EUR")
        if not sold.add_ons:
            raise CannotDo("This till has no add-ons.")
        menu = reader(rig, rig.open())()
        _no_bad_rows(menu)
        wanted, found = _choices(sold), _choices(menu)
        for name in (*wanted, *(each for each in found if each not in wanted)):
            if wanted.get(name) != found.get(name):
                raise Violation(
                    f"{name}: the till has {wanted.get(name, 'no such thing')}; the adapter reads"
                    f" {found.get(name, 'no such thing')}.",
                    fix="Read add-ons, their groups, and which items each group goes with.",
                )
        return f"{len(sold.add_ons)} add-ons"


def _choices(menu: Catalogue) -> Mapping[str, str]:
    """Return in words what can be chosen, by what it is."""
    extras: list[AddOn | Item] = list(menu.add_ons.values())
    extras += [item for item in menu.items.values() if item.product_type == "addon"]
    found = {
        f"The add-on {each.external_id}": f"{each.name!r} at {_price(each.price)}"
        for each in extras
    }
    for group in menu.addon_groups.values():
        offers = ", ".join(group.add_ons)
        least, most = max(group.min_select, int(group.required)), group.max_select
        found[f"The group {group.external_id}"] = f"{group.name!r}, {least} to {most} of {offers}"
    for item in menu.items.values():
        if item.addon_groups:
            found[f"What goes with {item.external_id}"] = ", ".join(item.addon_groups)
    return found


def keeps_ids(subject: Subject) -> str:
    """Export the same again, in another order and with a new name: every id stays."""
    with subject.till() as rig:
        rig.sell(plain_items(6), "EUR")
        read = reader(rig, rig.open())
        before = read()
        _no_bad_rows(before)
        if not before.items:
            raise Violation("The till sells 6 items, the adapter reads none.", fix="Read them all.")
        rig.reorder()
        _same_ids(before, read(), "in another order")
        renamed = next(iter(before.items))
        rig.rename(renamed, "Another name")
        after = read()
        _same_ids(before, after, "with a new name")
        if after.items[renamed].name != "Another name":
            raise Violation(
                f"The item {renamed} kept its old name, {after.items[renamed].name!r}.",
                fix="Read the export anew each time.",
            )
        return "order and name changed, ids stayed"


def reads_five_thousand_items(subject: Subject) -> str:
    """Read a large menu, whole."""
    with subject.till() as rig:
        sold = rig.sell(plain_items(MANY), "EUR")
        _same(sold, reader(rig, rig.open())())
        return f"{len(sold)} items"


def distrusts_half_an_export(subject: Subject) -> str:
    """Cut each export off at many places: no item is read that the whole does not have."""
    with subject.till() as rig:
        rig.sell(plain_items(12), "EUR")
        read = reader(rig, rig.open())
        whole = read()
        paths = rig.exports()
        places = 0
        for path in paths:
            content = path.read_bytes()
            for cut in _places(content):
                path.write_bytes(content[:cut])
                _believes_no_half(read, whole, path, content[:cut])
                places += 1
            path.write_bytes(content)
        if read() != whole:
            raise Violation(
                "After the export was whole again, the reading differs from the first.",
                fix="Keep nothing of a reading that failed.",
            )
        return f"cut at {places} places"


def reads_tables(subject: Subject) -> str:
    """Read the floor plan."""
    with subject.till() as rig:
        pos = rig.open()
        able(pos, ReadsTables)
        wanted = rig.furnish(
            [Table("t1", "Table 1", 4, "Hall"), Table("t2", "Smörgås", 2, "Garden")]
        )
        found = able(rig.open(), ReadsTables).read_tables()
        if tuple(found.tables) != tuple(wanted) or found.bad_rows:
            raise Violation(
                f"The till has {_tables(wanted)}; the adapter reads {_tables(found.tables)}.",
                fix="Return every table with id, name, seats and zone as the till has them.",
            )
        return f"{len(found.tables)} tables"


def _prices(subject: Subject, prices: Sequence[int], currency: str) -> str:
    with subject.till() as rig:
        sold = rig.sell(priced_items(prices), currency)
        _same(sold, reader(rig, rig.open(currency))())
        return f"{len(sold)} prices in {currency}"


def _no_bad_rows(found: Catalogue) -> None:
    if found.bad_rows:
        row = found.bad_rows[0]
        raise Violation(
            f"A good row is called bad: {row.place}: {row.text}",
            fix="The till wrote this row as it should: correct how it is read.",
            of_row=row.text,
        )


def _same(sold: Sequence[Item], found: Catalogue) -> None:
    _no_bad_rows(found)
    wanted = [_essence(item) for item in sold]
    got = [_essence(item) for item in found.items.values() if item.product_type != "addon"]
    if wanted == got:
        return
    if sorted(wanted) == sorted(got):
        raise Violation("The items are in another order.", fix="Keep the till's order.")
    odd = next((pair for pair in zip(wanted, got, strict=False) if pair[0] != pair[1]), None)
    if odd is None:
        raise Violation(
            f"The till sells {len(wanted)} items, the adapter reads {len(got)}.",
            fix="Read every item once: all pages of a list that comes in pages.",
        )
    raise Violation(
        f"The till sells {_described(odd[0])}; the adapter reads {_described(odd[1])}.",
        fix="Prices are whole minor units of the store's currency (context.currency), made with"
        " decimal; ids and names are the till's own.",
    )


_Essence = tuple[str, str, str, bool, tuple[tuple[str, str, str], ...]]


def _essence(item: Item) -> _Essence:
    variants = tuple(
        (each.external_id, each.variant_name, _price(each.price)) for each in item.variants
    )
    return (item.external_id, item.name, _price(item.price), item.available, variants)


def _price(price: object) -> str:
    return str(price) if type(price) is int else f"{price!r} (a {type(price).__name__})"


def _described(essence: _Essence) -> str:
    sizes = ", ".join(f"{each[0]} {each[1]!r} at {each[2]}" for each in essence[4])
    off = "" if essence[3] else ", sold out"
    return f"{essence[0]} {essence[1]!r} at {essence[2]}{off}" + (f" ({sizes})" if sizes else "")


def _tables(tables: Sequence[Table]) -> str:
    return ", ".join(f"{each.external_id} {each.name!r}" for each in tables) or "none"


def _same_ids(before: Catalogue, after: Catalogue, how: str) -> None:
    if set(before.items) != set(after.items):
        moved = sorted(set(before.items) ^ set(after.items))
        raise Violation(
            f"Exported again {how}, the ids differ: {', '.join(moved[:4])}.",
            fix="Take as external id what the till never changes (its own key), not a row number"
            " or a name. Another id is another item: orders of the old one fail.",
        )
    other = [key for key in before.items if before.items[key].name != after.items[key].name]
    if len(other) > 1:
        names = (menu.items[other[0]].name for menu in (before, after))
        raise Violation(
            f"Exported again {how}, the id {other[0]} is another item: {', then '.join(names)}.",
            fix="Take as external id what the till never changes (its own key), not a row number.",
        )


def _places(content: bytes) -> Sequence[int]:
    """Return where to cut: nothing, all but one byte, and places between."""
    step = max(1, len(content) // _CUTS)
    return sorted({0, 1, *range(0, len(content), step), max(0, len(content) - 1)})


def _believes_no_half(
    read: Callable[[], Catalogue], whole: Catalogue, path: Path, part: bytes
) -> None:
    try:
        found = read()
    except (ExportUnreadable, PosFailure):
        return
    for key, item in found.items.items():
        if whole.items.get(key) != item:
            raise Violation(
                f"{path.name} cut after {len(part)} bytes gives {_described(_essence(item))}, which"
                " the whole does not have.",
                fix="Raise ExportUnreadable for an export that ends in the middle of a record.",
            )
    missing = len(whole.items) - len(found.items)
    if missing and not found.bad_rows and not part.endswith((b"\n", b"\r")):
        raise Violation(
            f"{path.name} cut after {len(part)} bytes loses {missing} items without a word.",
            fix="Raise ExportUnreadable for an export that ends in the middle of a record.",
        )


# -- what is sold out, and until when

_MINUTE_MS = 60_000
_KATHMANDU_MS = (5 * 60 + 45) * _MINUTE_MS
_END_OF_TIME_MS = 253_402_300_800_000  # the year 10000


def reports_sold_out_items(subject: Subject) -> str:
    """Sell out an item: the next reading says so, and says nothing else."""
    with subject.till() as rig:
        sold = rig.sell(plain_items(), "EUR")
        gone = sold[1].external_id
        pos = rig.open()
        read = reader(rig, pos) if can(pos, "catalogue") else None
        rig.sell_out(gone)
        if read is None:
            off = set()
        else:
            off = {key for key, item in read().items.items() if not item.available}
        if can(pos, "availability"):
            availability = able(pos, ReadsAvailability).read_availability().items
            off |= {key for key, state in availability.items() if not state.available}
        if read is not None and gone not in read().items:
            raise Violation(
                f"The item {gone} is sold out, and is missing from the menu: the bridge would take"
                " it for deleted.",
                fix="Read every item the till has; available=False says that it is sold out.",
                method="read_catalogue",
            )
        for until in _untils(rig, pos, gone):
            if not _plausible(until):
                raise Violation(
                    f"{gone} is sold out until {_instant(until)}.",
                    fix="`until` is milliseconds since 1970 in UTC, or None where the till says no"
                    " end.",
                )
        if off != {gone}:
            raise Violation(
                f"Sold out is {gone}; the adapter says {', '.join(sorted(off)) or 'nothing'}.",
                fix="Read the till's own mark of what is sold out, by external id.",
            )
        return "one item off, the others on"


def reports_until_when(subject: Subject) -> str:
    """Sell out an item for some hours: its end is reported, whatever this machine's time zone."""
    with time_zone_of_kathmandu(), subject.till() as rig:
        sold = rig.sell(plain_items(), "EUR")
        gone = sold[1].external_id
        until = (datetime.now(UTC) + timedelta(hours=3)).replace(second=0, microsecond=0)
        pos = rig.open()
        rig.sell_out_until(gone, until)
        wanted = int(until.timestamp() * 1000)
        found = _untils(rig, pos, gone)
        if not found:
            raise Violation(
                f"{gone} is sold out until {_instant(wanted)}; the adapter says no end.",
                fix="Put the end into Availability.until, or into the item's snooze_until.",
            )
        if any(each != wanted for each in found):
            odd = next(each for each in found if each != wanted)
            raise Violation(
                f"{gone} is sold out until {_instant(wanted)}; the adapter says {_instant(odd)}."
                f"{_guess(wanted, odd)}",
                fix="`until` is milliseconds since 1970 in UTC: int(moment.timestamp() * 1000) of"
                " a datetime that knows its zone.",
            )
        return f"until {until:%H:%M} UTC"


@contextmanager
def time_zone_of_kathmandu() -> Iterator[None]:
    """Let this machine stand elsewhere: a time without a zone is then seen to be wrong."""
    before = os.environ.get("TZ")
    # By name: Node and Java take a rule such as NPT-5:45 for UTC. libc does so with a name that
    # this machine does not know.
    known = "Asia/Kathmandu" in zoneinfo.available_timezones()
    os.environ["TZ"] = "Asia/Kathmandu" if known else "NPT-5:45"
    _use_zone()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        _use_zone()


def _use_zone() -> None:
    if sys.platform != "win32":
        time.tzset()


def _untils(rig: Rig, pos: object, external_id: str) -> Sequence[object]:
    """Return each end that is read of an item's being sold out."""
    ends: list[object] = []
    if can(pos, "catalogue"):
        item = reader(rig, pos)().items.get(external_id)
        ends.append(None if item is None else item.snooze_until)
    if can(pos, "availability"):
        state = able(pos, ReadsAvailability).read_availability().items.get(external_id)
        ends.append(None if state is None else state.until)
    return [each for each in ends if each is not None]


def _plausible(until: object) -> bool:
    return type(until) is int and time.time() * 1000 < until < _END_OF_TIME_MS


def _instant(until: object) -> str:
    if type(until) is not int:
        return f"{until!r} (a {type(until).__name__})"
    try:
        return f"{datetime.fromtimestamp(until / 1000, UTC):%Y-%m-%d %H:%M} UTC ({until})"
    except (ValueError, OverflowError, OSError):
        return str(until)


def _guess(wanted: int, found: object) -> str:
    if type(found) is not int:
        return ""
    if abs(found * 1000 - wanted) <= _MINUTE_MS:
        return " It is in seconds."
    if abs(found + _KATHMANDU_MS - wanted) <= _MINUTE_MS:
        return " A time without a zone was taken for this machine's."
    return ""
