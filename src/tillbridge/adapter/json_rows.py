"""Rows of a till's JSON or database, made into things: one that is wrong costs itself alone."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from tillbridge.adapter.texts import _
from tillbridge.model.catalogue import BadRow
from tillbridge.model.numbers import printable

T = TypeVar("T")
_LONGEST_TEXT = 200
_LONGEST_ID = 120
# Called with what `make` raised, and what is said of it; the checks of adapters find the line.
on_refused: list[Callable[[Exception, str], object]] = []


class RowReader:
    """`read_rows` for the parts of a menu, which share `fix`, `id_field` and their `bad_rows`.

    `read("GET /menu, product", answer["products"], make)` reads one part.
    """

    def __init__(self, fix: str, *, id_field: str = "id") -> None:
        self.bad_rows: list[BadRow] = []
        self._fix = fix
        self._id_field = id_field

    def __call__(
        self,
        place: str,
        rows: Iterable[Mapping[str, Any]],
        make: Callable[[Mapping[str, Any]], T],
    ) -> list[T]:
        """Return the result of `make` for each row that is right."""
        return read_rows(
            rows, make, self.bad_rows, place=place, fix=self._fix, id_field=self._id_field
        )


def read_rows(
    rows: Iterable[Mapping[str, Any]],
    make: Callable[[Mapping[str, Any]], T],
    bad_rows: list[BadRow],
    *,
    place: str,
    fix: str,
    id_field: str = "id",
) -> list[T]:
    """Return the result of `make` for each row.

    If it raises KeyError, TypeError, ValueError, or what `decimal.Decimal` raises for a text that
    is not a number, the row is added to `bad_rows`, with its number in `place` (`GET /menu,
    product` becomes `GET /menu, product 3`): its item stays as it was, and a person sees what is
    wrong and the remedy in `fix`. `id_field` names the field with the external id.
    """
    made = []
    for number, row in enumerate(rows, 1):
        try:
            made.append(make(row))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as failure:
            text = (
                _("It has no {field}").format(field=str(failure))
                if isinstance(failure, KeyError)
                else str(failure)
            )
            if isinstance(failure, ArithmeticError):  # decimal says nothing that a person can read
                text = _("An amount in it is no number")
            text = f"{printable(text, most=_LONGEST_TEXT).rstrip('.')}."
            for told in on_refused:
                told(failure, text)
            known: object = row  # whatever the till sends
            external_id = known.get(id_field, "") if isinstance(known, Mapping) else ""
            bad_rows.append(
                BadRow(
                    place=f"{place} {number}",
                    text=text,
                    fix=fix,
                    external_id=printable(str(external_id), most=_LONGEST_ID),
                )
            )
    return made
