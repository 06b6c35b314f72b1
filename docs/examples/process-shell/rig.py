"""The till for tests: makes the kiosk's folder, and does to it what the checks ask."""

import json
import sys
from decimal import Decimal
from pathlib import Path


class Till:
    def __init__(self, folder):
        self.folder = folder
        self.rows = []
        (folder / "tickets").mkdir()
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

    def exports(self):
        return {"files": [str(self.folder / "menu.tsv")]}

    def tickets(self):
        return {
            "tickets": [self.ticket(path) for path in sorted(self.folder.glob("tickets/*.json"))]
        }

    def ticket(self, path):
        # The till keeps the order as the service sent it: all of it is compared.
        return {
            "order": json.loads(path.read_text("utf-8")),
            "cancelled": path.with_suffix(".cancelled").exists(),
        }

    def go_offline(self):
        (self.folder / "tickets").rename(self.folder / "away")

    def come_back(self):
        (self.folder / "away").rename(self.folder / "tickets")

    def export(self):
        lines = ["\t".join([row["id"], row["name"], row["price"]]) + "\n" for row in self.rows]
        part = self.folder / "menu.part"
        part.write_bytes("".join(lines).encode())
        part.replace(self.folder / "menu.tsv")


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
