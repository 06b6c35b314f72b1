"""The till for tests: makes the corner shop's folder, and does to it what the checks ask."""

import json
import sys
from decimal import Decimal
from pathlib import Path


class Till:
    def __init__(self, folder):
        self.folder = folder
        self.news_at = 0
        self.rows = []
        (folder / "tickets").mkdir()
        (folder / "news").mkdir()
        self.export()

    def options(self):
        return {"options": {"folder": str(self.folder)}}

    def sell(self, items, currency, decimals):  # noqa: ARG002 -- decimals say all of the currency
        self.rows = [
            {
                "id": item["external_id"],
                "name": item["name"],
                "price": str(Decimal(item["price"]).scaleb(-decimals)),
            }
            for item in items
        ]
        (self.folder / "sold-out.txt").unlink(missing_ok=True)
        self.export()
        return {"items": items}

    def rename(self, external_id, name):
        for row in self.rows:
            if row["id"] == external_id:
                row["name"] = name
        self.export()

    def reorder(self):
        self.rows.reverse()
        self.export()

    def sell_out(self, external_id):
        (self.folder / "sold-out.txt").write_text(external_id + "\n", "utf-8")

    def exports(self):
        return {"files": [str(self.folder / "menu.jsonl")]}

    def furnish(self, tables):
        (self.folder / "tables.json").write_text(json.dumps(tables), "utf-8")
        return {"tables": tables}

    def tickets(self):
        return {
            "tickets": [self.ticket(path) for path in sorted(self.folder.glob("tickets/*.json"))]
        }

    def ticket(self, path):
        order = json.loads(path.read_text("utf-8"))
        lines = [
            {"external_id": line["external_id"], "quantity": line["quantity"]}
            for line in order["items"]
        ]
        return {
            "key": order["id"],
            "lines": lines,
            "cancelled": path.with_suffix(".cancelled").exists(),
        }

    def tell(self, order_id, status, reason, external_ids):
        self.news_at += 1
        news = {"order_id": order_id, "status": status}
        if reason:
            news |= {"reason": reason, "external_ids": external_ids}
        path = self.folder / "news" / f"{self.news_at:04}.json"
        path.write_text(json.dumps(news), "utf-8")

    def close_store(self):
        (self.folder / "closed").touch()

    def go_offline(self):
        (self.folder / "tickets").rename(self.folder / "away")

    def come_back(self):
        (self.folder / "away").rename(self.folder / "tickets")

    def hang_writes(self):
        (self.folder / "locked").touch()

    def carry_out_writes(self):
        (self.folder / "locked").unlink()
        for path in sorted(self.folder.glob("queue/*.json")):
            path.replace(self.folder / "tickets" / path.name)

    def export(self):
        lines = [json.dumps(row, ensure_ascii=False) for row in self.rows]
        text = "\n".join([*lines, "end"]) + "\n"
        part = self.folder / "menu.part"
        part.write_bytes(text.encode())
        part.replace(self.folder / "menu.jsonl")


def main():
    hello = json.loads(sys.stdin.readline())
    till = Till(Path(hello["folder"]))
    say({"type": "hello", "protocol": 1, "name": "rig", "capabilities": []})
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"type": "answer", "id": request["id"]}
        method = getattr(till, request["method"], None)
        if method is None:
            answer["error"] = {"kind": "CannotDo", "message": "A folder cannot do that."}
        else:
            answer["result"] = method(**request["params"])
        say(answer)


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
