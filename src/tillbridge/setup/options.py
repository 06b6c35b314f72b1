"""An adapter's options as a form: a field for each, what a person typed; an export's columns."""

import re
import tomllib
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tillbridge.adapter import AdapterOptions, ExportUnreadable
from tillbridge.adapter.registration import ASKED_FIRST, FILE_ONLY, NEEDED
from tillbridge.adapter.xlsx_export import XlsxExport
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.pos.folder.cells import alike
from tillbridge.pos.folder.items import REQUIRED
from tillbridge.pos.folder.mapping import looks_like
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.table_file import TableSource, read_table

COLUMN = "columns."
Kind = Literal["text", "path", "number", "choice", "flag", "secret", "pairs", "lines"]


@dataclass(frozen=True, slots=True)
class OptionField:
    """A field of the form; `usual` is what counts where it is left empty, "" for nothing.

    One that is not `first` is under "More options".
    """

    name: str
    label: str
    kind: Kind
    hint: str
    required: bool
    first: bool
    value: str
    usual: str = ""
    choices: tuple[str, ...] = ()


def _options(model: type[AdapterOptions], *, of_file: bool = False) -> dict[str, FieldInfo]:
    """Return the options by the name they have in the file; `of_file`: those only it may set."""
    return {
        info.alias or name: info
        for name, info in model.model_fields.items()
        if of_file is _is_marked(info, FILE_ONLY)
    }


def _is_marked(info: FieldInfo, mark: str) -> bool:
    return isinstance(extra := info.json_schema_extra, dict) and bool(extra.get(mark))


def fields_of(
    options: type[AdapterOptions], answers: Mapping[str, Any], *, for_menu: bool = True
) -> list[OptionField]:
    """Return a field for each option, those that are needed first; `answers` are what holds.

    An option that only the file may set has none. `for_menu`: the adapter is to read the menu.
    """
    found = [
        _field(name, info, answers.get(name), for_menu=for_menu)
        for name, info in _options(options).items()
    ]
    return sorted(found, key=lambda field: (not field.required, not field.first))


def options_in(options: type[AdapterOptions], form: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that a form says, as they are to be in the file; empty fields do not.

    What begins with `COLUMN` says which column of the export is which. Raises ConfigError, which
    names the field. The model itself judges the rest.
    """
    parsed = {
        name: _parsed(name, info, text)
        for name, info in _options(options).items()
        if (text := form.get(name, "").strip())
    }
    if chosen := {
        name.removeprefix(COLUMN): text for name, text in form.items() if name.startswith(COLUMN)
    }:
        other = {ours: theirs for ours, theirs in chosen.items() if theirs not in {"", ours}}
        parsed["columns"] = other
        if not chosen.get("external_id", "-"):
            parsed.setdefault("ids", "derived")
        if not other:
            del parsed["columns"]
    return parsed


def file_only(options: type[AdapterOptions]) -> dict[str, bool]:
    """Return the options that only the file may set, and whether the adapter needs each.

    They say which program is started, and the page may be open to whoever uses the machine.
    """
    return {name: info.is_required() for name, info in _options(options, of_file=True).items()}


def _field(name: str, info: FieldInfo, value: object, *, for_menu: bool) -> OptionField:
    plain, kind = plain_type(info.annotation), kind_of(info.annotation)
    default = info.get_default(call_default_factory=True)
    has_default = default is not PydanticUndefined and default not in (None, "", {}, [])
    required = info.is_required() or (for_menu and _is_marked(info, NEEDED))
    return OptionField(
        name,
        _(info.title or name.replace("_", " ").capitalize()),
        kind,
        _(info.description) if info.description else "",
        required=required,
        first=required or _is_marked(info, ASKED_FIRST),
        value="" if value is None or kind == "secret" else text_of(value),
        usual=text_of(default) if has_default else "",
        choices=tuple(map(str, get_args(plain))) if kind == "choice" else (),
    )


def text_of(value: object) -> str:
    """Return a TOML value as a person types it into a field: one a line, where it is several."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case dict():
            return "\n".join(f"{key} = {each}" for key, each in value.items())
        case list() | tuple():
            return "\n".join(map(text_of, value))
        case _:
            return str(value)


def _parsed(name: str, info: FieldInfo, text: str) -> Any:  # noqa: ANN401 -- a TOML value
    match kind_of(info.annotation):
        case "flag":
            return text == "true"
        case "number":
            return _number(name, text, whole=plain_type(info.annotation) is int)
        case "pairs":
            return _pairs(name, text, texts=get_args(plain_type(info.annotation))[1:] == (str,))
        case "lines":
            return [line.strip() for line in text.splitlines() if line.strip()]
        case _:
            return text


def _number(name: str, text: str, *, whole: bool) -> int | float:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        raise ConfigError(
            _("“{text}” is not a number.").format(text=text),
            fix=_("Write it in digits."),
            field=name,
        ) from None
    return int(number) if number.is_integer() and (whole or "." not in text) else number


# NAME = VALUE, with or without quotation marks, to the end of the line or the next NAME =.
_PAIR = re.compile(
    r"""\s*([\w-]+|"[^"]*"|'[^']*')\s*=\s*
        ("(?:[^"\\]|\\.)*"|'[^']*'|[^\n]+?)
        \s*(?:,\s*(?=[\w"'-]+\s*=)|,?\s*(?:\n|$))""",
    re.VERBOSE,
)


def _pairs(name: str, text: str, *, texts: bool) -> dict[str, Any]:
    """Return a table as people type it: one pair on each line, or as in the file.

    `texts`: every value is text, also one of digits.
    """
    within = re.fullmatch(r"(?:\[?[\w.]+\]?\s*=?\s*)?\{(.*)\}", text, re.DOTALL)
    body = within[1] if within else re.sub(r"\A\[[\w.]+\]\s*\n", "", text)
    pairs: dict[str, Any] = {}
    at = 0
    while body[at:].strip():
        found = _PAIR.match(body, at)
        if found is None:
            raise ConfigError(
                _("“{line}” is not NAME = VALUE.").format(line=body[at:].strip().splitlines()[0]),
                fix=_("Write one a line, for example: price = Preis"),
                field=name,
            )
        key, value = (_unquoted(each) for each in found.groups())
        is_number = not texts and value.isdecimal() and found[2] == value
        pairs[key] = int(value) if is_number else value
        at = found.end()
    return pairs


def _unquoted(text: str) -> str:
    if text[0] not in "\"'" or text[0] != text[-1] or len(text) == 1:
        return text.strip()
    try:
        return str(tomllib.loads(f"x = {text}")["x"])
    except tomllib.TOMLDecodeError:  # a backslash of a path
        return text[1:-1]


_KINDS: Mapping[Any, Kind] = {
    Literal: "choice",
    bool: "flag",
    int: "number",
    float: "number",
    Path: "path",
    SecretStr: "secret",
    dict: "pairs",
    list: "lines",
    tuple: "lines",
}


def kind_of(annotation: Any) -> Kind:  # noqa: ANN401 -- whatever a model declares
    """Return the kind of field that a setting of this type needs."""
    plain = plain_type(annotation)
    return _KINDS.get(get_origin(plain) or plain, "text")


def plain_type(annotation: Any) -> Any:  # noqa: ANN401 -- (as above)
    """Return what is left of a type without Annotated and without None."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in {Union, types.UnionType}:
            parts = [each for each in get_args(annotation) if each is not types.NoneType]
            if SecretStr in {plain_type(each) for each in parts}:
                return SecretStr
            if len(parts) != 1:
                return str
            annotation = parts[0]
        else:
            return annotation


# -- which column of a menu's export is which: its header, and a guess

# By our name: what people call it, and the words that tills have for it, the likeliest first.
_KNOWN: Mapping[str, tuple[str, str]] = {
    "external_id": (
        _("Number or id"),
        r"external.?id|plu|sku|id|article|artikel|c[oó]d|kod|код|ref|indeks|item.?no|item.?num|nr\b|no\b",
    ),
    "name": (
        _("Name"),
        r"name|title|item|dish|product|bezeichnung|nom|naam|nazwa|artículo|désignation|omschrijving|наименование|название|descri",
    ),
    "price": (
        _("Price"),
        r"price|preis|verkaufspreis|vk|prix|precio|prezzo|preço|prijs|verkoopprijs|cena|цена|amount",
    ),
    "category": (
        _("Category"),
        r"categ|catég|kateg|категория|dep|group|gruppe|groep|grup|группа|famil|reparto|waren|rubri|section",
    ),
    "description": (
        _("Description"),
        r"descri|beschreibung|omschrijving|opis|описание|details|text",
    ),
    "available": (_("On sale (yes or no)"), r"available|availability|on.?sale|active|enabled"),
    "image_url": (_("Picture (web address)"), r"image|picture|photo|bild"),
    "variant_name": (_("Size"), r"variant|size|groesse|größe|taille"),
    "parent_id": (_("Id of the item that a size belongs to"), r"parent"),
    "addon_groups": (_("Choices"), r"addon|add.on|modifier|option"),
    "stock": (_("Stock"), r"stock|quantity|bestand"),
}

# What a dish costs the restaurant: no price that a guest may see.
_COST = re.compile(
    r"cost|purchase|supply|wholesale|einkauf|\bek\b|achat|compra|acquisto|inkoop", re.IGNORECASE
)


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
    # Without the file that says what a choice offers, no column can name one.
    wanted = [each for each in _KNOWN if options.addons or each != "addon_groups"]
    guessed = _guess(header, found, wanted) if missing else found
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
    source = TableSource(
        path,
        (),
        tuple(_KNOWN),
        encoding=options.encoding,
        delimiter=options.delimiter,
        is_header=lambda _names: False,  # which one it is nobody has said yet
    )
    return [name for name in read_table(source, lambda table: table.header) if name]


def _guess(
    header: Sequence[str], found: Mapping[str, str], wanted: Sequence[str]
) -> dict[str, str]:
    """Return the likeliest column for each of those wanted and not found; each serves once."""
    guessed = dict(found)
    for ours in wanted:
        if not guessed[ours]:
            _label, words = _KNOWN[ours]
            free = [name for name in header if name not in guessed.values()]
            if ours == "price":
                free = [name for name in free if _COST.search(name) is None]
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
