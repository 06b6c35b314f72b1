"""An adapter that is a program: JSON lines in, JSON lines out, and no dependency.

The till is a folder: `menu.jsonl` (an item a line), `sold-out.txt` (an id a line), `tables.json`,
`tickets/` that takes orders, `news/` with news of them, and `closed` while it takes none. While it
is `locked`, what is written waits in `queue/`, and may become a ticket long after nobody waits.
"""

import json
import os
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote, unquote

CAPABILITIES = [
    "catalogue",
    "availability",
    "tables",
    "tickets",
    "cancel",
    "list",
    "late_writes",
    "updates",
    "health",
    "changes",
]

WAIT_S = 1.0  # for a till that is locked
LATE_WRITE_S = 3.0  # a till that was locked writes within this time, once it is unlocked
LISTED_S = 2 * 24 * 3600


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
        lines = self.lines()
        # Where the bridge refuses a value later, it names this place and this column.
        places = {line["id"]: f"menu.jsonl, line {at}" for at, line in enumerate(lines, 1)}
        columns = {"external_id": "id", "name": "name", "price": "price"}
        return {
            "items": [self.item(line) for line in lines],
            "source": {"places": places, "columns": columns},
        }

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
        if not self.tickets.is_dir():
            return {"online": False, "detail": "The folder tickets is not there."}
        health = {"online": True}
        if (self.folder / "closed").exists():
            health["closed"] = "The till is closed for the day."
        if not self.news.is_dir():
            text = "The folder news is not there, so nobody hears how orders go on."
            health["advice"] = [{"text": text, "fix": "Make the folder news beside tickets."}]
        return health

    def write_ticket(self, key, order):
        if (found := self.find_ticket(key)) is not None:
            return found
        if (self.folder / "closed").exists():
            raise Failure("StoreClosed", "Closed for the day.")
        known = {said["id"] for said in self.lines()}
        unknown = {line["external_id"] for line in order["items"]} - known
        if unknown:
            raise Failure("ItemUnavailable", "Unknown items.", external_ids=sorted(unknown))
        path = self.tickets / f"{quote(key, safe='')}.json"
        if (self.folder / "locked").exists():
            self.wait_in_queue(key, order)
        else:
            self.put(path, json.dumps(order))
        return self.find_ticket(key)

    def wait_in_queue(self, key, order):
        """Hand the order to a locked till, which takes it when it is unlocked, or never."""
        (self.folder / "queue").mkdir(exist_ok=True)
        path = self.folder / "queue" / f"{quote(key, safe='')},{time.time_ns()}.json"
        self.put(path, json.dumps(order))
        ends = time.monotonic() + WAIT_S
        while path.exists():
            if time.monotonic() > ends:
                raise Failure("TicketOutcomeUnknown", "The till has not taken the order yet.")
            time.sleep(0.01)

    def find_ticket(self, key):
        for path in self.paths():
            if self.key_of(path) == key:
                return {"reference": path.name}
        return None

    def cancel_ticket(self, key, reason, order):  # noqa: ARG002 -- a till may want the lines too
        for path in self.paths():
            if self.key_of(path) == key:
                self.put(path.with_suffix(".cancelled"), reason)

    def list_tickets(self):
        return {
            "tickets": [
                {
                    "key": self.key_of(path),
                    "reference": path.name,
                    "record": path.name,
                    "live": not path.with_suffix(".cancelled").exists(),
                }
                for path in self.paths()
                if path.stat().st_mtime > time.time() - LISTED_S
            ]
        }

    def cancel_listed_ticket(self, key, record, reference, reason, order):  # noqa: ARG002 -- (as above)
        path = self.tickets / Path(record).name
        if path.exists():
            self.put(path.with_suffix(".cancelled"), reason)

    def paths(self):
        """Return the tickets, oldest first; a till that was locked may have two of an order."""
        if not self.tickets.is_dir():
            raise Failure("PosOffline", "The folder tickets is not there.")
        return sorted(self.tickets.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path))

    def key_of(self, path):
        # The key is the service's; quoted, nothing in it leads out of the folder.
        return unquote(path.stem.partition(",")[0])

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
            "late_write_s": LATE_WRITE_S,
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
