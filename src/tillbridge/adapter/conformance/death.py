"""Killing an adapter in the middle of its work, at any line of its own code.

The work runs in a process of its own, which counts the lines it executes in the adapter's package
and ends itself, without any clean-up, at the one it was told.
"""

import multiprocessing
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

from tillbridge.adapter.failures import PosFailure
from tillbridge.adapter.protocols import WritesTickets
from tillbridge.adapter.registration import Adapter, AdapterContext, home_of
from tillbridge.model.order import Order

KILLED = 77
_NEVER = sys.maxsize
_MOST_MOMENTS = 40
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Death:
    """An order to write, and the line (from 1) of the adapter's code to die at."""

    order: Order
    line: int


@dataclass(frozen=True, slots=True)
class Work:
    """Writing orders with an adapter; all of it can be handed to another process."""

    adapter: Adapter
    options: dict[str, Any]
    context: AdapterContext
    deaths: tuple[Death, ...] = ()


def lines_of(work: Work, order: Order) -> int:
    """Write the order to its end, and return how many lines of the adapter it took."""
    counts = _run(replace(work, deaths=(Death(order, _NEVER),)))
    return counts[0]


def die(work: Work) -> Sequence[int]:
    """Write each order in a process that dies on the way.

    Return for each how many lines it took where it came to its end, else 0.
    """
    return _run(work)


def moments(lines: int) -> Sequence[int]:
    """Return the lines to die at: all of them, or forty spread evenly, the last among them."""
    if lines <= _MOST_MOMENTS:
        return range(1, lines + 1)
    step = (lines - 1) / (_MOST_MOMENTS - 1)
    return sorted({1 + round(number * step) for number in range(_MOST_MOMENTS)})


def _run(work: Work) -> list[int]:
    if hasattr(os, "fork"):
        return _in_process(_fork_each, work, len(work.deaths))
    return [_in_process(_live, replace(work, deaths=(each,)), 1)[0] for each in work.deaths]


def _in_process(target: Any, work: Work, count: int) -> list[int]:  # noqa: ANN401 -- a function of this module
    # A fresh interpreter: nothing of this one's threads or open files goes with it.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_quietly, args=(target, work, sender), daemon=True)
    process.start()
    sender.close()
    lines: list[int] = []
    try:
        while len(lines) < count and receiver.poll(_PATIENCE_S):
            lines.append(int(receiver.recv()))
    except EOFError:
        pass  # it died, as it should
    finally:
        receiver.close()
    process.join(_PATIENCE_S)
    if process.is_alive():
        process.kill()
        process.join()
    return lines + [0] * (count - len(lines))


def _quietly(target: Any, work: Work, sender: Connection) -> None:  # noqa: ANN401 -- (as above)
    """Run it without its words: stdout is where the report goes, and it may print there."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    target(work, sender)


def _fork_each(work: Work, sender: Connection) -> None:
    """Live and die once for each order, in a child each: a fork costs a hundredth of a start."""
    if sys.platform == "win32":
        raise OSError("Windows has no fork")
    for death in work.deaths:
        receiving, sending = multiprocessing.Pipe(duplex=False)
        child = os.fork()
        if not child:
            receiving.close()
            _live(replace(work, deaths=(death,)), sending)
            os._exit(0)
        sending.close()
        os.waitpid(child, 0)
        try:
            sender.send(receiving.recv())
        except EOFError:
            sender.send(0)
        finally:
            receiving.close()


def _live(work: Work, sender: Connection) -> None:
    """Write the order in this process, and die at that line of the adapter's package."""
    (death,) = work.deaths
    home = str(home_of(work.adapter))
    count = 0

    def on_line(_frame: FrameType, event: str, _argument: object) -> Any:  # noqa: ANN401 -- as sys.settrace wants it
        nonlocal count
        if event == "line":
            count += 1
            if count >= death.line:
                os._exit(KILLED)
        return on_line

    def on_call(frame: FrameType, _event: str, _argument: object) -> Any:  # noqa: ANN401 -- as sys.settrace wants it
        return on_line if frame.f_code.co_filename.startswith(home) else None

    options = work.adapter.options.model_validate(work.options)
    pos = work.adapter.open(options, work.context)
    if not isinstance(pos, WritesTickets):
        os._exit(1)
    sys.settrace(on_call)
    try:
        pos.write_ticket(death.order, death.order.id)
    except PosFailure:
        pass  # the check that asks looks at what the till holds
    finally:
        sys.settrace(None)
    sender.send(count)
    sender.close()
