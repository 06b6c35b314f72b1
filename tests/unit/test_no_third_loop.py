"""What happens by the clock is a job, what happens because something happened is a worker's step.

There is no third kind of loop in the background: this reads the source for one. A loop is what goes
round and waits for time or for an event in between.
"""

import ast
from pathlib import Path

import tillbridge

SOURCE = Path(tillbridge.__file__).parent

# What waits in a loop, and is neither: each with the reason.
EXCEPT = {
    "core/worker.py": "the worker itself, and what begins again what failed",
    "core/network.py": "accepts connections, and takes a breath where the system has no more",
    "receiver/connections.py": "deadlines of sockets, by the loop's own clock, as aiohttp's are",
    "orders/repository.py": "writes one change until the disk takes it; whoever asked waits for it",
    "menu/push.py": "waits for one job of the service; its push waits for it",
    "communities/subscription.py": "waits for one test delivery; a person waits for it",
    "web/listener.py": "one open page's stream of events, for as long as it is open",
    "setup/pos.py": "a preview, for as long as its page is open",
    "pos/watch.py": "reads what the system tells of files",
    "daemon/compose.py": "a command without a daemon reports how far it is",
    "daemon/leases.py": "waits at its start for an earlier run of this bridge to be gone",
    "daemon/reload.py": "work between two runs, while no worker runs; the watchdog hears of it",
    "pos/kit.py": "a trial of an adapter, for as long as its person waits",
    "pos/process/program.py": "threads that keep a program running and read what it writes",
}
WAITS = frozenset({"sleep", "wait", "wait_for", "timeout"})
# Programs of their own, which have no background: a command ends, the sandbox is no bridge.
LEFT_OUT = ("cli", "demo", "sandbox", "adapter", "pytest_plugin.py")


def waiting_loops(tree: ast.AST) -> list[int]:
    """Return the lines of loops that wait for time or an event, themselves or by a function."""
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.AsyncFunctionDef)]
    names = WAITS | {each.name for each in functions if _calls(each) & WAITS}
    return [
        loop.lineno
        for loop in ast.walk(tree)
        if isinstance(loop, ast.While) and _calls(loop) & names
    ]


def _calls(node: ast.AST) -> set[str]:
    """Return the names of what is called by its attribute's name."""
    return {
        each.func.attr.lstrip("_") if each.func.attr.lstrip("_") in WAITS else each.func.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
    }


def test_there_is_no_third_loop() -> None:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith(LEFT_OUT):
            continue
        if lines := waiting_loops(ast.parse(path.read_text("utf-8"))):
            found[name] = lines
    assert found.keys() - EXCEPT.keys() == set(), found
    assert EXCEPT.keys() - found.keys() == set(), "these are no exceptions any more"


def test_a_loop_made_by_hand_is_found() -> None:
    by_hand = """
async def run(self):
    while True:
        try:
            async with asyncio.timeout(5):
                await self._wake.wait()
        except TimeoutError:
            pass
        await self.look()
"""
    assert waiting_loops(ast.parse(by_hand)) == [3]
