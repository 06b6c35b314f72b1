"""The options of the adapter: the keys of its table in bridge.toml."""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from tillbridge.adapter import AdapterOptions
from tillbridge.adapter.secrets import Secret
from tillbridge.adapter.texts import _

RECORDED = "file:"


class OdooOptions(AdapterOptions):
    """Which Odoo, which of its points of sale, and what becomes of an order there."""

    url: str = Field(
        title="Odoo's address",
        description="Where Odoo answers: https://odoo.example.com. A file: is for cases in tests.",
    )
    database: str = Field(min_length=1, title="Database", description="The name of the database.")
    login: str = Field(min_length=1, title="User", description="The user the bridge works as.")
    api_key: Secret = Field(
        title="API key",
        description=(
            "The user's API key (or password): { file = ... }, { env = ... },"
            " { credential = ... } or text."
        ),
    )
    pos: int | str | None = Field(
        None,
        title="Point of sale",
        description="The point of sale: its name, or its id. Needed where there are several.",
    )
    orders: Literal["draft", "paid"] = Field(
        "draft",
        title="Orders are written as",
        description="Orders are written as drafts that staff settles, or as paid.",
    )
    payment_method: int | str | None = Field(
        None,
        title="Payment method",
        description="The payment method of paid orders: its name, or its id. Else the first bank.",
    )
    reference: str = Field(
        "Online",
        pattern=r"^[^\s%_0-9\\-]{1,20}$",
        title="Receipt numbers begin with",
        description="The word that a receipt number of ours begins with.",
    )
    prices: Literal["listed", "included", "excluded"] = Field(
        "listed",
        title="Prices of the menu",
        description="Prices of the menu: as they are listed, or all with tax, or all without.",
    )
    paid_cancelled: Literal["refund", "refuse"] = Field(
        "refund",
        title="Paid orders that are cancelled",
        description="A paid order that is cancelled is refunded in Odoo, or a person is told to.",
    )
    order_prices: Literal["take", "check"] = Field(
        "take",
        title="Orders with other prices",
        description="Orders with other prices than Odoo's are written all the same, or refused.",
    )
    delivery_product: int | str | None = Field(
        None,
        title="Product for the delivery fee",
        description="The product that stands for the delivery fee: its reference, or its id.",
    )
    tip_product: int | str | None = Field(
        None,
        title="Product for tips",
        description="The product that stands for a tip: its reference, or its id.",
    )
    discount_product: int | str | None = Field(
        None,
        title="Product for discounts",
        description="The product that stands for a discount of the order: reference, or id.",
    )
    self_order: Literal["follow", "ignore"] = Field(
        "follow",
        title="What is off sale in self-ordering",
        description="Whether what is off sale in Odoo's own self-ordering is sold out here too.",
    )
    stock: Literal["ignore", "on_hand", "forecast"] = Field(
        "ignore",
        title="Products without stock",
        description="Whether storable products without stock (on hand, or forecast) are sold out.",
    )
    online_table: int | str | None = Field(
        None,
        title="Table for online orders",
        description=(
            "The table that open orders without one are put on: its name, or its id. A restaurant"
            " of Odoo 17 needs it."
        ),
    )
    table_words: tuple[str, ...] = Field(
        ("Table",),
        title="Words before a table",
        description="The words before a table's name at the head of an order's instructions.",
    )
    table_field: str = Field(
        "table_external_id",
        title="Field with the table",
        description="The field of an order that names its table by external id.",
    )
    language: str | None = Field(
        None,
        pattern=r"^[a-z]{2,3}(_[A-Za-z0-9]+)?(@[A-Za-z]+)?$",
        title="Language of the menu",
        description=(
            "The language of names and descriptions, as Odoo calls it: nl_NL. Default: that of the "
            "bridge's user."
        ),
    )
    timeout_s: float = Field(
        6,
        gt=0,
        le=60,
        title="Time for an answer (s)",
        description="How long one answer of Odoo may take, in seconds.",
    )
    late_s: float = Field(
        45,
        ge=0,
        le=300,
        title="Time for a late order (s)",
        description=(
            "How long Odoo may still be writing an order whose answer got lost, in seconds; twice"
            " as long after each further time."
        ),
    )
    full_read_s: float = Field(
        300,
        gt=0,
        title="Read the whole menu every (s)",
        description="How often the menu is read whole, changed or not, in seconds.",
    )

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value.startswith(RECORDED):
            return value
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(_("give an address such as https://odoo.example.com"))
        if parts.username or parts.password or parts.query:
            raise ValueError(
                _("leave out user, password and query: they have options of their own")
            )
        return value.rstrip("/")
