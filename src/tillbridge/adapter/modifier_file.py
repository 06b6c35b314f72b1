"""What each modifier offers, for tills whose export only names them: a person writes it once.

A CSV with `modifier,option,price` and optional `min,max`, a row for each option.
"""

from dataclasses import dataclass
from pathlib import Path

from tillbridge.adapter.csv_export import CsvExport
from tillbridge.adapter.failures import ExportUnreadable
from tillbridge.model.catalogue import AddOn, AddOnGroup, BadRow
from tillbridge.model.money import to_minor

COLUMNS = ("modifier", "option", "price", "min", "max")


@dataclass(frozen=True, slots=True)
class Modifiers:
    """Add-on groups by the name of their modifier, and their add-ons."""

    groups: dict[str, AddOnGroup]
    add_ons: dict[str, AddOn]
    bad_rows: tuple[BadRow, ...] = ()


def read_modifiers(path: Path, currency: str) -> Modifiers:
    """Read `modifier,option,price[,min,max]`; a row for each option. Raises ExportUnreadable."""
    table = CsvExport(path).read()
    header = [name.casefold() for name in table.header]
    if missing := [name for name in COLUMNS[:3] if name not in header]:
        raise ExportUnreadable(
            f"{table.name} has no column {', '.join(missing)}.",
            place=f"{table.name}, row 1",
            fix=f"Its columns are {', '.join(COLUMNS)}; the last two may be left out.",
        )
    found = Modifiers({}, {})
    bad_rows = []
    for number, fields in table.rows:
        row = dict(zip(header, fields, strict=False))
        try:
            _take(found, row, currency)
        except ValueError as failure:
            bad_rows.append(
                BadRow(
                    place=table.place(number),
                    text=f"{failure}.",
                    fix="Correct the row: modifier,option,price,min,max.",
                )
            )
    return Modifiers(found.groups, found.add_ons, tuple(bad_rows))


def _take(found: Modifiers, row: dict[str, str], currency: str) -> None:
    name, option = _words(row.get("modifier")), _words(row.get("option"))
    if not name or not option:
        msg = "It names no modifier or no option"
        raise ValueError(msg)
    add_on = AddOn(f"{name}/{option}", option, to_minor(row.get("price") or "0", currency))
    if add_on.price < 0:
        msg = f"{option!r} lowers the price, which the ordering service cannot take"
        raise ValueError(msg)
    group = found.groups.get(name) or AddOnGroup(
        external_id=name,
        name=name,
        min_select=_number(row.get("min")),
        max_select=_number(row.get("max")),
        required=_number(row.get("min")) > 0,
    )
    found.add_ons[add_on.external_id] = add_on
    found.groups[name] = AddOnGroup(
        group.external_id,
        group.name,
        group.min_select,
        group.max_select,
        group.required,
        tuple(dict.fromkeys((*group.add_ons, add_on.external_id))),
    )


def _words(text: str | None) -> str:
    return " ".join((text or "").split())


def _number(text: str | None) -> int:
    words = (text or "").strip()
    if not words:
        return 0
    if not words.isdecimal():
        msg = f"{words!r} is no number"
        raise ValueError(msg)
    return int(words)
