"""What runs in a child process: parsers of strangers' files, and the call that runs one.

A child imports these modules and little else, so that it begins within some 20 ms; nothing here
imports pydantic, asyncio or the rest of the program.
"""

from typing import Self


class Unreadable(Exception):
    """The file as a whole cannot be read; its fields are those of `adapter.ExportUnreadable`."""

    def __init__(self, text: str, *, place: str = "", fix: str = "", passing: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.place = place
        self.fix = fix
        self.passing = passing

    @classmethod
    def still_being_written(cls, name: str, what: str) -> Self:
        """Return the failure of a file that is not finished; it mends itself."""
        return cls(
            f"{name} {what}; it is probably still being written.",
            place=name,
            fix="Nothing to do while the till writes it. If this stays, export again.",
            passing=True,
        )
