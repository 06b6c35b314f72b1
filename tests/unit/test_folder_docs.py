from pathlib import Path

from tillbridge.adapter import RejectReason, TicketStatus
from tillbridge.pos.folder import items
from tillbridge.pos.folder.mapping import MenuMapping, known_formats
from tillbridge.pos.folder.options import FolderOptions

PAGE = Path(__file__).resolve().parents[2] / "docs/adapters/folder.md"


def test_the_page_tells_of_every_option_column_status_and_reason() -> None:
    text = PAGE.read_text("utf-8")
    names = (
        *FolderOptions.model_fields,
        *items.REQUIRED,
        *items.OPTIONAL,
        *(field.alias or name for name, field in MenuMapping.model_fields.items()),
        *(each.value for each in TicketStatus),
        *(each.value for each in RejectReason),
    )
    assert [name for name in names if f"`{name}`" not in text] == []
    assert [name for name in known_formats() if f'"{name}"' not in text] == []
