"""Functions for child processes: one for each way in which a parser goes wrong."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tillbridge.adapter import ExportUnreadable


def describe(contents: Mapping[str, bytes], *more: str) -> object:
    return [[(name, len(content)) for name, content in contents.items()], more]


def count_calls(contents: Mapping[str, bytes], log: str) -> str:
    with Path(log).open("a") as file:
        file.write("x")
    return "".join(content.decode() for content in contents.values())


def count_and_abort(contents: Mapping[str, bytes], log: str) -> None:
    count_calls(contents, log)
    os.abort()


def ignoring_files(_contents: Mapping[str, bytes], function: str) -> object:
    return globals()[function]()


def abort() -> None:
    os.abort()


def abort_as_rust_does() -> None:
    os.write(2, b"memory allocation of 549755813888 bytes failed\n")
    os.abort()


def take_memory() -> int:
    return len(bytearray(1 << 40))


def take_memory_bit_by_bit() -> int:
    return len([bytes(1 << 16) for _ in range(1 << 20)])


def hang() -> None:
    time.sleep(3600)


def stop_iteration() -> None:
    next(iter(()))


def refuse() -> None:
    raise ExportUnreadable("It is cut off.", place="a.xlsx, row 3", fix="Wait.", passing=True)


def say_much() -> str:
    return "x" * (2 << 20)


def print_something() -> str:
    sys.stdout.write("a parser that prints\n")
    sys.stdout.flush()
    os.write(1, b"in two ways\n")
    return "and returns"


def environment() -> dict[str, str]:
    return dict(os.environ)


def no_json() -> object:
    return {1, 2}


def end_quietly() -> None:
    os._exit(0)
