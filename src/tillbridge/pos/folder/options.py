"""The options of the folder adapter: the keys of its table beside `adapter = "folder"`."""

import codecs
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, model_validator

from tillbridge.adapter.registration import ASKED_FIRST, NEEDED
from tillbridge.adapter.sale_options import PriceOptions, SaleOptions, StockOptions
from tillbridge.adapter.texts import _
from tillbridge.pos.folder.mapping import ColumnName, ColumnNames, Ids
from tillbridge.pos.folder.table_file import TableSource

Column = Literal[
    "external_id",
    "name",
    "price",
    "description",
    "category",
    "available",
    "image_url",
    "variant_name",
    "parent_id",
    "addon_groups",
    "stock",
    "snooze_until",
    "seats",
    "zone",
    "group_id",
    "group_name",
    "min_select",
    "max_select",
    "required",
]

_TABLES = {".csv", ".tsv", ".txt"}
_WORKBOOKS = {".xlsx"}
_DELIMITER_NAMES = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


def _known_encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError(_('is no encoding; try "utf-8", "utf-16" or "cp1252"')) from None


def _known_timezone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(_('is no time zone; write it as "Europe/Berlin"')) from None


def _one_character(text: str) -> str:
    delimiter = _DELIMITER_NAMES.get(text.lower(), text)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(_('must be one character such as ";", or "tab"'))
    return delimiter


class FolderOptions(SaleOptions, PriceOptions, StockOptions):
    """Which files the till writes and reads; relative paths count from `context.base_dir`."""

    menu: Path | None = Field(
        None,
        title=_("Menu file"),
        description=_("The menu export: .csv, .tsv, .txt or .xlsx with a header row, or .json."),
        json_schema_extra={NEEDED: True},
    )
    format: str | None = Field(
        None,
        min_length=1,
        title=_("Product the menu comes from"),
        description=_(
            'The product that the menu comes from ("shopify"), or a mapping of your own '
            '("my.toml"); without it, the menu is as described here.'
        ),
    )
    sheet: str | None = Field(
        None,
        min_length=1,
        title=_("Sheet of the workbook"),
        description=_("The sheet of a workbook; else the first that fits."),
    )
    group_by: ColumnNames | None = Field(
        None,
        title=_("Column that groups sizes"),
        description=_(
            "A column by which rows are one item; its first row is the item and its "
            "first size, and `variant_name` names the sizes."
        ),
    )
    ids: Ids | None = Field(
        None,
        title=_("Ids of items"),
        description=_(
            '"derived" for a till without ids: they are made of category, name and size. '
            'Else "column".'
        ),
    )
    addons: Path | None = Field(
        None,
        title=_("Add-ons file"),
        description=_("CSV of add-on groups and their add-ons, beside a menu that is a CSV."),
    )
    columns: dict[Column, ColumnName] = Field(
        default_factory=dict,
        title=_("Names of the columns"),
        description=_(
            'Header names that differ from ours: columns = { external_id = "SKU" }; '
            "or positions (1 is the first), in a menu without a header."
        ),
    )
    encoding: Annotated[str, AfterValidator(_known_encoding)] | None = Field(
        None,
        title=_("Encoding"),
        description=_("Encoding of the exports; without it, it is found out."),
    )
    delimiter: Annotated[str, AfterValidator(_one_character)] | None = Field(
        None,
        title=_("Delimiter"),
        description=_('What separates fields, for example ";" or "tab"; else it is found out.'),
    )
    menu_name: str = Field(
        "Menu",
        min_length=1,
        title=_("Name of the menu"),
        description=_("What the menu of a CSV export is called."),
    )
    availability: Path | None = Field(
        None,
        title=_("Sold-out file"),
        description=_("CSV of what is sold out, the fast path for taking items off sale."),
    )
    timezone: Annotated[str, AfterValidator(_known_timezone)] | None = Field(
        None,
        title=_("Time zone"),
        description=_(
            "Time zone of times in `availability` that do not say theirs; without it, they "
            "are bad rows."
        ),
    )
    tables: Path | None = Field(None, title=_("Tables file"), description=_("CSV of the tables."))
    orders_dir: Path = Field(
        Path("orders"),
        title=_("Folder for orders"),
        description=_("The bridge writes each order here, as one file."),
        json_schema_extra={ASKED_FIRST: True},
    )
    updates_dir: Path = Field(
        Path("updates"),
        title=_("Folder for status updates"),
        description=_("The till writes its status updates of orders here."),
    )
    heartbeat: Path | None = Field(
        None,
        title=_("Heartbeat file"),
        description=_("A file that the till touches while it is running."),
    )
    heartbeat_s: float = Field(
        60,
        gt=0,
        title=_("Till is offline after (seconds)"),
        description=_("A heartbeat older than this means that the till is offline."),
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        kinds = {*_TABLES, *_WORKBOOKS, ".json"}
        if self.menu is not None and self.menu.suffix.lower() not in kinds:
            raise ValueError(
                _("menu: {name} must end in .csv, .tsv, .txt, .xlsx or .json").format(
                    name=self.menu.name
                )
            )
        if self.format is None and self.menu is not None and self.menu.suffix.lower() == ".json":
            for name in ("group_by", "ids"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        _("{name}: needs a menu that is a table, or a format").format(name=name)
                    )
        if self.sheet is not None and not self._has_suffix(_WORKBOOKS):
            raise ValueError(_("sheet: needs a menu that is a workbook (.xlsx)"))
        if self.addons is not None and not self._has_suffix({*_TABLES, *_WORKBOOKS}):
            raise ValueError(
                _("addons: needs a menu that is a table; a JSON menu holds its add-ons")
            )
        if self.ids == "derived" and "external_id" in self.columns:
            raise ValueError(_('ids: "derived" and columns.external_id; leave out one of them'))
        return self

    def table(
        self,
        path: Path,
        required: Sequence[str],
        optional: Sequence[str],
        *,
        must_rename: bool = True,
    ) -> TableSource:
        """Return a table that is written as the options say."""
        return TableSource(
            path=path,
            required=tuple(required),
            optional=tuple(optional),
            renamed={str(ours): str(theirs) for ours, theirs in self.columns.items()},
            encoding=self.encoding,
            delimiter=self.delimiter,
            must_rename=must_rename,
        )

    @property
    def is_plain_table(self) -> bool:
        """Whether the menu is a CSV that says its ids and a header, and nothing groups its rows."""
        special = (self.format, self.group_by, self.ids, self.sold_out_at_stock)
        mapped = any(each is not None for each in special)
        positions = any(isinstance(each, int) for each in self.columns.values())
        return self._has_suffix(_TABLES) and not mapped and not positions

    @property
    def is_plain_document(self) -> bool:
        """Whether the menu is a JSON document as the ordering service has it."""
        return self.format is None and self._has_suffix({".json"})

    def _has_suffix(self, suffixes: Collection[str]) -> bool:
        return self.menu is not None and self.menu.suffix.lower() in suffixes
