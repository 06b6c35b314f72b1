"""Which column of a menu's export is which: its header, and a guess."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.xlsx_export import XlsxExport
from tillbridge.core.i18n import _
from tillbridge.pos.folder.cells import alike
from tillbridge.pos.folder.items import REQUIRED
from tillbridge.pos.folder.mapping import looks_like
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.table_file import TableSource, read_table

# By our name: what people call it, and the words that tills have for it, the likeliest first.
_KNOWN: Mapping[str, tuple[str, str]] = {
    "external_id": (
        _("Number or id"),
        r"external.?id|plu|sku|id|article|artikel|code|item.?no|n[ro]",
    ),
    "name": (_("Name"), r"name|title|item|dish|product|bezeichnung|nom|nombre"),
    "price": (_("Price"), r"price|preis|prix|precio|prezzo|amount"),
    "category": (_("Category"), r"category|categor|kategorie|dep|group|gruppe|section"),
    "description": (_("Description"), r"description|beschreibung|details|text"),
    "available": (_("On sale (yes or no)"), r"available|availability|on.?sale|active|enabled"),
    "image_url": (_("Picture (web address)"), r"image|picture|photo|bild"),
    "variant_name": (_("Size"), r"variant|size|groesse|größe|taille"),
    "parent_id": (_("Id of the item that a size belongs to"), r"parent"),
    "addon_groups": (_("Add-on groups"), r"addon|add.on|modifier|option"),
    "stock": (_("Stock"), r"stock|quantity|bestand"),
}


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A column of ours: what people call it, and which of the file's it is ("" for none)."""

    name: str
    label: str
    chosen: str
    required: bool


@dataclass(frozen=True, slots=True)
class ExportColumns:
    """The columns of an export, and which of ours they are. `missing`: a required one is not."""

    header: tuple[str, ...]
    choices: tuple[ColumnChoice, ...]
    missing: bool


def columns_of(options: FolderOptions, base_dir: Path) -> ExportColumns | None:
    """Return the columns of the menu's export (blocking).

    None for what has no columns to choose, or cannot be read, which reading the menu then says.
    """
    if options.menu is None or options.format is not None:
        return None
    try:
        header = _header(base_dir / options.menu, options)
    except ExportUnreadable:
        return None
    if len(header) < 2 or looks_like(header):  # one column, or a format with a name
        return None
    mapping = {str(ours): str(theirs) for ours, theirs in options.columns.items()}
    own = {alike(name): name for name in header}
    found = {ours: own.get(alike(mapping.get(ours, ours)), "") for ours in _KNOWN}
    required = {each for each in REQUIRED if (options.ids, each) != ("derived", "external_id")}
    missing = any(not found[ours] for ours in required)
    guessed = _guess(header, found) if missing else found
    choices = [
        ColumnChoice(ours, label, guessed[ours], ours in required)
        for ours, (label, _words) in _KNOWN.items()
    ]
    return ExportColumns(tuple(header), tuple(choices), missing)


def _header(path: Path, options: FolderOptions) -> Sequence[str]:
    if path.suffix.lower() == ".json":
        return ()
    if path.suffix.lower() == ".xlsx":
        sheets = XlsxExport(path).read()
        sheet = sheets.get(options.sheet or "") or next(iter(sheets.values()), None)
        rows = sheet.rows if sheet is not None else ()
        filled = ([cell.strip() for cell in row if cell.strip()] for _number, row in rows)
        return next((names for names in filled if len(names) > 1), ())
    source = TableSource(path, (), tuple(_KNOWN), {}, options.encoding, options.delimiter)
    return [name for name in read_table(source, lambda table: table.header) if name]


def _guess(header: Sequence[str], found: Mapping[str, str]) -> dict[str, str]:
    """Return the likeliest column for each of ours that was not found; each serves once."""
    guessed = dict(found)
    for ours, (_label, words) in _KNOWN.items():
        if not guessed[ours]:
            free = [name for name in header if name not in guessed.values()]
            guessed[ours] = next(
                (
                    name
                    for word in words.split("|")
                    for name in free
                    if re.search(rf"(?<![^\W_]){word}", name, re.IGNORECASE)
                ),
                "",
            )
    return guessed
