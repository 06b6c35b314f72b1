"""A way for deliveries to come in: what to do, in order, with every file whole."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. `file` is the path of a file whose whole text is `content`."""

    text: str
    commands: Sequence[str] = ()
    file: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """A way: what it is good for, what stands against it here, and its steps."""

    name: str
    title: str
    text: str
    steps: Sequence[Step]
    cautions: Sequence[str] = ()
