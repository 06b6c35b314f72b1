"""What a reading found out about the export itself, beside the menu in it. Pure values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

LeftOutReason = Literal["zero_price", "category", "variable_price", "not_a_dish", "not_offered"]
"""Why something of an export is not sold online: stable words for machines."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that stands in the export and is not sold online.

    `name` is how the export calls it; `detail` is what the reason is about (a heading's name, say).
    """

    name: str
    reason: LeftOutReason
    detail: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class FileEncoding:
    """How the bytes of a file stand for text.

    `encoding` is the codec's name (`utf-8`, `cp1252`); `chosen` is whether an option named it.
    `bad_byte` is the offset of the first byte that is no UTF-8, and `bad_line` the line it is in,
    None where all are. `encoded_twice` is whether the text looks like UTF-8 that was taken for
    another encoding and encoded again ("CrÃ¨me").
    """

    encoding: str
    chosen: bool = False
    bad_byte: int | None = None
    bad_line: int | None = None
    encoded_twice: bool = False


@dataclass(frozen=True, slots=True)
class ExportWarning:
    """Something a person should know of an export, although every row of it could be read.

    Nothing waits for it: it stands for no record, as a bad row does.
    """

    place: str
    text: str
    fix: str


@dataclass(frozen=True, slots=True)
class ExportFacts:
    """Facts of one reading. An adapter states them, the bridge decides what follows.

    `read_as` is what the file was taken for, where that is not plain (a product's export, a sheet
    of a workbook). `encodings` are by file name. `not_offered` names the modifiers that the export
    has and for which nothing says what they offer.
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
