"""A till on paper: all of it is in a few files, so that it outlives an adapter that is killed.

It can do and suffer everything the conformance suite asks for. The adapter for it is
`tests/support/paper_adapter`; this side is the POS, and knows nothing of adapters.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from tests.support.paper_adapter import ADAPTER
from tillbridge.adapter import Adapter, Catalogue, Item, RejectReason, Table, TicketStatus
from tillbridge.adapter.conformance import Rig, RigTicket
from tillbridge.model.money import to_major


class TillAway(Exception):
    """Nobody answers."""


class AnswerLost(Exception):
    """It was done or not; the answer never came."""


class TillSays(Exception):
    """The till's own refusal."""

    def __init__(self, code: str, detail: Sequence[str] = ()) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


class PaperTill:
    """The till: `menu.jsonl` is its export, `till.json` its memory, both beside each other."""

    def __init__(self, folder: Path) -> None:
        self.menu = folder / "menu.jsonl"
        self._memory = folder / "till.json"

    def remembered(self) -> dict[str, Any]:
        empty: dict[str, Any] = {"tickets": {}, "news": [], "sold_out": {}, "tables": []}
        try:
            return {**empty, **json.loads(self._memory.read_text("utf-8"))}
        except FileNotFoundError:
            return empty

    @contextlib.contextmanager
    def memory(self) -> Iterator[dict[str, Any]]:
        """All that happens in here happens at once, or not at all."""
        now = self.remembered()
        yield now
        fresh = self._memory.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(now), "utf-8")
        fresh.replace(self._memory)

    # What an adapter may ask, over a line that can be cut

    def ping(self, patience_s: float) -> None:
        self._answers(patience_s)

    def add(self, key: str, order: Mapping[str, Any], patience_s: float) -> str:
        """Write an order with its key in one step; the number it got, also the second time."""
        now = self._answers(patience_s)
        if now.get("closed"):
            raise TillSays("closed")
        if now.get("items") is not None:
            asked = [line["external_id"] for line in order["items"]]
            strange = [each for each in asked if each not in now["items"]]
            if strange:
                raise TillSays("unknown", strange)
        if now.get("hanging"):
            self._wait("once", key, order)
        with self.memory() as memory:
            found = memory["tickets"].setdefault(
                key, {"number": f"T{len(memory['tickets']) + 1}", "orders": [dict(order)]}
            )
            lost = memory.pop("lose_next", False)
        if lost:
            raise AnswerLost
        return str(found["number"])

    def add_another(self, key: str, order: Mapping[str, Any]) -> str:
        """Write an order as a till does that looks at no key."""
        if self.remembered().get("hanging"):
            self._wait("again", key, order)
        with self.memory() as memory:
            found = memory["tickets"].setdefault(key, {"number": f"T-{key}", "orders": []})
            found["orders"].append(dict(order))
            lost = memory.pop("lose_next", False)
        if lost:
            raise AnswerLost
        return f"{found['number']}/{len(found['orders'])}"

    def _wait(self, how: str, key: str, order: Mapping[str, Any]) -> None:
        """Keep a write for later; whoever asked for it gets no answer."""
        with self.memory() as memory:
            memory["waiting"] = [*memory.get("waiting", []), [how, key, dict(order)]]
        raise AnswerLost

    def carry_out(self) -> None:
        with self.memory() as memory:
            waiting, memory["hanging"], memory["waiting"] = memory.get("waiting", []), False, []
        for how, key, order in waiting:
            if how == "once":
                self.add(key, order, patience_s=1)
            else:
                self.add_another(key, order)

    def number_of(self, key: str, patience_s: float) -> str | None:
        found = self._answers(patience_s)["tickets"].get(key)
        return None if found is None else str(found["number"])

    def cancel(self, key: str, patience_s: float) -> None:
        self._answers(patience_s)
        with self.memory() as memory:
            if key in memory["tickets"]:
                memory["tickets"][key]["cancelled"] = True

    def listed(self, patience_s: float) -> list[tuple[str, str, bool]]:
        tickets = self._answers(patience_s)["tickets"].items()
        return [(key, each["number"], not each.get("cancelled")) for key, each in tickets]

    def news(self, patience_s: float) -> list[dict[str, str]]:
        return list(self._answers(patience_s)["news"])

    def forget_news(self, key: str) -> None:
        with self.memory() as memory:
            memory["news"] = [each for each in memory["news"] if each["key"] != key]

    def sold_out(self) -> dict[str, str | None]:
        """The ids, and until when: a time in UTC that does not say so, as tills have it."""
        return dict(self._answers(1)["sold_out"])

    def tables(self) -> list[list[Any]]:
        return list(self._answers(1)["tables"])

    def _answers(self, patience_s: float) -> dict[str, Any]:
        now = self.remembered()
        if now.get("away"):
            raise TillAway
        slow_s = now.get("slow_s", 0)
        if slow_s > patience_s:
            time.sleep(patience_s)
            raise TillAway
        return now


class PaperRig(Rig):
    adapter: ClassVar[Adapter] = ADAPTER
    patience_s: ClassVar[float] = 2.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.till = PaperTill(folder)

    def options(self) -> Mapping[str, Any]:
        return {"menu": "menu.jsonl"}

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        return list(self.sell_menu(Catalogue.of(items), currency).items.values())

    def sell_menu(self, menu: Catalogue, currency: str) -> Catalogue:
        rows = [
            {
                "id": item.external_id,
                "name": item.name,
                "price": to_major(item.price, currency),
                "sizes": [
                    [each.external_id, each.variant_name, to_major(each.price, currency)]
                    for each in item.variants
                ],
                "extras": {
                    key: [
                        menu.addon_groups[key].name,
                        menu.addon_groups[key].max_select,
                        [
                            [
                                each,
                                menu.add_ons[each].name,
                                to_major(menu.add_ons[each].price, currency),
                            ]
                            for each in menu.addon_groups[key].add_ons
                        ],
                    ]
                    for key in item.addon_groups
                },
            }
            for item in menu.items.values()
        ]
        self._export(rows)
        with self.till.memory() as memory:
            memory["items"] = list(menu.items)
        return menu

    def rename(self, external_id: str, name: str) -> None:
        self._export(
            [{**row, "name": name} if row["id"] == external_id else row for row in self._rows()]
        )

    def reorder(self) -> None:
        self._export(self._rows()[::-1])

    def sell_out(self, external_id: str) -> None:
        with self.till.memory() as memory:
            memory["sold_out"] = {external_id: None}

    def sell_out_until(self, external_id: str, until: datetime) -> None:
        with self.till.memory() as memory:
            memory["sold_out"] = {external_id: f"{until:%Y-%m-%d %H:%M}"}

    def exports(self) -> Sequence[Path]:
        return [self.till.menu]

    def furnish(self, tables: Sequence[Table]) -> Sequence[Table]:
        with self.till.memory() as memory:
            memory["tables"] = [
                [table.external_id, table.name, table.seats, table.zone] for table in tables
            ]
        return tables

    def tickets(self) -> Sequence[RigTicket]:
        return [
            replace(RigTicket.of(order, cancelled=bool(ticket.get("cancelled"))), key=key)
            for key, ticket in self.till.remembered()["tickets"].items()
            for order in ticket["orders"]
        ]

    def report_progress(
        self,
        order_id: str,
        status: TicketStatus,
        *,
        reason: RejectReason | None = None,
        external_ids: Sequence[str] = (),
    ) -> None:
        with self.till.memory() as memory:
            number = memory["told"] = memory.get("told", 0) + 1
            memory["news"].append(
                {"key": f"n{number}", "order_id": order_id, "status": status.value}
            )

    def close_store(self) -> None:
        self._set("closed", value=True)

    def go_offline(self) -> None:
        self._set("away", value=True)

    def come_back(self) -> None:
        self._set("away", value=False)

    def lose_next_answer(self) -> None:
        self._set("lose_next", value=True)

    def hang_writes(self) -> None:
        self._set("hanging", value=True)

    def carry_out_writes(self) -> None:
        self.till.carry_out()

    def answer_slowly(self, delay_s: float) -> None:
        self._set("slow_s", value=delay_s)

    def _set(self, name: str, *, value: object) -> None:
        with self.till.memory() as memory:
            memory[name] = value

    def _rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.till.menu.read_text("utf-8").splitlines()]

    def _export(self, rows: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        self.till.menu.write_text(text, "utf-8")
