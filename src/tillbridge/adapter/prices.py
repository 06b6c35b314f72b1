"""The prices of one export: read by the export's own convention, refused where that is in doubt.

    prices = PriceReader.of(all_price_texts, currency, options.decimal)
    try:
        price = prices.read(written, column="Price [Bar]", name="Latte")
    except BadPrice as bad:
        ...  # a bad row: bad.text, bad.fix, bad.column, bad.value

The reader is a value: make it part of the meaning of a record that `KnownRecords` is given, since
one row can change what another one's price means.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tillbridge.adapter.failures import RowError
from tillbridge.adapter.texts import _
from tillbridge.model.money import (
    MAX_PRICE,
    BadAmount,
    DecimalSign,
    DoubtfulAmount,
    ForeignAmount,
    decimal_sign_of,
    has_cents,
    to_major,
    to_minor,
)

_EXAMPLE = "4.5"
_WHOLE_EXAMPLE = "12500"
_MAX_SHOWN = 60


def amount_fault(failure: ValueError) -> str:
    """Return what is wrong with an amount, for whoever reads it."""
    if isinstance(failure, BadAmount):
        return _(failure.text).format(**failure.values)
    return str(failure)


class BadPrice(RowError):
    """A price that cannot be used, with its column, its text, and what to do."""


@dataclass(frozen=True, slots=True)
class PriceReader:
    """Reads the price texts of one export in `currency`, with its `decimal` separator ("" if open).

    `chosen` says whether the option `decimal` set it.
    """

    currency: str
    decimal: DecimalSign = ""
    chosen: bool = False

    @classmethod
    def of(
        cls, written: Iterable[str], currency: str, decimal: DecimalSign | None = None
    ) -> "PriceReader":
        """Return the reader for an export with the price texts `written`.

        `written` is every text of all price columns, including known records; `decimal` the option.
        """
        if decimal:
            return cls(currency, decimal, chosen=True)
        return cls(currency, decimal_sign_of(written, currency))

    def read(self, written: str, *, column: str, name: str) -> int:
        """Return a price in minor units, not negative. Raises BadPrice.

        `column` is the column's name in the file, `name` the item that the price belongs to.
        """
        try:
            price = to_minor(written, self.currency, decimal=self.decimal)
        except ValueError as failure:
            raise BadPrice(
                column,
                written[:_MAX_SHOWN],
                _('The price of "{name}" is wrong: {column} {what}.').format(
                    name=name, column=column, what=amount_fault(failure)
                ),
                self._fix(failure),
            ) from failure
        if not 0 <= price <= MAX_PRICE:
            what = _("is below zero") if price < 0 else _("is too large for a price")
            shown = written.strip()[:_MAX_SHOWN]
            raise BadPrice(
                column,
                shown,
                _('The price of "{name}" is wrong: {column} {shown!r} {what}.').format(
                    name=name, column=column, shown=shown, what=what
                ),
                _("Correct the price in the till."),
            )
        return price

    @property
    def example(self) -> str:
        """Return how a price is written in this export: 4.50, 4,50, or 12500 yen or pesos."""
        if not has_cents(self.currency):
            return _WHOLE_EXAMPLE
        minor = to_minor(_EXAMPLE, self.currency)
        return to_major(minor, self.currency).replace(".", self.decimal or ".")

    def _fix(self, failure: ValueError) -> str:
        if isinstance(failure, ForeignAmount):
            return _(
                "Correct the price, or the store's currency ({currency}) in bridge.toml."
            ).format(currency=self.currency)
        if isinstance(failure, DoubtfulAmount) and not has_cents(self.currency):
            how = (
                _(
                    "Write it in digits alone, like {example}. Or correct the option decimal: "
                    '"," where a point separates thousands, "." where a comma does.'
                )
                if self.chosen
                else _(
                    "Write it in digits alone, like {example}. Or set the option decimal: "
                    '"," where a point separates thousands, "." where a comma does.'
                )
            )
            return how.format(example=self.example)
        if isinstance(failure, DoubtfulAmount) and not self.decimal:
            return _(
                'Set the option decimal to the sign that the file has before cents: "." or ",". '
                "Or write the price like {example}."
            ).format(example=self.example)
        if isinstance(failure, DoubtfulAmount):
            how = (
                _("Write it like {example}, or correct the option decimal.")
                if self.chosen
                else _("Write it like {example}, or set the option decimal.")
            )
            return how.format(example=self.example)
        return _(
            "Write it as a number such as {example}, or correct the store's currency ({currency}) "
            "in bridge.toml."
        ).format(example=self.example, currency=self.currency)
