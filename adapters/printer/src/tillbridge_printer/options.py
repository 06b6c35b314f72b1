"""The options of the adapter: the keys of its table in bridge.toml."""

import codecs
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from tillbridge.adapter import AdapterOptions
from tillbridge.adapter.secrets import Secret
from tillbridge.adapter.texts import _
from tillbridge_printer.code_pages import COMMON, NUMBERS
from tillbridge_printer.places import CloudPlace, Place, place_of

LayoutName = Literal["kitchen", "customer", "cancelled"]


def _known_page(name: str) -> str:
    try:
        known = codecs.lookup(name).name
    except LookupError:
        known = ""
    for page in NUMBERS:
        if codecs.lookup(page).name == known:
            return page
    raise ValueError(
        _("is no code page of printers; there are {names}").format(names=", ".join(NUMBERS))
    )


def _good_place(text: str) -> str:
    place_of(text)
    return text


CodePage = Annotated[str, AfterValidator(_known_page)]


class PrinterOptions(AdapterOptions):
    """Which printer, how it is reached, and what it prints."""

    printer: Annotated[str, AfterValidator(_good_place)] = Field(
        title="Printer's address",
        description=(
            "Where the printer is: tcp://HOST[:9100], usb:/dev/usb/lp0, file:PATH, "
            "epos://HOST[/DEVICE], epos+tls://HOST[/DEVICE] or cloudprnt://ADDRESS:PORT."
        ),
    )
    tickets: tuple[Literal["kitchen", "customer"], ...] = Field(
        ("kitchen",),
        min_length=1,
        strict=False,
        title="Tickets per order",
        description="What is printed of each order, in this order: kitchen, customer.",
    )
    layouts: dict[LayoutName, Path] = Field(
        default_factory=dict,
        title="Layouts of your own",
        description='Layouts of your own: layouts = { kitchen = "kitchen.txt" }.',
    )
    columns: int = Field(
        48,
        ge=24,
        le=80,
        title="Letters in a line",
        description="Plain letters in a line: 48 on 80 mm paper, 32 on 58 mm.",
    )
    dots: int | None = Field(
        None,
        ge=192,
        le=1024,
        title="Dots in a line",
        description="Dots in a line; without it, 12 for each column.",
    )
    code_pages: tuple[CodePage, ...] = Field(
        COMMON,
        strict=False,
        title="Code pages",
        description="The code pages that the printer has; other scripts are drawn.",
    )
    code_page_numbers: dict[CodePage, Annotated[int, Field(ge=0, le=255)]] = Field(
        default_factory=dict,
        title="Numbers of code pages",
        description="Numbers of code pages that differ from Epson's: { cp1251 = 73 }.",
    )
    status: bool = Field(
        default=True,
        title="Printer reports its state",
        description="Whether the printer answers when it is asked how it is (ESC/POS).",
    )
    confirmed_by: Literal["status", "process_id"] = Field(
        "status",
        title="Proof of printing",
        description="What tells that a ticket came out: GS r, or the process id of GS ( H.",
    )
    timeout_s: float = Field(
        12,
        gt=0,
        le=120,
        title="Time for a ticket (s)",
        description="How long the printer may take for a ticket.",
    )
    token: Secret | None = Field(
        None,
        title="Token in the CloudPRNT address",
        description="CloudPRNT: the secret part of the address that the printer polls.",
    )
    hold_older_than_min: float = Field(
        30,
        ge=0,
        title="Hold orders older than (min)",
        description="Orders older than this print only after somebody says so; 0: all do.",
    )
    timezone: str | None = Field(
        None,
        title="Time zone on tickets",
        description="IANA name of the time zone on tickets; without it, this machine's.",
    )
    ca_file: Path | None = Field(
        None,
        title="Printer's certificate",
        description="epos+tls: the certificate that the printer's own is trusted by.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if isinstance(self.place, CloudPlace) and self.token is None:
            raise ValueError(
                _(
                    "token: is missing; make up 16 letters or digits or more, and give the "
                    "printer the address http://THIS_MACHINE:PORT/TOKEN"
                )
            )
        if self.timezone is not None:
            from zoneinfo import ZoneInfo  # noqa: PLC0415 -- few files name a time zone

            try:
                ZoneInfo(self.timezone)
            except (KeyError, ValueError, OSError):
                raise ValueError(
                    _('timezone: must be an IANA name such as "Europe/Prague"')
                ) from None
        return self

    @property
    def place(self) -> Place:
        """Where the printer is."""
        return place_of(self.printer)

    @property
    def paper_dots(self) -> int:
        """Dots in a line."""
        return self.dots if self.dots is not None else self.columns * 12

    @property
    def page_numbers(self) -> dict[str, int]:
        """The code pages the printer has, each with its number."""
        return {
            page: self.code_page_numbers.get(page, NUMBERS[page])
            for page in dict.fromkeys((*self.code_pages, *self.code_page_numbers))
        }
