"""What a reading found out about the export itself, beside the menu in it. Pure values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

LeftOutReason = Literal["zero_price", "category", "variable_price", "not_a_dish", "not_offered"]
"""Why something of an export is not sold online: stable words for machines."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in the export that is not sold online.

    `name` is its name in the export; `detail` is what the reason refers to (for example, a
    category).
    """

    name: str
    reason: LeftOutReason
    detail: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class FileEncoding:
    """The encoding of a file.

    `encoding` is the codec's name (`utf-8`, `cp1252`); `chosen` says whether an option set it.
    `bad_byte` is the offset of the first byte that is not UTF-8, and `bad_line` its line; None if
    all are UTF-8. `encoded_twice` says whether the text looks like UTF-8 that was read in another
    encoding and encoded again ("CrÃ¨me").
    """

    encoding: str
    chosen: bool = False
    bad_byte: int | None = None
    bad_line: int | None = None
    encoded_twice: bool = False


@dataclass(frozen=True, slots=True)
class ExportWarning:
    """Something a person should know about an export, although every row could be read.

    It holds nothing back: unlike a bad row, it stands for no record.
    """

    place: str
    text: str
    fix: str


@dataclass(frozen=True, slots=True)
class ExportFacts:
    """Facts about one reading. An adapter states them, the bridge decides what follows.

    `read_as` is how the file was interpreted, if that is not obvious (a product's export, a sheet
    of a workbook). `encodings` are by file name. `not_offered` names the modifiers in the export
    without known options.
    """

    encodings: Mapping[str, FileEncoding] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    not_offered: tuple[str, ...] = ()
    warnings: tuple[ExportWarning, ...] = ()
    read_as: str = ""

    def with_more(self, others: Iterable["ExportFacts"]) -> "ExportFacts":
        """Return these facts and those of other readings or files."""
        every = (self, *others)
        return ExportFacts(
            encodings={name: how for each in every for name, how in each.encodings.items()},
            left_out=tuple(one for each in every for one in each.left_out),
            not_offered=tuple(dict.fromkeys(one for each in every for one in each.not_offered)),
            warnings=tuple(dict.fromkeys(one for each in every for one in each.warnings)),
            read_as=next((each.read_as for each in every if each.read_as), ""),
        )
