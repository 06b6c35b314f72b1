"""Which printed QR codes are dead: those of tables whose code is another one by now. Pure.

What was printed is remembered as one short digest a table: of the code that was on the last sheet
or, where none was printed here yet, of the first code the service gave, which somebody may have
printed elsewhere.
"""

from collections.abc import Mapping, Sequence

from tillbridge.ledger.storefront import AcceptedTable


def known_codes(
    printed: Mapping[str, str], before: Sequence[AcceptedTable], now: Sequence[AcceptedTable]
) -> dict[str, str]:
    """Return the printed codes after a push: a table without one gets the first it ever had."""
    known = dict(printed)
    for each in (*before, *now):
        if each.code:
            known.setdefault(each.table.external_id, each.code)
    return known


def dead_codes(printed: Mapping[str, str], now: Sequence[AcceptedTable]) -> tuple[str, ...]:
    """Return the names of the tables whose printed code is not their code any more."""
    return tuple(
        each.table.name
        for each in now
        if each.code and printed.get(each.table.external_id, each.code) != each.code
    )


def after_printing(
    printed: Mapping[str, str], sheet: Mapping[str, str], now: Sequence[AcceptedTable]
) -> dict[str, str]:
    """Return the printed codes once a sheet with these is made; tables nobody knows are left."""
    known = {each.table.external_id for each in now}
    return {**printed, **{key: code for key, code in sheet.items() if key in known}}
