"""What an adapter's answers have to be: sizes, ranges and kinds of all that may be in them."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tillbridge.adapter import RejectReason, TicketStatus
from tillbridge.core.i18n import _
from tillbridge.model.instant import EARLIEST_MS, LATEST_MS
from tillbridge.model.money import MAX_PRICE
from tillbridge.model.numbers import parse_decimal

MAX_LINE = 500
MAX_DESCRIPTION = 20_000
MAX_TEXT = 2_000
MAX_COUNT = 10_000
MAX_PARTS = 1_000  # categories, groups, variants of one item
MAX_RATE = 1_000  # percent
MAX_NEWS_ITEMS = 100  # items that one rejection names
MAX_ADVICE = 20
VENDOR = _("Tell the adapter's vendor: this is a defect of the adapter.")


def _rate(text: str) -> str:
    if not 0 <= parse_decimal(text) <= MAX_RATE:
        msg = f"is not between 0 and {MAX_RATE} percent"
        raise ValueError(msg)
    return text


Line = Annotated[str, Field(max_length=MAX_LINE)]
Identifier = Annotated[str, Field(min_length=1, max_length=MAX_LINE)]
Identifiers = Annotated[tuple[Identifier, ...], Field(max_length=MAX_PARTS)]
Price = Annotated[int, Field(ge=0, le=MAX_PRICE)]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Instant = Annotated[int, Field(ge=EARLIEST_MS, le=LATEST_MS)]
Rate = Annotated[Line, AfterValidator(_rate)]


class AnswerModel(BaseModel):
    """Base of these: kinds are as declared, nothing is converted."""

    model_config = ConfigDict(strict=True, from_attributes=True, defer_build=True)


class VariantModel(AnswerModel):
    """A size of an item."""

    external_id: Identifier
    variant_name: Line
    price: Price
    available: bool


class ComponentModel(AnswerModel):
    """A part of a tax."""

    agency: Line
    rate: Rate


class TaxModel(AnswerModel):
    """The tax of an item."""

    name: Line
    components: Annotated[tuple[ComponentModel, ...], Field(max_length=MAX_PARTS)]


class ItemModel(AnswerModel):
    """An item of the menu."""

    external_id: Identifier
    name: Identifier
    price: Price
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION)]
    image_url: Annotated[str, Field(max_length=MAX_TEXT)]
    available: bool
    snooze_until: Instant | None
    categories: Identifiers
    addon_groups: Identifiers
    variants: Annotated[tuple[VariantModel, ...], Field(max_length=MAX_PARTS)]
    variant_type: Line
    tax: TaxModel | None
    product_type: Line
    menus: Identifiers


class CategoryModel(AnswerModel):
    """A heading of the menu."""

    external_id: Identifier
    name: Line


class AddOnModel(AnswerModel):
    """An extra."""

    external_id: Identifier
    name: Line
    price: Price


class GroupModel(AnswerModel):
    """A choice of extras."""

    external_id: Identifier
    name: Line
    min_select: Count
    max_select: Count
    required: bool
    add_ons: Annotated[tuple[Identifier, ...], Field(max_length=MAX_COUNT)]


class MenuModel(AnswerModel):
    """A menu."""

    external_id: Identifier
    name: Line
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION)]


class AvailabilityModel(AnswerModel):
    """One item's availability."""

    external_id: Identifier
    available: bool
    until: Instant | None


class TableModel(AnswerModel):
    """A table of the floor plan."""

    external_id: Identifier
    name: Line
    seats: Count | None
    zone: Line


class UpdateModel(AnswerModel):
    """News of a ticket; `message` is made storable, whatever it is.

    `key` is for the adapter alone, and may be a file's name that is in no encoding.
    """

    order_id: Identifier
    status: TicketStatus
    reason: RejectReason | None
    external_ids: Annotated[tuple[Identifier, ...], Field(max_length=MAX_NEWS_ITEMS)]
    message: Any


def words_of(error: Any) -> tuple[str, str]:  # noqa: ANN401 -- pydantic's error
    """Return what is wrong with a value and what to do, in words that follow the field's name."""
    context = error.get("ctx", {})
    kind = error["type"]
    field = str(error["loc"][-1]) if error["loc"] else ""
    if kind == "string_unicode":
        return _("holds half a character, which no text can"), _("Type it again in the till.")
    if kind in {"string_too_long", "too_long"}:
        most = context.get("max_length")
        return _("is longer than {most}").format(most=most), _("Make it shorter in the till.")
    if kind == "string_too_short":
        return _("is empty"), _("Fill it in in the till.")
    if kind in {"greater_than_equal", "less_than_equal"}:
        if field in {"until", "snooze_until"}:
            return (
                _("is no time between the years 2000 and 2100"),
                _("Give milliseconds since 1970 (UTC); leave it empty for no end."),
            )
        too = _("is too large") if kind == "less_than_equal" else _("is negative")
        return too, _("Correct it in the till.")
    if kind == "value_error":
        return str(context.get("error", "")) or _("is wrong"), _("Correct it in the till.")
    return _("is of the wrong kind"), VENDOR
