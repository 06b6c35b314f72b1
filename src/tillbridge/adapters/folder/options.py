"""The options of the folder adapter: the keys of its table beside `adapter = "folder"`."""

import codecs
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from tillbridge.adapter import AdapterOptions

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
_DELIMITER_NAMES = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


def _known_encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError('is no encoding; try "utf-8", "utf-16" or "cp1252"') from None


def _one_character(text: str) -> str:
    delimiter = _DELIMITER_NAMES.get(text.lower(), text)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError('must be one character such as ";", or "tab"')
    return delimiter


class FolderOptions(AdapterOptions):
    """Which files the till writes and reads; relative paths count from `context.base_dir`."""

    menu: Path | None = Field(
        None, description="The menu export: .csv, .tsv or .txt with a header row, or .json."
    )
    addons: Path | None = Field(
        None, description="CSV of add-on groups and their add-ons, beside a menu that is a CSV."
    )
    columns: dict[Column, Annotated[str, Field(min_length=1)]] = Field(
        default_factory=dict,
        description='Header names that differ from ours: columns = { external_id = "SKU" }.',
    )
    encoding: Annotated[str, AfterValidator(_known_encoding)] | None = Field(
        None, description="Encoding of the exports; without it, it is found out."
    )
    delimiter: Annotated[str, AfterValidator(_one_character)] | None = Field(
        None, description='What separates fields, for example ";" or "tab"; else it is found out.'
    )
    menu_name: str = Field(
        "Menu", min_length=1, description="What the menu of a CSV export is called."
    )
    availability: Path | None = Field(
        None, description="CSV of what is sold out, the fast path for taking items off sale."
    )
    tables: Path | None = Field(None, description="CSV of the tables.")
    orders_dir: Path = Field(
        Path("orders"), description="Folder into which the bridge writes each order as one file."
    )
    updates_dir: Path = Field(
        Path("updates"), description="Folder into which the till writes news of orders."
    )
    heartbeat: Path | None = Field(
        None, description="A file that the till touches while it is running."
    )
    heartbeat_s: float = Field(
        60, gt=0, description="A heartbeat older than this means that the till is offline."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.menu is not None and self.menu.suffix.lower() not in {*_TABLES, ".json"}:
            raise ValueError(f"menu: {self.menu.name} must end in .csv, .tsv, .txt or .json")
        if self.addons is not None and not self.menu_is_table:
            raise ValueError("addons: needs a menu that is a CSV; a JSON menu holds its add-ons")
        return self

    @property
    def renamed(self) -> dict[str, str]:
        """Our names of columns, and the header each has in the till's files."""
        return {str(ours): theirs for ours, theirs in self.columns.items()}

    @property
    def menu_is_table(self) -> bool:
        """Whether the menu is a CSV of some kind."""
        return self.menu is not None and self.menu.suffix.lower() in _TABLES
