"""What each modifier offers, for tills whose export only names them: a person writes it once.

A CSV with `modifier,option,price` and optional `min,max`, a row for each option. A row with a name
and no option is one that is not filled in yet; one with the option `-` is a modifier that is left
out on purpose. `tillbridge adapter modifiers STORE` writes the rows with the names.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from tillbridge.adapter.csv_export import CsvExport
from tillbridge.adapter.failures import ExportUnreadable, RowError
from tillbridge.adapter.prices import PriceReader
from tillbridge.adapter.texts import _, ngettext, one_line
from tillbridge.model.catalogue import AddOn, AddOnGroup, BadRow, costs_something
from tillbridge.model.export_facts import ExportFacts, ExportWarning
from tillbridge.model.money import DecimalSign

COLUMNS = ("modifier", "option", "price", "min", "max")
NOT_OFFERED = "-"
"""The option of a modifier that is left out on purpose."""

_NEEDED = 3
_NAMES_SHOWN = 3
_NEAR = 0.8


class UnreadableModifier(ValueError):
    """A modifier of an item whose rows in the file are wrong; `place` is the first of them."""

    def __init__(self, name: str, place: str) -> None:
        super().__init__(name)
        self.name = name
        self.place = place


@dataclass(frozen=True, slots=True)
class Modifiers:
    """Add-on groups by the name of their modifier, and their add-ons.

    `refused` names the modifiers that cannot be read, with the place of the error: an item with one
    stays as it was, since it would be sold without a choice that it needs. `left_out` names those
    that are left out on purpose. `name` is the name of the file, "" without one.
    """

    groups: Mapping[str, AddOnGroup] = field(default_factory=dict)
    add_ons: Mapping[str, AddOn] = field(default_factory=dict)
    bad_rows: tuple[BadRow, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    name: str = ""
    facts: ExportFacts = field(default_factory=ExportFacts)
    ends_with_newline: bool | None = None
    _by_key: Mapping[str, str] = field(default_factory=dict)

    @property
    def meaning(self) -> tuple[object, ...]:
        """Return what of it decides what an item is, as values for `KnownRecords`."""
        groups = [(name, group.external_id) for name, group in self.groups.items()]
        priced = [name for name, each in self.groups.items() if costs_something(each, self.add_ons)]
        return (tuple(groups), tuple(priced), tuple(self.refused))

    def last_lines_end(self, *, export: bool | None) -> bool | None:
        """Return whether the last lines of the `export` and of this file end, if known."""
        known = [each for each in (export, self.ends_with_newline) if each is not None]
        return all(known) if known else None

    def group_of(self, modifier: str) -> AddOnGroup | None:
        """Return the group of a modifier by its name in the export; None if it has no options.

        Raises UnreadableModifier.
        """
        name = self._by_key.get(_key(modifier), "")
        if name in self.refused:
            raise UnreadableModifier(name, self.refused[name])
        return self.groups.get(name)

    def facts_for(
        self, named: Mapping[str, Sequence[str]], *, export: str, store: str
    ) -> ExportFacts:
        """Return which modifiers named in the `export` of a store are missing.

        `named` contains every modifier in the export, with the names of its items.
        """
        missing = [name for name in named if self._is_missing(name)]
        offered = [name for name in missing if named[name]]
        if self.name:
            warnings = tuple(self._warning(name, named[name], export, store) for name in offered)
        else:
            warnings = _without_file(offered, named, export, store)
        return ExportFacts(not_offered=tuple(missing), warnings=warnings).with_more([self.facts])

    def _is_missing(self, modifier: str) -> bool:
        name = self._by_key.get(_key(modifier), "")
        return not (name in self.groups or name in self.refused or name in self.left_out)

    def _warning(
        self, modifier: str, items: Sequence[str], export: str, store: str
    ) -> ExportWarning:
        near = get_close_matches(_key(modifier), self._by_key, n=1, cutoff=_NEAR)
        if near and near[0] != _key(modifier):
            text = ngettext(
                '{items} offers the modifier "{modifier}", which {file} does not have. '
                'Is it "{near}" there? Guests cannot choose it.',
                '{items} offer the modifier "{modifier}", which {file} does not have. '
                'Is it "{near}" there? Guests cannot choose it.',
                len(items),
            )
        else:
            text = ngettext(
                '{items} offers the modifier "{modifier}", for which {file} has no options. '
                "Guests cannot choose it.",
                '{items} offer the modifier "{modifier}", for which {file} has no options. '
                "Guests cannot choose it.",
                len(items),
            )
        places = {"items": _listed(items), "modifier": modifier, "file": self.name}
        if near:
            places["near"] = self._by_key[near[0]]
        return ExportWarning(export, text.format(**places), _fix(store))


def _without_file(
    modifiers: Sequence[str], named: Mapping[str, Sequence[str]], export: str, store: str
) -> tuple[ExportWarning, ...]:
    """Return the one warning of an export that names modifiers, where there is no file at all."""
    if not modifiers:
        return ()
    items = tuple(dict.fromkeys(item for name in modifiers for item in named[name]))
    text = _(
        "Nothing says what can be chosen for the modifiers {modifiers}, which {items} have. "
        "They are sold without."
    ).format(modifiers=_listed(modifiers), items=_listed(items))
    return (ExportWarning(export, text, _fix(store)),)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return _("{names} and {n} more").format(names=shown, n=more) if more > 0 else shown


def _fix(store: str) -> str:
    return _(
        'Run: tillbridge adapter modifiers {store}. Then fill in the options; "{mark}" '
        "as the option leaves a modifier out."
    ).format(store=store, mark=NOT_OFFERED)


def read_modifiers(path: Path, currency: str, *, decimal: DecimalSign | None = None) -> Modifiers:
    """Read `modifier,option,price[,min,max]`, one row for each option. Raises ExportUnreadable.

    If any row of a modifier is wrong, the whole modifier is refused: without one of its options, or
    with a wrong number of choices, guests could order what the kitchen cannot make.
    """
    table = CsvExport(path).read()
    header = [name.casefold() for name in table.header]
    if missing := [name for name in COLUMNS[:_NEEDED] if name not in header]:
        raise ExportUnreadable(
            _("{name} has no column {missing}.").format(
                name=table.name, missing=", ".join(missing)
            ),
            place=table.place(1),
            fix=_("Its columns are {columns}; the last two may be left out.").format(
                columns=", ".join(COLUMNS)
            ),
        )
    price_at = header.index("price")
    written = [fields[price_at] for _number, fields in table.rows if len(fields) > price_at]
    prices = PriceReader.of(written, currency, decimal)
    drafts: dict[str, _Draft] = {}
    keys: dict[str, str] = {}
    refused: dict[str, str] = {}
    bad_rows: list[BadRow] = []

    def refuse(name: str, number: int, bad: RowError) -> None:
        place = table.place(number)
        bad_rows.append(bad.at(place, name))
        if name:
            refused.setdefault(name, place)

    for number, fields in table.rows:
        row = dict(zip(header, fields, strict=False))
        name = one_line(row.get("modifier", ""))
        # The same name in other capitals is the same modifier; the first spelling counts.
        name = keys.setdefault(_key(name), name)
        try:
            _check_width(fields, len(header))
            if not name:
                raise _nameless()
            drafts.setdefault(name, _Draft(name, number)).add(row, prices)
        except RowError as bad:
            refuse(name, number, bad)
    for name, draft in drafts.items():
        try:
            if name not in refused:
                draft.check()
        except RowError as bad:
            refuse(name, draft.number, bad)
    good = [each for each in drafts.values() if each.options and each.name not in refused]
    return Modifiers(
        ends_with_newline=table.ends_with_newline,
        groups={draft.name: draft.group() for draft in good},
        add_ons={each.external_id: each for draft in good for each in draft.options.values()},
        bad_rows=tuple(bad_rows),
        refused=refused,
        left_out=frozenset(name for name, draft in drafts.items() if draft.left_out),
        name=table.name,
        facts=table.facts,
        _by_key=keys,
    )


def _nameless() -> RowError:
    return RowError("", "", _("It names no modifier."), _("Fill in the column modifier."))


def _check_width(fields: Sequence[str], header: int) -> None:
    width = len(fields)
    # Where it has min and no max, "1,50" for a price may have become a price and a min.
    if any(map(str.strip, fields[header:])) or _NEEDED < width < header:
        raise RowError(
            "",
            "",
            _("The row has {width} cells, and the header has {header}.").format(
                width=width, header=header
            ),
            _('A price with a comma must stand in quotation marks: "1,50".'),
        )


@dataclass(slots=True)
class _Draft:
    """A modifier in the making: its options with their rows, and how many must be chosen."""

    name: str
    number: int
    options: dict[str, AddOn] = field(default_factory=dict)
    least: int | None = None
    most: int | None = None
    left_out: bool = False

    def add(self, row: Mapping[str, str], prices: PriceReader) -> None:
        """Add what a row says. Raises RowError."""
        option = one_line(row.get("option", ""))
        if option == NOT_OFFERED:
            self.left_out = True
            return
        self.least = _agreed("min", self.least, row)
        self.most = _agreed("max", self.most, row)
        if not option:
            return
        written = row.get("price", "").strip() or "0"
        price = prices.read(written, column="price", name=f"{self.name}: {option}")
        add_on = AddOn(f"{self.name}/{option}", option, price)
        if self.options.setdefault(option, add_on) != add_on:
            raise RowError(
                "price",
                written,
                _('"{option}" of "{name}" has another price above.').format(
                    option=option, name=self.name
                ),
                _("Remove one of the rows."),
            )

    def check(self) -> None:
        """Raise RowError for a choice that nobody can make."""
        least, most, count = self.least or 0, self.most or 0, len(self.options)
        if count and least > count:
            raise RowError(
                "min",
                str(least),
                _('"{name}" asks for at least {least}, and has {count} to choose from.').format(
                    name=self.name, least=least, count=count
                ),
                _("Correct min, or add the missing options."),
            )
        if count and most and most < least:
            raise RowError(
                "max",
                str(most),
                _('"{name}" asks for at least {least} and at most {most}.').format(
                    name=self.name, least=least, most=most
                ),
                _("Correct min or max."),
            )

    def group(self) -> AddOnGroup:
        """Return the choice as a group of add-ons."""
        least = self.least or 0
        return AddOnGroup(
            external_id=self.name,
            name=self.name,
            min_select=least,
            max_select=self.most or 0,
            required=least > 0,
            add_ons=tuple(add_on.external_id for add_on in self.options.values()),
        )


def add_rows(path: Path, names: Iterable[str]) -> str:
    """Return the text of the file at `path` with a row for each of `names` that it lacks.

    What is in it stays as it is; a file that is not there begins with a header. Raises
    ExportUnreadable.
    """
    if not path.exists():
        return "".join(_rows([",".join(COLUMNS), *map(_row_of, names)], "\n"))
    export = CsvExport(path)
    table = export.read()
    at = [name.casefold() for name in table.header].index("modifier")
    there = {_key(fields[at]) for _number, fields in table.rows if len(fields) > at}
    lacking = [name for name in names if _key(name) not in there]
    rows = [_row_of(name, table.delimiter, len(table.header), at) for name in lacking]
    text = export.read_text()
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith(("\n", "\r")):
        text += newline
    return text + "".join(_rows(rows, newline))


def _rows(rows: Iterable[str], newline: str) -> Iterator[str]:
    return (row + newline for row in rows)


def _row_of(name: str, delimiter: str = ",", width: int = len(COLUMNS), at: int = 0) -> str:
    cells = [""] * width
    cells[at] = name
    if any(sign in name for sign in (delimiter, '"')):
        cells[at] = '"{}"'.format(name.replace('"', '""'))
    return delimiter.join(cells)


def _agreed(column: str, before: int | None, row: Mapping[str, str]) -> int | None:
    """Return the number of a column: one row of a modifier may give it."""
    written = row.get(column, "").strip()
    if not written:
        return before
    if not (written.isascii() and written.isdecimal() and len(written) <= _NEEDED):
        raise RowError(
            column,
            written,
            _("{column} is {written!r}, which is no whole number.").format(
                column=column, written=written
            ),
            _("Write how many can be chosen, or leave it empty."),
        )
    number = int(written)
    if before not in {None, number}:
        raise RowError(
            column,
            written,
            _("{column} is {number} here and {before} above.").format(
                column=column, number=number, before=before
            ),
            _("Write the same in all rows of a modifier, or in one only."),
        )
    return number


def _key(name: str) -> str:
    return one_line(name).replace("\u2019", "'").casefold()
