"""The objects of a catalog's JSON, and their values, whatever stands there. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tillbridge.adapter.texts import _

Object = Mapping[str, Any]
INHERIT = -1
"""What is set to this is inherited."""


def objects_in(document: object) -> Iterator[Object]:
    """Yield the objects of one page, of a list of pages, or of a bare list. Raises ValueError."""
    pages = document if isinstance(document, list) else [document]
    for page in pages:
        if not isinstance(page, dict):
            msg = _("it holds something that is no object")
            raise ValueError(msg)  # noqa: TRY004 -- bad input, not a programming error
        if "objects" in page:
            yield from dicts_in(page["objects"])
        elif "type" in page:
            yield page
        else:
            msg = _('it has no "objects"')
            raise ValueError(msg)


def dicts_in(value: object) -> Sequence[Object]:
    """Return the objects of a list; () for anything else."""
    if not value or not isinstance(value, list):
        return ()
    return [each for each in value if isinstance(each, dict)]


def part_of(each: Object, name: str) -> Object:
    """Return the object that stands under a name, an empty one for anything else."""
    value = each.get(name)
    return value if isinstance(value, dict) else {}


def ids_in(each: Object, name: str) -> Sequence[str]:
    """Return a list of ids; () for anything else, as some programs write null for an empty one."""
    value = each.get(name)
    return [str(part) for part in value] if value and isinstance(value, list) else ()


def amount_of(value: object) -> int | None:
    """Return an amount in minor units; None for what is none, or below zero."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if isinstance(value, int) and is_whole and value >= 0 else None


def number_or(value: object, inherited: int) -> int:
    """Return a number from 0 on; `inherited` where there is none, or INHERIT."""
    if isinstance(value, int) and not isinstance(value, bool) and value != INHERIT:
        return max(value, 0)
    return inherited
