"""Takes the pictures in docs/images: `python -m tests.support.screenshots FOLDER`.

Of pages over a real socket, filled with a bad evening (tests/support/page_sample.py), at a desk's
width and a phone's, light and dark. A new page adds a line to `PICTURES`.
"""

import asyncio
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, FloatRect, async_playwright

from tests.support.fake_control import FakeControl
from tests.support.fake_settings import FakeSettings
from tests.support.fake_setup import on_the_way
from tests.support.page_harness import page_harness
from tests.support.page_sample import busy, fill_menu, fill_orders
from tests.support.sample_menu import DISHES, HEADINGS, menu_page
from tests.support.small_png import small_png
from tillbridge.core.clock import Clock
from tillbridge.ledger.day import HOUR_MS
from tillbridge.ledger.snapshot import Held
from tillbridge.menu.diff import diff
from tillbridge.menu.review import Differing
from tillbridge.model.catalogue import Catalogue, Category, Item, Variant
from tillbridge.model.instant import to_iso
from tillbridge.stores.closure import ClosureReasons, Pause, to_json

TEXT = "no heartbeat for 60 seconds"
SIZES = ("Regular", "Large", "Family")


@dataclass(frozen=True)
class Picture:
    """A page's path, and the name of its picture; `dark` and `width` say how it is looked at.

    Of the whole page, or `only` of an element (a selector) down to `most` pixels.
    """

    name: str
    path: str
    width: int = 1280
    dark: bool = False
    only: str = ""
    most: int = 0


def of_guide(name: str, path: str, most: int, only: str = "main") -> Iterator[Picture]:
    """Yield pictures for a guide, light and dark, that are read on a phone and at a desk."""
    yield Picture(f"guide/{name}.png", path, 560, only=only, most=most)
    yield Picture(f"guide/{name}-dark.png", path, 560, dark=True, only=only, most=most)


PICTURES = (
    Picture("status.png", "/", 1200),
    Picture("status-phone-dark.png", "/", 360, dark=True),
    Picture("orders.png", "/orders", 1200),
    Picture("board.png", "/86", 1200),
    Picture("board-phone-dark.png", "/86", 360, dark=True),
    Picture("menu-hold.png", "/menu", 1200),
    Picture("menu-review.png", "/stores/main/menu/difference", 1200),
    Picture("order.png", "/orders/ord_8f2c", 1200),
    Picture("setup.png", "/setup", 1200),
    Picture("diagnostics.png", "/diagnostics", 1200),
    Picture("activity.png", "/diagnostics/audit", 1200),
    *of_guide("setup", "/setup", 598),
    *of_guide("till", "/setup", 658, "#step-adapter"),
    *of_guide("order", "/orders/ord_8f2c", 480),
    *of_guide("overview", "/", 400),
    *of_guide("board", "/86", 648),
    *of_guide("hold", "/menu", 544),
    *of_guide("alerts", "/settings/alerts", 460),
    *of_guide("users", "/settings/people", 373),
)


def fill(control: FakeControl) -> None:
    """Tell what the pictures show."""
    control.now_ms = Clock().now_ms()
    busy(control, TEXT)
    control.setup.shown = on_the_way()
    held = "31 of 80 items removed, including all of Pizza"
    pos, _order, menu, consent = control.facts.problems
    store = control.facts.stores["main"]
    assert store.held is not None
    store.held = Held(store.held.since, (held,))
    store.acknowledged_items = 80
    oven = Pause(control.now_ms - HOUR_MS, control.now_ms + HOUR_MS, "anna", "the oven is broken")
    store.facts = {
        **store.facts,
        "service_store_name": "Trattoria Sant'Ambrogio",
        "standing": to_json(ClosureReasons(person=oven, service_status="inactive")),
    }
    problems = (pos, replace(menu, detail={"detail": held}), consent)
    control.facts = replace(control.facts, problems=problems)
    first, second = control.day.waiting
    control.day.waiting[:] = [
        replace(first, order_id="ord_1", order_number="A-104", failure="offline"),
        second,
    ]
    fill_orders(control, "A-104")
    tell_one_evening(control)
    tell_one_menu(control, held)
    tell_what_was_done(control)
    tell_settings(control)


def tell_one_evening(control: FakeControl) -> None:
    """Put plain texts where the sample has one and the same."""
    numbers = ("A-104", "A-103", "A-102", "A-101")
    for row, number in zip(control.orders.rows, numbers, strict=True):
        row |= {"order_number": number, "id": f"ord_{number}", "table": number[-1]}
        row["dishes"] = [
            {"name": "Pizza Margherita", "quantity": "2"},
            {"name": "Cola", "quantity": "1"},
        ]
        row["ticket_reference"] = "" if number == "A-104" else f"#{number[-3:]}"
        row["last_failure"] = "offline: no paper" if number == "A-104" else ""
        if row["handled"]:
            row["handled"] = {**row["handled"], "by": "anna"}
    names = ("Pizza Margherita", "Pizza Funghi", "Pizza Quattro Formaggi", "Calzone")
    base = control.items.menu[0]
    control.items.menu = [
        {**base, "external_id": f"p{number}", "name": name, "variant": "", "on_sale": number != 2}
        | {
            "sizes": [
                {**each, "name": size} for each, size in zip(base["sizes"], SIZES, strict=False)
            ]
        }
        for number, name in enumerate(names)
    ]
    for stopped, name in zip(control.items.stopped, (names[2], "Tiramisu", "Cola"), strict=True):
        stopped |= {"name": name, "variant": "", "by": "anna"}
    life = [
        {
            **each,
            "text": each["text"].replace(
                "A-104", "anna" if "tried" in each["text"] else "no paper"
            ),
        }
        for each in control.orders.whole["life"]
        if each["event"] in {"delivery.kept", "order.received", "order.wait", "order.retried"}
    ]
    lines = [
        {"name": "Pizza Margherita", "quantity": 2, "unit_price": 950, "options": []},
        {"name": "Cola", "quantity": 1, "unit_price": 250, "options": []},
    ]
    lines[0]["options"] = [{"name": "Extra mozzarella", "quantity": 1, "unit_price": 150}]
    ordered = control.orders.whole["ordered"]
    control.orders.whole |= {
        "id": "ord_8f2c",
        "order_number": "A-104",
        "last_failure": "offline: no paper",
        "guest_text": "",
        "same_number": [],
        "life": life,
        "delivery": {"event_id": "evt_71", "delivery_id": "dlv_09", "received_at": ""},
        "ordered": {
            **ordered,
            "table": "7",
            "bill": {**ordered["bill"], "taxes": [{"name": "VAT", "rate": "10", "amount": 190}]},
            "instructions": "No onions, please",
            "lines": [
                {**line, "external_id": "p1", "variant": None, "menu": menu(line)} for line in lines
            ],
        },
    }


def menu(line: dict[str, Any]) -> dict[str, Any]:
    """Return what the menu had of a line: what the line says."""
    return {"name": line["name"], "size": "", "price": line["unit_price"], "on_sale": True}


def tell_settings(control: FakeControl) -> None:
    """Put the settings of a small restaurant where the sample has one and the same text."""
    control.settings = FakeSettings(control._told)
    people = ["anna@trattoria.example", "marco@trattoria.example"]
    email = {"to": people, "sender": "bridge@trattoria.example", "host": "smtp.trattoria.example"}
    control.settings.document = {"alerts": {"email": email}}
    users = [("anna", "technician"), ("kitchen", "staff")]
    control.settings.shown["users"] = [{"name": name, "role": role} for name, role in users]


def tell_what_was_done(control: FakeControl) -> None:
    """Put an evening of several people into the trail, and plain results into the diagnostics."""
    done = (
        ("page:anna", "problems.acknowledge", "pos.offline", ""),
        ("page:kitchen", "item.86", "p3", "Tiramisu"),
        ("page:anna", "order.retry", "ord_A-104", "A-104"),
        ("bridge", "menu.push", "", ""),
        ("page:marco", "order.cancel", "ord_A-101", "A-101"),
        ("page:marco", "page.signed_in", "", ""),
        ("page:kitchen", "item.restore", "p7", "Lasagne"),
        ("command:root", "config.change", "", ""),
    )
    control.audit.entries = [
        {
            "id": len(done) - number,
            "at": to_iso(control.now_ms - number * 7 * 60_000),
            "who": who,
            "role": "" if who == "bridge" else "staff",
            "action": action,
            "store": "main",
            "target": target,
            "target_name": name,
            "detail": {"ok": True},
            "hash": "",
        }
        for number, (who, action, target, name) in enumerate(done)
    ]
    texts = (
        "The bridge is running.",
        "The ordering service answers: 84 ms.",
        "The sign-in expires in 33 hours.",
        f"The till does not answer: {TEXT}.",
        "3 GB are free.",
    )
    for result, text in zip(control.diagnostics.report["results"], texts, strict=True):
        result["text"] = text
        result["level"] = "ok" if result["level"] == "skipped" else result["level"]
        if result["level"] == "failed":
            result["fix"] = "Check that the till is on and connected."


def tell_one_menu(control: FakeControl, held: str) -> None:
    """Fill the page of the menu with a till that has lost its pizzas."""
    fill_menu(control, "p17")
    control.menu.shown["hold"]["reasons"] = [held]
    control.menu.differing = trattoria(held)
    control.menu.page = menu_page(control.menu.differing, "Extras", count=40)
    control.menu.shown["refused"] = [
        {"external_id": "p17", "name": "Tiramisu", "reason": "price must be positive"}
    ]
    control.menu.pushes[1]["message"] = "price must be positive"
    control.menu.rows = [
        {**row, "name": name, "variant": "", "external_id": f"p{number}"}
        for number, (row, name) in enumerate(zip(control.menu.rows, DISHES, strict=False))
    ]


def trattoria(reason: str) -> Differing:
    """Return a change that loses a few dishes, and slips a decimal point."""
    heads = {f"c{n}": Category(f"c{n}", head) for n, head in enumerate(HEADINGS)}
    before = [
        Item(
            f"p{number}",
            name,
            890 + 50 * number,
            description="Fresh every day",
            categories=(f"c{number * len(heads) // len(DISHES)}",),
            variants=(
                Variant(f"p{number}-s", "Regular", 890),
                Variant(f"p{number}-l", "Large", 1290),
            )
            if number < 3
            else (),
        )
        for number, name in enumerate(DISHES)
    ]
    after = [
        replace(each, price=128_000) if each.name == "Lasagne" else each
        for each in before
        if each.categories != ("c3",)
    ]
    after[9] = replace(after[9], price=after[9].price + 30)
    after.append(Item("new", "Espresso", 250, categories=("c2",)))
    names = Catalogue(categories=heads)
    changes = diff(Catalogue.of(before), Catalogue.of(after))
    return Differing(changes, names, names, (reason,), ("p6",), Clock().now_ms())


async def take(browser: Browser, url: str, picture: Picture, folder: Path) -> None:
    """Take one picture of the whole page."""
    page = await browser.new_page(
        viewport={"width": picture.width, "height": 640},
        color_scheme="dark" if picture.dark else "light",
    )
    await page.goto(url + picture.path)
    clip: FloatRect | None = None
    if picture.only:
        box = await page.locator(picture.only).bounding_box()
        assert box is not None, picture
        clip = {**box, "height": min(box["height"], picture.most)}
    taken = await page.screenshot(full_page=True, clip=clip)
    (folder / picture.name).write_bytes(await small_png(await browser.new_page(), taken))
    await page.close()


async def main(folder: Path) -> None:
    """Take all of them."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("There is no Chromium; install the package chromium.")
    async with page_harness(clock=Clock()) as harness, async_playwright() as playwright:
        fill(harness.control)
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--no-proxy-server"]
        )
        for picture in PICTURES:
            await take(browser, harness.url, picture, folder)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
