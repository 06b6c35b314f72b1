"""A menu in a few sentences, for a person who sees it for the first time. Pure."""

from collections.abc import Iterator, Sequence

from tillbridge.core.i18n import _, ngettext
from tillbridge.model.export_facts import LeftOut
from tillbridge.model.menu_summary import MenuSummary, Priced
from tillbridge.model.money import to_major

_NAMES_SHOWN = 8

_REASONS = {
    "zero_price": _("without a price"),
    "category": _("in a category that is left out"),
    "variable_price": _("with a variable price"),
    "not_a_dish": _("no dish"),
    "not_offered": _("not offered"),
}


def summary_lines(summary: MenuSummary, currency: str) -> Iterator[str]:
    """Yield the summary as sentences: counts, free items, prices, encodings, what was left out."""
    yield _("{items}, {sizes}, {categories}; {choices} with {options}").format(
        items=ngettext("{n} item", "{n} items", summary.items).format(n=summary.items),
        sizes=ngettext("{n} size", "{n} sizes", summary.sizes).format(n=summary.sizes),
        categories=ngettext("{n} category", "{n} categories", summary.categories).format(
            n=summary.categories
        ),
        choices=ngettext("{n} choice", "{n} choices", summary.choices).format(n=summary.choices),
        options=ngettext("{n} option", "{n} options", summary.options).format(n=summary.options),
    )
    if summary.cheapest is not None and summary.dearest is not None:
        yield _("cheapest: {cheapest}; dearest: {dearest}").format(
            cheapest=_priced(summary.cheapest, currency), dearest=_priced(summary.dearest, currency)
        )
    if summary.free:
        yield ngettext("{n} is free: {names}", "{n} are free: {names}", len(summary.free)).format(
            n=len(summary.free), names=_listed(summary.free)
        )
    if summary.sold_out:
        yield ngettext("{n} is sold out", "{n} are sold out", summary.sold_out).format(
            n=summary.sold_out
        )
    if summary.read_as:
        yield _("read as {format}").format(format=summary.read_as)
    for name, how in summary.encodings.items():
        yield _("{file} is read as {encoding}").format(file=name, encoding=how.encoding)
    yield from _left_out(summary.left_out)
    if summary.not_offered:
        yield _(
            "the export names choices of which it does not say what they offer: {names}"
        ).format(names=_listed(summary.not_offered))
    if summary.bad_rows:
        yield ngettext(
            "{n} row cannot be read", "{n} rows cannot be read", summary.bad_rows
        ).format(n=summary.bad_rows)


def _left_out(left_out: Sequence[LeftOut]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for each in left_out:
        by_reason.setdefault(each.reason, []).append(each.name)
    for reason, names in by_reason.items():
        yield _("left out, {reason}: {names}").format(
            reason=_REASONS.get(reason, reason), names=_listed(names)
        )


def _priced(priced: Priced, currency: str) -> str:
    return f"{priced.name} {to_major(priced.price, currency)} {currency}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return _("{names} and {count} more").format(names=shown, count=more) if more > 0 else shown
