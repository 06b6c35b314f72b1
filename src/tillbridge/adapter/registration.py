"""How an adapter makes itself known: one `Adapter` under the entry points `tillbridge.pos`."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tillbridge import ADAPTER_API
from tillbridge.adapter.protocols import Closes

API_VERSION = ADAPTER_API
# Adapters for these still work; a DeprecationWarning says until when (docs/adapters/policy.md).
OLD_API_VERSIONS: Mapping[int, str] = {}


FILE_ONLY = "x-file-only"
"""Set to true in an option's `json_schema_extra`: the page shows no field for it.

For what says which program is started: whoever uses the machine may be able to open the page.
"""

NEEDED = "x-needed"
"""The same for an option that is optional, and without which the adapter reads no menu.

Setting the bridge up on the page asks for it.
"""

ASKED_FIRST = "x-asked-first"
"""The same for an option that the page shows at once, and not under "More options"."""


class AdapterOptions(BaseModel):
    """Base class of an adapter's options: the keys of its table in the configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


@dataclass(frozen=True, slots=True)
class AdapterContext:
    """What an adapter knows about its store. Relative paths in options start at `base_dir`."""

    store: str
    currency: str
    location_id: str
    base_dir: Path


@dataclass(frozen=True, slots=True)
class Adapter:
    """The registration of an adapter.

    `open` checks the options against the environment, writes nothing outside `base_dir`, and
    returns the object whose methods are its capabilities. It raises ValueError (with a text for
    people) for options that cannot work.
    """

    name: str
    summary: str
    options: type[AdapterOptions]
    open: Callable[[Any, AdapterContext], object]
    api_version: int = API_VERSION


def home_of(adapter: Adapter) -> Path:
    """Return the folder of the adapter's own code. Raises TypeError if it says nothing of it."""
    opening = adapter.open
    if not (inspect.isfunction(opening) or inspect.isclass(opening) or inspect.ismethod(opening)):
        return Path(inspect.getfile(type(opening))).parent
    return Path(inspect.getfile(opening)).parent


@contextmanager
def closing(pos: object) -> Iterator[None]:
    """Close an adapter's object at the end, if there is something to close."""
    try:
        yield
    finally:
        if isinstance(pos, Closes):
            pos.close()
