"""A store for the menu benches: a CSV of many items, and a ledger that knows them all."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection

from tillbridge.adapter import AdapterContext
from tillbridge.core.clock import Clock
from tillbridge.ledger import menu
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.menu_codec import AcceptedItem, Parts, PushContent
from tillbridge.menu.compare import fingerprint_of
from tillbridge.model.catalogue import Catalogue
from tillbridge.pos.loader import open_adapter
from tillbridge.pos.runner import PosRunner

STORE = "main"
CHANGED = 10
_PORTION = 5000
_CATEGORIES = 40


def write_menu(path: Path, items: int, *, changed: int = 0, off: int | None = None) -> None:
    """Write the export as a till does: a new file, renamed over the old one.

    `changed` items, spread over the file, have another price; item `off` is off sale.
    """
    fresh = path.with_suffix(".new")
    with fresh.open("w", encoding="utf-8", newline="") as file:
        file.writelines(_lines(items, changed, off))
    fresh.replace(path)


def _lines(items: int, changed: int, off: int | None) -> Iterator[str]:
    yield "external_id,name,price,category,available,description\n"
    step = max(1, items // changed) if changed else items + 1
    for number in range(items):
        price = 500 + number % 900 + (1 if changed and number % step == step // 2 else 0)
        yield (
            f"plu-{number:06d},Dish number {number},{price // 100}.{price % 100:02d},"
            f"Category {number % _CATEGORIES},{'false' if number == off else 'true'},"
            f"A plain description of dish {number}\n"
        )


def open_pos(folder: Path, *, availability: bool = False) -> PosRunner:
    """Return the folder adapter's runner over `folder/menu.csv`."""
    options = {"menu": "menu.csv", "orders_dir": "orders"}
    if availability:
        options["availability"] = "availability.csv"
    context = AdapterContext(STORE, "USD", "loc-1", folder)
    return PosRunner(
        open_adapter("folder", options, context),
        store=STORE,
        adapter="folder",
        ticket_timeout_s=20,
    )


async def learn(folder: Path) -> None:
    """Make a ledger in `folder/data` whose service has accepted the whole export."""
    pos = open_pos(folder)
    export = await pos.read_catalogue()
    ledger = await Ledger.open(folder / "data", clock=Clock())
    try:
        items = list(_accepted(export))
        for start in range(0, len(items), _PORTION):
            content = PushContent(items=tuple(items[start : start + _PORTION]))
            await ledger.write(menu.acknowledge, STORE, content, at=1)
        await ledger.write(_connected, export)
    finally:
        await ledger.close()
        await pos.close()


def _accepted(export: Catalogue) -> Iterator[AcceptedItem]:
    for item in export.items.values():
        yield AcceptedItem.of(item, item, fingerprint_of(export, item))


def _connected(connection: Connection, export: Catalogue) -> None:
    parts = Parts(export.categories, export.add_ons, export.addon_groups, export.menus)
    menu.acknowledge(connection, STORE, PushContent(parts=parts), at=1)
    put_fact(connection, STORE, "service_store_id", "st_main", at=1)


def prepare(folder: Path, items: int) -> None:
    """Write the export, let the ledger know it, then change ten of its rows."""
    write_menu(folder / "menu.csv", items)
    (folder / "orders").mkdir()
    asyncio.run(learn(folder))
    write_menu(folder / "menu.csv", items, changed=CHANGED)
