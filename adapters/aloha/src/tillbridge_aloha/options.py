"""The options of the adapter: the keys of its table in bridge.toml."""

import codecs
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tillbridge.adapter.sale_options import SaleOptions, ZeroPrices
from tillbridge.adapter.texts import _


def _known(name: str) -> str:
    try:
        b"".decode(name)  # some codecs are none of texts
        return codecs.lookup(name).name
    except (LookupError, UnicodeError):
        raise ValueError(_('is no encoding; try "cp1251", "cp866", "cp850" or "cp1252"')) from None


class AlohaOptions(SaleOptions):
    """Where Aloha keeps its tables, and how their odd places are meant."""

    folder: Path = Field(
        title="Aloha's folder", description="Aloha's folder of DBF files, usually DATA or NEWDATA."
    )
    encoding: Annotated[str, AfterValidator(_known)] | None = Field(
        None,
        title="Code page",
        description="Code page of the files; without it, the files' own mark, or a guess.",
    )
    zero_prices: ZeroPrices = Field(
        "leave_out",
        title="Items at price zero",
        description='Items without a price: "leave_out" (most are words to the kitchen; as '
        'modifiers they are sold), "sell" them by themselves, or "refuse" them by name.',
    )
    stop_list: str | None = Field(
        None,
        min_length=1,
        title="Category of sold-out items",
        description="The category whose items are sold out, by its name.",
    )
    modifiers: Literal["auto", "none"] = Field(
        "auto",
        title="Modifiers",
        description="Whether modifiers are read: from MOD.DBF, else from what was sold.",
    )
