"""What an adapter reads, as the page shows it: how much, the first of it, what is wrong."""

from collections.abc import Mapping
from typing import Any

from tillbridge.adapter import ReadsCatalogue, WritesTickets
from tillbridge.core.i18n import _, ngettext
from tillbridge.model.money import to_major
from tillbridge.pos.trial import trial_of
from tillbridge.setup.steps import Finding

_ROWS = 8
_BAD_ROWS = 5
_NAMES = 12


def preview_of(pos: object, currency: str) -> dict[str, Any]:
    """Read all there is to read, once (blocking), and return the part of it that is shown."""
    return shown(
        trial_of(pos).to_json(),
        currency,
        reads_menu=isinstance(pos, ReadsCatalogue),
        takes_orders=isinstance(pos, WritesTickets),
    )


def shown(
    read: Mapping[str, Any], currency: str, *, reads_menu: bool, takes_orders: bool
) -> dict[str, Any]:
    """Return what is shown of a trial's readings."""
    catalogue = read.get("catalogue", {})
    items = catalogue.get("items", [])
    stopped = [
        key
        for key, state in read.get("availability", {}).get("items", {}).items()
        if not state["available"]
    ]
    tables = read.get("tables", {}).get("tables", [])
    parts = ("catalogue", "availability", "tables")
    bad = [row for part in parts for row in read.get(part, {}).get("bad_rows", [])]
    return {
        "reads_menu": reads_menu,
        "takes_orders": takes_orders,
        "health": read.get("health"),
        "troubles": [
            {"text": read[part]["error"], "fix": read[part]["fix"]}
            for part in parts
            if "error" in read.get(part, {})
        ],
        "items": len(items),
        "categories": len(catalogue.get("categories", [])),
        "addon_groups": len(catalogue.get("addon_groups", [])),
        "rows": [
            {
                "external_id": item["external_id"],
                "name": item["name"],
                "price": to_major(item["price"], currency),
                "on_sale": item.get("available", True) and item["external_id"] not in stopped,
            }
            for item in items[:_ROWS]
        ],
        "sold_out": len(stopped) + sum(not item.get("available", True) for item in items),
        "tables": len(tables),
        "table_names": [table["name"] for table in tables[:_NAMES]],
        "bad_rows": [
            " ".join(filter(None, (row["place"], row["text"], row["fix"])))
            for row in bad[:_BAD_ROWS]
        ],
        "bad_count": len(bad),
    }


def nothing_seen() -> dict[str, Any]:
    """Return what is shown of an adapter that cannot be opened."""
    return shown({}, "USD", reads_menu=False, takes_orders=False)


def finding_of(adapter: str, preview: Mapping[str, Any]) -> Finding:
    """Return whether an adapter that reads this can serve the storefront's menu."""
    if preview["troubles"]:
        first = preview["troubles"][0]
        return Finding(done=False, text=first["text"], fix=first["fix"])
    if not preview["reads_menu"]:
        return Finding(
            done=False,
            text=_("As configured, {adapter} reads no menu.").format(adapter=adapter),
            fix=_("Say where the menu's export is."),
        )
    if not preview["items"]:
        return Finding(
            done=False,
            text=_("{adapter} reads a menu without a single item.").format(adapter=adapter),
            fix=_("Let the till export its menu, then look again."),
        )
    health = preview["health"]
    if health is not None and not health["online"]:
        return Finding(
            done=False,
            text=_("The till is away: {detail}").format(detail=health["detail"] or adapter),
            fix=_("Start it, then look again."),
        )
    items = ngettext("{n} item", "{n} items", preview["items"]).format(n=preview["items"])
    return Finding(
        done=True, text=_("{adapter} reads {items}.").format(adapter=adapter, items=items)
    )
