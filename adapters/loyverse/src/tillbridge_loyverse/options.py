"""The options of the adapter: the keys of its table in bridge.toml."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from tillbridge.adapter.sale_options import (
    PriceOptions,
    SaleOptions,
    StockOptions,
    TaxOptions,
)


class LoyverseOptions(SaleOptions, StockOptions, TaxOptions, PriceOptions):
    """Which export is read, and as which of its stores."""

    export: Path = Field(
        title="Items export", description="The items export of the Loyverse Back Office, a CSV."
    )
    store: str | None = Field(
        None,
        min_length=1,
        title="Store in the export",
        description="The store in the export; needed where it has several.",
    )
    modifiers: Path | None = Field(
        None,
        title="File of modifiers",
        description="CSV of what each modifier offers, which the export does not say.",
    )
    identity: Literal["handle", "sku"] = Field(
        "handle",
        title="What identifies an item",
        description="Which column is an item's id: its handle, or its SKU.",
    )
    encoding: str | None = Field(
        None,
        min_length=1,
        title="Encoding",
        description="Encoding of the export; without it, it is found out.",
    )
