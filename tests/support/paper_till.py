"""A till on paper: all of it is in a few files, so that it outlives an adapter that is killed.

It can do and suffer everything the conformance suite asks for. The adapter for it is
`tests/support/paper_adapter`; this side is the POS, and knows nothing of adapters.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.support.paper_adapter import ADAPTER
from tillbridge.adapter import Adapter, Item, RejectReason, Table, TicketStatus
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
        empty: dict[str, Any] = {"tickets": {}, "news": [], "sold_out": [], "tables": []}
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

    def add(self, key: str, lines: Mapping[str, int], patience_s: float) -> str:
        """Write an order with its key in one step; the number it got, also the second time."""
        now = self._answers(patience_s)
        if now.get("closed"):
            raise TillSays("closed")
        if now.get("items") is not None:
            strange = [each for each in lines if each not in now["items"]]
            if strange:
                raise TillSays("unknown", strange)
        if now.get("hanging"):
            self._wait("once", key, lines)
        with self.memory() as memory:
            found = memory["tickets"].setdefault(
                key, {"number": f"T{len(memory['tickets']) + 1}", "lines": [dict(lines)]}
            )
            lost = memory.pop("lose_next", False)
        if lost:
            raise AnswerLost
        return str(found["number"])

    def add_another(self, key: str, lines: Mapping[str, int]) -> str:
        """Write an order as a till does that looks at no key."""
        if self.remembered().get("hanging"):
            self._wait("again", key, lines)
        with self.memory() as memory:
            found = memory["tickets"].setdefault(key, {"number": f"T-{key}", "lines": []})
            found["lines"].append(dict(lines))
            lost = memory.pop("lose_next", False)
        if lost:
            raise AnswerLost
        return f"{found['number']}/{len(found['lines'])}"

    def _wait(self, how: str, key: str, lines: Mapping[str, int]) -> None:
        """Keep a write for later; whoever asked for it gets no answer."""
        with self.memory() as memory:
            memory["waiting"] = [*memory.get("waiting", []), [how, key, dict(lines)]]
        raise AnswerLost

    def carry_out(self) -> None:
        with self.memory() as memory:
            waiting, memory["hanging"], memory["waiting"] = memory.get("waiting", []), False, []
        for how, key, lines in waiting:
            if how == "once":
                self.add(key, lines, patience_s=1)
            else:
                self.add_another(key, lines)

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

    def sold_out(self) -> list[str]:
        return list(self._answers(1)["sold_out"])

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
        rows = [
            {
                "id": item.external_id,
                "name": item.name,
                "price": to_major(item.price, currency),
            }
            for item in items
        ]
        self._export(rows)
        with self.till.memory() as memory:
            memory["items"] = [item.external_id for item in items]
        return items

    def rename(self, external_id: str, name: str) -> None:
        self._export(
            [{**row, "name": name} if row["id"] == external_id else row for row in self._rows()]
        )

    def reorder(self) -> None:
        self._export(self._rows()[::-1])

    def sell_out(self, external_id: str) -> None:
        with self.till.memory() as memory:
            memory["sold_out"] = [external_id]

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
            RigTicket(key, tuple(lines.items()), cancelled=bool(ticket.get("cancelled")))
            for key, ticket in self.till.remembered()["tickets"].items()
            for lines in ticket["lines"]
        ]

    def tell(
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

    def _rows(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.till.menu.read_text("utf-8").splitlines()]

    def _export(self, rows: Sequence[Mapping[str, str]]) -> None:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        self.till.menu.write_text(text, "utf-8")
