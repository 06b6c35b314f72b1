"""The storefront's forms and links."""

import re
from collections.abc import Mapping

from aiohttp import web
from yarl import URL

from tillbridge.sandbox.placing import Wanted, WantedOption
from tillbridge.sandbox.state import Store


async def read_form(request: web.Request) -> dict[str, str]:
    """The last value of each text field; a choice among add-ons arrives as one field each."""
    return {name: value for name, value in (await request.post()).items() if isinstance(value, str)}


def read_line(form: Mapping[str, str]) -> Wanted:
    """The item page's form.

    Fields `option:<external_id>` are quantities; `pick:<group>` names the one chosen.
    """
    options = []
    for name, value in form.items():
        if name.startswith("option:") and whole(value, 0) > 0:
            options.append(WantedOption(name.removeprefix("option:"), whole(value, 0)))
        elif name.startswith("pick:") and value:
            options.append(WantedOption(value))
    return Wanted(
        external_id=form.get("external_id", ""),
        quantity=min(99, whole(form.get("quantity"), 1)),
        variant_external_id=form.get("variant") or None,
        options=tuple(options),
    )


def whole(text: str | None, otherwise: int) -> int:
    """A whole number from a form or an address, or `otherwise`."""
    return int(text) if text and re.fullmatch(r"-?\d{1,7}", text) else otherwise


def table_query(form: Mapping[str, str]) -> dict[str, str]:
    """The table's token, for the next address."""
    return {"table": form["table"]} if form.get("table") else {}


def store_url(store: Store, form: Mapping[str, str], anchor: str) -> str:
    """The store's page, at the same table."""
    return str(URL(f"/store/{store.store_id}").with_query(table_query(form))) + anchor
