"""What runs in a child process: parsers of strangers' files, and the call that runs one.

A child imports these modules and little else, so that it begins within some 20 ms; nothing here
imports pydantic, asyncio or the rest of the program.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

_NONE: Mapping[str, object] = MappingProxyType({})


def N_(text: str) -> str:  # noqa: N802 -- gettext's own name for it
    """Mark a text that the parent process translates."""
    return text


class Unreadable(Exception):
    """The file as a whole cannot be read; its fields are those of `adapter.ExportUnreadable`."""

    def __init__(
        self,
        text: str,
        values: Mapping[str, object] = _NONE,
        *,
        place: str = "",
        fix: str = "",
        passing: bool = False,
    ) -> None:
        """Take a text with places in braces for `values`; the parent translates it and `fix`."""
        super().__init__(text)
        self.text = text
        self.values = values
        self.place = place
        self.fix = fix
        self.passing = passing

    @classmethod
    def still_being_written(cls, name: str, what: str) -> Self:
        """Return the failure of a file that is not finished; it mends itself."""
        return cls(
            N_("{name} {what}; it is probably still being written."),
            {"name": name, "what": what},
            place=name,
            fix=N_("Nothing to do while the till writes it. If this stays, export again."),
            passing=True,
        )
