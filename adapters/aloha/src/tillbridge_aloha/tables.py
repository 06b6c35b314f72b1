"""Reading a table whole, or not at all: Aloha rewrites its files at the end of the day."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.export_files import reading_whole
from tillbridge.adapter.sharing import open_shared
from tillbridge.adapter.texts import _
from tillbridge_aloha.code_pages import code_page, fits
from tillbridge_aloha.dbf import Table

Row = Mapping[str, str]
"""The cells of a record that say something, by their columns in small letters."""

_WANTED = re.compile(
    r"id|(?:long|short|chit)?name|price|askprice|mod\d+|category|itemid|parent"
    r"|item\d*|min(?:imum)?|max(?:imum)?"
)
_MOST_BYTES = 64 << 20


def find_table(folder: Path, name: str) -> Path | None:
    """Return the file of that name, whatever the case of its letters; None where it is missing."""
    wanted = f"{name}.dbf".casefold()
    try:
        return next((path for path in folder.iterdir() if path.name.casefold() == wanted), None)
    except OSError as failure:
        raise ExportUnreadable(
            _("{path} is not there.").format(path=str(folder)),
            place=str(folder),
            fix=_("Correct the option folder, or connect the share again."),
            passing=True,
        ) from failure


def read_table(path: Path, encoding: str | None) -> Sequence[Row]:
    """Return the rows that are not deleted. Raises ExportUnreadable."""
    with reading_whole(path):
        with open_shared(path) as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ExportUnreadable(
                _("{name} has more than {most} MB; no menu is that large.").format(
                    name=path.name, most=_MOST_BYTES >> 20
                ),
                place=path.name,
                fix=_("Check that the option folder is Aloha's DATA or NEWDATA."),
            )
        table = Table.of(path.name, content, _WANTED)
        texts = table.texts()
        page = encoding or code_page(table.header, texts)
        if not fits(b" ".join(texts), page):
            raise ExportUnreadable(
                _("{name} is not written in {page}.").format(name=path.name, page=page),
                place=path.name,
                fix=_("Correct the option encoding, or leave it out."),
            )
        return table.rows(page)
