"""The options of the adapter: the keys of its table in bridge.toml."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from tillbridge.adapter.sale_options import PriceOptions, SaleOptions, TaxOptions


class CloverOptions(SaleOptions, TaxOptions, PriceOptions):
    """Which export is read, and how its odd places are meant."""

    export: Path = Field(
        title="Inventory export",
        description="The inventory export of the Clover dashboard, an XLSX.",
    )
    hidden: Literal["leave_out", "sold_out"] = Field(
        "leave_out",
        title="Hidden items",
        description="What becomes of items that are hidden on the till.",
    )
    tax_rates: Literal["auto", "fraction", "percent", "hundredth"] = Field(
        "auto",
        title="How tax rates are written",
        description="What a tax rate of 0.06 means: 6 %, or a hundredth, or six of them.",
    )
