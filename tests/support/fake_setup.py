"""The part of a `FakeControl` for setting up."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from tests.support.hostile import PLANT
from tillbridge.setup.draft import STEPS, Finding, next_step, steps_of
from tillbridge.setup.pos import form_of

Answer = dict[str, Any]


class FakeSetup:
    """Remembers what it was asked; `shown` is what the page gets."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told
        self.shown = nothing_yet()

    async def show(self, adapter: str = "") -> Answer:
        return self.shown

    async def service(self, base_url: str, *, practice: bool) -> Answer:
        return self._told("setup service", base_url, practice)

    async def sign_in(self, client_id: str, client_secret: str) -> Answer:
        return self._told("setup sign-in", client_id, client_secret)

    async def allow(self, email: str) -> Answer:
        return {**self._told("setup allow", email), "url": "http://127.0.0.1:9/authorize?state=x"}

    async def sign_up(self, form: Mapping[str, str]) -> Answer:
        told = self._told("setup sign-up", dict(form))
        return {**told, "url": "http://127.0.0.1:9/authorize?state=x"}

    async def choose(self, store: str, **answers: str) -> Answer:
        return self._told("setup choose", store, *answers.values())

    async def restart(self) -> Answer:
        return self._told("setup restart")

    async def till(self, adapter: str, form: Mapping[str, str]) -> Answer:
        return self._told("setup till", adapter, dict(form))

    async def sample_till(self) -> Answer:
        return self._told("setup sample till")

    async def orders(self, adapter: str, form: Mapping[str, str]) -> Answer:
        return self._told("setup orders", adapter, dict(form))

    async def address(self, listen: str, public_url: str, *, anyway: bool) -> Answer:
        return self._told("setup address", listen, public_url, anyway)

    async def write(self, digest: str) -> Answer:
        return self._told("setup write", digest)

    async def text(self) -> Answer:
        return {**self.shown["written"], "text": "", "file": self.shown["file"]}

    async def written(self, digest: str) -> Answer:
        return self._told("setup written", digest)

    async def forget(self) -> Answer:
        return self._told("setup forget")

    async def order(self) -> Answer:
        return self._told("setup order")


def nothing_yet() -> Answer:
    """Return what a bridge tells in which nothing is set up."""
    steps = steps_of({})
    return {
        "file": "/etc/tillbridge/bridge.toml",
        "writable": True,
        "running": False,
        "restarting": False,
        "held": False,
        "refused": None,
        "store": "main",
        "steps": [asdict(step) for step in steps],
        "next": next_step(steps),
        "service": {"base_url": "", "practice": "http://127.0.0.1:9000/v2"},
        "sign_in": {
            "client_id": "",
            "has_secret": False,
            "app_known": False,
            "redirect_uri": "http://127.0.0.1:8089/oauth/callback",
            "url": "",
        },
        "choice": {
            "store": "main",
            "store_id": "",
            "location_id": "",
            "currency": "",
            "hours_file": "",
            "stores": [],
            "trouble": None,
        },
        "till": {
            "adapters": [{"name": "folder", "summary": "Files.", "level": "gold"}],
            "all_adapters": True,
            "adapter": "folder",
            "fields": [],
            "preview": None,
            "needs_orders": False,
            "orders_adapter": "folder",
            "orders_fields": [],
            "columns": None,
        },
        "storefront": "",
        "address": {"listen": "127.0.0.1:8088", "public_url": "", "practice": False},
        "written": {"lines": [], "faults": [], "digest": "d1"},
    }


def everything_open(text: str = PLANT) -> Answer:
    """Return a set-up of which every form and every remark shows; `text` is from outside."""
    steps = steps_of({name: Finding(done=name != "order", text=text, fix=text) for name in STEPS})
    field = {
        "label": text,
        "hint": text,
        "required": False,
        "first": False,
        "value": text,
        "usual": text,
        "choices": [],
    }
    kinds = ("text", "path", "number", "flag", "secret", "pairs", "lines")
    options = [{**field, "name": f"{text}-{kind}", "kind": kind} for kind in kinds]
    options[3] |= {"value": "true"}
    options.append({**field, "name": f"{text}-choice", "kind": "choice", "choices": [text, "b"]})
    trouble = {"text": text, "fix": text}
    store = {"store_id": text, "name": text, "status": text, "integration_status": text}
    return {
        **nothing_yet(),
        "file": text,
        "writable": False,
        "refused": trouble,
        "steps": [asdict(step) for step in steps],
        "next": next_step(steps),
        "service": {"base_url": text, "practice": text},
        "sign_in": {
            "client_id": text,
            "has_secret": True,
            "app_known": True,
            "redirect_uri": text,
            "url": "http://127.0.0.1:9/authorize?state=x",
        },
        "choice": {
            "store": text,
            "store_id": text,
            "location_id": text,
            "currency": "EUR",
            "hours_file": text,
            "stores": [store, {**store, "store_id": "other"}],
            "trouble": trouble,
        },
        "till": {
            "adapters": [{"name": text, "summary": text, "level": "gold"}],
            "all_adapters": True,
            "adapter": text,
            "fields": options,
            "preview": {
                "reads_menu": True,
                "takes_orders": False,
                "health": {"online": False, "detail": text},
                "troubles": [trouble],
                "items": 9,
                "categories": 2,
                "addon_groups": 1,
                "rows": [
                    {"external_id": text, "name": text, "price": "9.50", "on_sale": True},
                    {"external_id": "b2", "name": text, "price": "9.50", "on_sale": False},
                ],
                "sold_out": 1,
                "tables": 2,
                "table_names": [text, text],
                "bad_rows": [text],
                "bad_count": 7,
            },
            "needs_orders": True,
            "orders_adapter": text,
            "orders_fields": options,
            "columns": {
                "header": [text, "b"],
                "choices": [
                    {"name": name, "label": name, "chosen": text, "required": name == "price"}
                    for name in ("external_id", "name", "price", "category", "stock")
                ],
                "missing": True,
            },
        },
        "storefront": "http://127.0.0.1:9000/store/st_main",
        "address": {"listen": text, "public_url": text, "practice": False},
        "written": {
            "lines": [f" {text}", f"+{text}", f"-{text}"],
            "faults": [text],
            "digest": "d1",
        },
    }


def on_the_way() -> Answer:
    """Return a set-up that has come to the till, as a person meets it."""
    done = {
        "service": "The ordering service answers within 38 ms.",
        "sign_in": "Your restaurant is signed in at the ordering service.",
        "store": "Trattoria Sant'Ambrogio, in EUR.",
    }
    findings = {name: Finding(done=True, text=text) for name, text in done.items()}
    steps = steps_of(findings)
    names = ("Pizza Margherita", "Pizza Funghi", "Pizza Quattro Formaggi", "Calzone", "Tiramisu")
    rows = [
        {
            "external_id": f"p{number}",
            "name": name,
            "price": f"{8 + number}.50",
            "on_sale": number != 3,
        }
        for number, name in enumerate(names, 1)
    ]
    answers = {"adapter": "folder", "menu": "export/menu.csv"}
    shown = nothing_yet()
    return {
        **shown,
        "steps": [asdict(step) for step in steps],
        "next": next_step(steps),
        "till": {
            **shown["till"],
            "adapters": [{"name": "folder", "summary": "Reads and writes files.", "level": "gold"}],
            "fields": form_of(answers),
            "preview": {
                "reads_menu": True,
                "takes_orders": True,
                "health": {"online": True, "detail": ""},
                "troubles": [],
                "items": 80,
                "categories": 9,
                "addon_groups": 6,
                "rows": rows,
                "sold_out": 1,
                "tables": 12,
                "table_names": ["T1", "T2", "T3", "Garden 1"],
                "bad_rows": ['export/menu.csv, line 44: the price "?" is none. Correct it.'],
                "bad_count": 1,
            },
        },
    }


def beside_a_bridge(text: str = PLANT) -> Answer:
    """Return what a bridge tells that runs and waits for its first order."""
    shown = everything_open(text)
    one = {**shown["till"], "all_adapters": False, "needs_orders": False}
    address = {**shown["address"], "practice": True}
    running = {"running": True, "writable": True, "refused": None}
    return {**shown, **running, "till": one, "address": address}
