"""The ids that the ordering service knows: what kind of record of Odoo, and its number. Pure.

Odoo never changes a record's number, so these survive renaming, new prices and another order.
"""

import re
from enum import StrEnum

_NAMED = re.compile(r"^(?P<kind>[a-z]+(?:-[a-z]+)?)-(?P<number>[1-9][0-9]{0,17})$")


class Kind(StrEnum):
    """The kinds of record that have an external id."""

    POS = "pos"
    CATEGORY = "category"
    TEMPLATE = "tmpl"
    PRODUCT = "product"
    LINE = "attribute"
    VALUE = "value"
    COMBO = "combo"
    COMBO_ITEM = "combo-item"
    TABLE = "table"


def named(kind: Kind, number: int) -> str:
    """Return the external id of a record."""
    return f"{kind}-{number}"


def number_of(external_id: str | None, kind: Kind) -> int | None:
    """Return the record's number; None where the id is not of that kind."""
    match = _NAMED.match(external_id or "")
    return int(match["number"]) if match is not None and match["kind"] == kind else None
