"""A till that is a few files, for the conformance suite: as docs/adapters/folder.md has it."""

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from tillbridge.adapter import (
    Adapter,
    Catalogue,
    Item,
    RejectReason,
    Table,
    TicketStatus,
    Variant,
)
from tillbridge.adapter.conformance import Rig, RigTicket
from tillbridge.model.money import to_major
from tillbridge.pos.folder.adapter import ADAPTER

_SECOND_NS = 1_000_000_000
_MENU = ["external_id", "name", "price", "parent_id", "addon_groups"]
_ADD_ONS = ["group_id", "group_name", "max_select", "external_id", "name", "price"]
_SOLD_OUT = ["external_id", "available", "snooze_until"]


class FolderRig(Rig):
    """Everything lies on a share, which can vanish."""

    adapter: ClassVar[Adapter] = ADAPTER

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._share = folder / "share"
        self._share.mkdir()
        self._orders = self._share / "orders"
        self._updates = self._share / "updates"
        self._news_at = 0
        self._write("menu.csv", _MENU, [])
        self._write("addons.csv", _ADD_ONS, [])
        self._write("sold-out.csv", _SOLD_OUT, [])
        self._write("tables.csv", ["external_id", "name", "seats", "zone"], [])

    def options(self) -> Mapping[str, Any]:
        """Name all files there are."""
        return {
            "menu": "share/menu.csv",
            "addons": "share/addons.csv",
            "availability": "share/sold-out.csv",
            "tables": "share/tables.csv",
            "orders_dir": "share/orders",
            "updates_dir": "share/updates",
        }

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Export the items; ids are what the export says."""
        return list(self.sell_menu(Catalogue.of(items), currency).items.values())

    def sell_menu(self, menu: Catalogue, currency: str) -> Catalogue:
        """Export the items with their variants as rows below them; add-ons in a file of theirs."""

        def row(each: Item | Variant, name: str, parent: str = "", groups: str = "") -> list[str]:
            return [each.external_id, name, to_major(each.price, currency), parent, groups]

        rows = []
        for item in menu.items.values():
            rows.append(row(item, item.name, groups="|".join(item.addon_groups)))
            rows += [row(each, each.variant_name, item.external_id) for each in item.variants]
        self._write("menu.csv", _MENU, rows)
        self._write(
            "addons.csv",
            _ADD_ONS,
            [
                [
                    group.external_id,
                    group.name,
                    str(group.max_select),
                    key,
                    menu.add_ons[key].name,
                    to_major(menu.add_ons[key].price, currency),
                ]
                for group in menu.addon_groups.values()
                for key in group.add_ons
            ],
        )
        return menu

    def rename(self, external_id: str, name: str) -> None:
        """Export another name."""
        head, *rows = self._rows()
        renamed = [[row[0], name, *row[2:]] if row[0] == external_id else row for row in rows]
        self._write("menu.csv", head, renamed)

    def reorder(self) -> None:
        """Export from the last to the first."""
        head, *rows = self._rows()
        self._write("menu.csv", head, rows[::-1])

    def sell_out(self, external_id: str) -> None:
        """Write it into the file of what is sold out."""
        self._write("sold-out.csv", _SOLD_OUT, [[external_id, "no", ""]])

    def sell_out_until(self, external_id: str, until: datetime) -> None:
        """Write it with its end."""
        self._write("sold-out.csv", _SOLD_OUT, [[external_id, "no", until.isoformat()]])

    def exports(self) -> Sequence[Path]:
        """Return the menu."""
        return [self._share / "menu.csv"]

    def furnish(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Write the file of tables."""
        rows = [[each.external_id, each.name, str(each.seats or ""), each.zone] for each in tables]
        self._write("tables.csv", ["external_id", "name", "seats", "zone"], rows)
        return tables

    def tickets(self) -> Sequence[RigTicket]:
        """Return the orders that lie in the folder, as a till would read them."""
        cancelled = {path.name for path in self._orders.glob("cancelled/*.json")}
        return [self._ticket(path, cancelled) for path in sorted(self._orders.glob("*.json"))]

    def report_progress(
        self,
        order_id: str,
        status: TicketStatus,
        *,
        reason: RejectReason | None = None,
        external_ids: Sequence[str] = (),
    ) -> None:
        """Drop a file of news, later than the one before."""
        news: dict[str, Any] = {"order_id": order_id, "status": status.value}
        if reason is not None:
            news |= {"reason": reason.value, "external_ids": list(external_ids)}
        self._news_at += 1
        path = self._updates / f"news-{self._news_at:04d}.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(news), "utf-8")
        os.utime(part, ns=(self._news_at * _SECOND_NS, self._news_at * _SECOND_NS))
        part.replace(path)

    def go_offline(self) -> None:
        """Let the share vanish."""
        self._share.rename(self.folder / "share.away")

    def come_back(self) -> None:
        """Bring the share back."""
        (self.folder / "share.away").rename(self._share)

    def _ticket(self, path: Path, cancelled: set[str]) -> RigTicket:
        order = json.loads(path.read_text("utf-8"))
        return RigTicket.of(order, cancelled=path.name in cancelled)

    def _rows(self) -> list[list[str]]:
        text = (self._share / "menu.csv").read_text("utf-8")
        return list(csv.reader(io.StringIO(text, newline="")))

    def _write(self, name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows([head, *rows])
        part = self._share / f"{name}.part"
        part.write_bytes(text.getvalue().encode())
        part.replace(self._share / name)


RIG = FolderRig
