"""The options of the adapter: the keys of its table in bridge.toml."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from tillbridge.adapter.sale_options import (
    PriceOptions,
    SaleOptions,
    StockOptions,
    TaxOptions,
)
from tillbridge.adapter.texts import _

_SUFFIXES = {".xlsx", ".csv", ".json"}


class SquareOptions(SaleOptions, StockOptions, TaxOptions, PriceOptions):
    """Which export is read, and for which of its locations."""

    export: Path = Field(
        title="Item library or catalog",
        description="The item library as .xlsx or .csv, or a catalog as .json (ListCatalog).",
    )
    location: str | None = Field(
        None,
        min_length=1,
        title="Location",
        description="The location: its name in the item library, its id in a catalog.",
    )
    modifiers: Path | None = Field(
        None,
        title="File of modifier sets",
        description="CSV of what each modifier set offers, beside an item library.",
    )
    visibility: Literal["follow", "ignore"] = Field(
        "follow",
        title="What is unavailable at Square Online",
        description="Whether what is unavailable at Square Online is sold out here too.",
    )
    encoding: str | None = Field(
        None,
        min_length=1,
        title="Encoding",
        description="Encoding of an item library as .csv; without it, it is found out.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.export.suffix.lower() not in _SUFFIXES:
            raise ValueError(
                _("export: {name} must end in .xlsx, .csv or .json").format(name=self.export.name)
            )
        if self.modifiers is not None and self.export.suffix.lower() == ".json":
            raise ValueError(_("modifiers: a catalog holds its modifiers itself; leave it out"))
        if self.decimal is not None and self.export.suffix.lower() == ".json":
            raise ValueError(_("decimal: a catalog has whole cents; leave it out"))
        if self.sold_out_at_stock is not None and self.export.suffix.lower() == ".json":
            raise ValueError(_("sold_out_at_stock: a catalog says what is sold out; leave it out"))
        if self.encoding is not None and self.export.suffix.lower() != ".csv":
            raise ValueError(_("encoding: only an item library as .csv has one; leave it out"))
        return self
