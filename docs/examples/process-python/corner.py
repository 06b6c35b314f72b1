"""An adapter that is a program: JSON lines in, JSON lines out, and no dependency.

The till is a folder: `menu.jsonl` (an item a line), `sold-out.txt` (an id a line), `tables.json`,
`tickets/` that takes orders, `news/` with news of them, and `closed` while it takes none.
"""

import json
import os
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

CAPABILITIES = [
    "catalogue",
    "availability",
    "tables",
    "tickets",
    "cancel",
    "updates",
    "health",
    "changes",
]


class Failure(Exception):
    """What the till answers instead; `more` are the further fields of the error."""

    def __init__(self, kind, message, **more):
        super().__init__(message)
        self.error = {"kind": kind, "message": message, **more}


class Corner:
    def __init__(self, folder, decimals):
        self.folder = folder
        self.decimals = decimals
        self.tickets = folder / "tickets"
        self.news = folder / "news"

    # -- reading

    def read_catalogue(self):
        return {"items": [self.item(line) for line in self.lines()]}

    def lines(self):
        path = self.folder / "menu.jsonl"
        try:
            text = path.read_bytes().decode("utf-8")
        except OSError as failure:
            raise Failure(
                "ExportUnreadable",
                f"menu.jsonl cannot be read: {failure.strerror}.",
                place="menu.jsonl",
                fix="Let the till export it.",
                passing=True,
            ) from failure
        except UnicodeDecodeError:
            text = ""
        if not text.endswith("\n"):
            raise Failure(
                "ExportUnreadable",
                "menu.jsonl is still being written.",
                place="menu.jsonl",
                fix="Nothing to do.",
                passing=True,
            )
        return [json.loads(line) for line in text.split("\n")[:-1] if line != "end"]

    def item(self, said):
        price = int(Decimal(said["price"]).scaleb(self.decimals))
        return {"external_id": said["id"], "name": said["name"], "price": price}

    def read_availability(self):
        path = self.folder / "sold-out.txt"
        ids = path.read_text("utf-8").split() if path.exists() else []
        return {"items": {each: {"available": False} for each in ids}}

    def read_tables(self):
        path = self.folder / "tables.json"
        return {"tables": json.loads(path.read_text("utf-8")) if path.exists() else []}

    # -- orders

    def health(self):
        if self.tickets.is_dir():
            return {"online": True}
        return {"online": False, "detail": "The folder tickets is not there."}

    def write_ticket(self, key, order):
        if self.find_ticket(key) is None:
            if (self.folder / "closed").exists():
                raise Failure("StoreClosed", "Closed for the day.")
            known = {said["id"] for said in self.lines()}
            unknown = {line["external_id"] for line in order["items"]} - known
            if unknown:
                raise Failure("ItemUnavailable", "Unknown items.", external_ids=sorted(unknown))
            self.put(self.path(key), json.dumps(order))
        return {"reference": self.path(key).name}

    def find_ticket(self, key):
        if not self.tickets.is_dir():
            raise Failure("PosOffline", "The folder tickets is not there.")
        return {"reference": self.path(key).name} if self.path(key).exists() else None

    def cancel_ticket(self, key, reason, order):  # noqa: ARG002 -- a till may want the lines too
        if self.find_ticket(key) is not None:
            self.put(self.path(key).with_suffix(".cancelled"), reason)

    def path(self, key):
        # The key is the service's; nothing in it may lead out of the folder.
        return self.tickets / f"{quote(key, safe='')}.json"

    def put(self, path, text):
        """Write a file that is there whole, or not at all."""
        part = path.with_suffix(f".{os.getpid()}.part")
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)

    # -- news

    def read_updates(self):
        paths = sorted(self.news.glob("*.json"))
        return {
            "updates": [{"key": path.name, **json.loads(path.read_text("utf-8"))} for path in paths]
        }

    def update_handled(self, key):
        path = self.news / Path(key).name
        if path.exists():
            path.replace(path.with_suffix(".done"))


class Wire:
    """Lines to the bridge, from several threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.out = sys.stdout.buffer

    def say(self, message):
        line = json.dumps(message).encode() + b"\n"
        with self.lock:
            self.out.write(line)
            self.out.flush()


def watch(corner, wire):
    """Tell of what has changed, so that the bridge need not ask all the time."""
    paths = {
        "catalogue_changed": corner.folder / "menu.jsonl",
        "availability_changed": corner.folder / "sold-out.txt",
        "tables_changed": corner.folder / "tables.json",
        "order_status": corner.news,
    }

    def look():
        return {name: path.stat().st_mtime_ns for name, path in paths.items() if path.exists()}

    before = look()
    while True:
        time.sleep(0.2)
        now = look()
        for name in paths:
            if now.get(name) != before.get(name):
                wire.say({"type": "event", "event": name})
        before = now


def main():
    wire = Wire()
    hello = json.loads(sys.stdin.readline())
    if "folder" not in hello["options"]:
        wire.say({"type": "refuse", "message": "options.folder is missing: where is the till?"})
        return
    folder = Path(hello["base_dir"]) / hello["options"]["folder"]
    corner = Corner(folder, hello["decimals"])
    wire.say(
        {
            "type": "hello",
            "protocol": 1,
            "name": "corner",
            "version": "1.0",
            "capabilities": CAPABILITIES,
        }
    )
    threading.Thread(target=watch, args=(corner, wire), daemon=True).start()
    for line in sys.stdin:  # ends when the bridge closes it, and so does the program
        request = json.loads(line)
        answer = {"type": "answer", "id": request["id"]}
        try:
            answer["result"] = getattr(corner, request["method"])(**request["params"])
        except Failure as failure:
            answer["error"] = failure.error
        except Exception as failure:  # noqa: BLE001 -- the bridge has to hear of it, whatever it is
            sys.stderr.write(f"{request['method']}: {failure!r}\n")
            answer["error"] = {"kind": "PosFailure", "message": f"{type(failure).__name__}"}
        wire.say(answer)


if __name__ == "__main__":
    main()
