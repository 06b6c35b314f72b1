"""A program for the process adapter that misbehaves as its options say. Run with `python -S`."""

import json
import os
import subprocess
import sys
import time


def say(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def note(folder: str, name: str, text: str) -> None:
    with open(f"{folder}/{name}", "a") as file:  # noqa: PTH123 -- pathlib takes its time to load
        file.write(text)


def begin(options: dict, number: int) -> bool:
    """Say hello, or whatever else; return whether it goes on."""
    if number <= options.get("silent_starts", 0):
        time.sleep(60)
    if options.get("refuse"):
        say({"type": "refuse", "message": options["refuse"]})
        return False
    for at in range(options.get("words", 0)):
        sys.stderr.write(f"word {at} token=abcdefghijkl\n")
    sys.stderr.flush()
    sys.stdout.write("".join(options.get("before", [])))
    say(
        {
            "type": "hello",
            "protocol": options.get("protocol", 1),
            "name": "odd",
            "capabilities": options.get("capabilities", ["catalogue", "tickets", "health"]),
            "parallel": options.get("parallel", False),
            **options.get("hello", {}),
        }
    )
    if number <= options.get("deadly_starts", 0):
        os._exit(3)
    for event in options.get("events", []):
        say({"type": "event", **event})
    return True


def misbehave(how: dict, folder: str) -> None:
    """Do what comes before an answer, or instead of it."""
    if "grandchild" in how:
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
        note(folder, "grandchild", str(child.pid))
    sys.stdout.write(how.get("write", ""))
    sys.stdout.flush()
    while "endless" in how:
        sys.stdout.write("x" * 65536)
    if "exit" in how:
        os._exit(how["exit"])
    if "hang" in how:
        time.sleep(60)


def answer(request: dict, how: dict) -> None:
    said = how.get("answer", {"result": PLAIN.get(request["method"])})
    if "large" in how:
        name = "x" * 1000
        items = [{"external_id": str(n), "name": name, "price": n} for n in range(how["large"])]
        said = {"result": {"items": items}}
    say({"type": "answer", "id": request["id"] + how.get("off_by", 0), **said})


def main() -> None:
    options = json.loads(sys.stdin.readline())["options"]
    folder = options["folder"]
    note(folder, "starts", f"{os.getpid()}\n")
    with open(f"{folder}/starts") as file:  # noqa: PTH123 -- (as above)
        number = len(file.read().split())
    if options.get("environment"):
        note(folder, "environment", json.dumps(dict(os.environ)))
    if not begin(options, number):
        return
    held = []
    for line in sys.stdin:
        request = json.loads(line)
        how = options.get("how", {}).get(request["method"], {})
        if number > options.get("odd_starts", 99):
            how = {}
        if how.get("wait_for"):
            held.append(request)
            continue
        misbehave(how, folder)
        answer(request, how)
        for each in held:
            answer(each, {})
        held = []
    if options.get("deaf"):
        time.sleep(60)


PLAIN = {
    "read_catalogue": {"items": [{"external_id": "1", "name": "Soup", "price": 450}]},
    "read_availability": {"items": {"1": {"available": False}}},
    "write_ticket": {"reference": "#1"},
    "find_ticket": None,
    "read_updates": {"updates": []},
    "health": {"online": True},
}


if __name__ == "__main__":
    main()
