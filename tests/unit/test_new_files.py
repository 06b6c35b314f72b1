"""What another user of the machine puts into a folder makes the bridge overwrite nothing."""

import os
import sys
import time
from pathlib import Path

import pytest

from tests.support.folder_till import open_till
from tillbridge.adapter import PosOffline
from tillbridge.core.files import NotOurFolder, create_new, make_own_folder, write_new
from tillbridge.ledger.database import write_durably
from tillbridge.model.order import parse_order
from tillbridge.pos.folder import updates
from tillbridge_printer.journal import Journal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")

SECRET = b"all tokens of the bridge"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A file of the bridge that must stay as it is."""
    path = tmp_path / "data" / "ledger.vault"
    path.parent.mkdir()
    path.write_bytes(SECRET)
    return path


def test_a_link_is_replaced_and_never_followed(tmp_path: Path, vault: Path) -> None:
    place = tmp_path / "note"
    place.symlink_to(vault)
    write_new(place, b"new")
    assert (place.read_bytes(), place.is_symlink()) == (b"new", False)
    assert vault.read_bytes() == SECRET


def test_what_appears_between_removing_and_making_is_refused(
    tmp_path: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "note"
    monkeypatch.setattr(Path, "unlink", lambda path: path.symlink_to(vault))
    with pytest.raises(FileExistsError):
        create_new(place)
    assert vault.read_bytes() == SECRET


@pytest.mark.parametrize("journal", ["orders/.tillbridge", "orders/cancelled/.tillbridge"])
def test_no_link_in_a_journal_of_orders_overwrites_a_file(
    tmp_path: Path, vault: Path, journal: str
) -> None:
    (tmp_path / journal).mkdir(parents=True)
    for ending in ("part", "sent"):
        (tmp_path / journal / f"ord_1.{ending}").symlink_to(vault)
    if journal.startswith("orders/."):  # a mark that is there would mean that the order is out
        (tmp_path / journal / "ord_1.sent").unlink()
    till = open_till(tmp_path, orders_dir="orders")
    order = parse_order({"id": "ord_1", "items": []})
    till.write_ticket(order, "ord_1")
    till.cancel_ticket(order, "ord_1", "OTHER")
    assert vault.read_bytes() == SECRET


def test_a_journal_that_is_a_link_is_refused_by_name(tmp_path: Path, vault: Path) -> None:
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / ".tillbridge").symlink_to(vault.parent)
    till = open_till(tmp_path, orders_dir="orders")
    with pytest.raises(PosOffline, match=r"\.tillbridge is a link; remove it"):
        till.write_ticket(parse_order({"id": "ord_1", "items": []}), "ord_1")
    assert [each.name for each in vault.parent.iterdir()] == [vault.name]


def test_a_journal_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    folder = tmp_path / "theirs"
    folder.mkdir()
    try:
        os.chown(folder, 54_321, -1)
    except PermissionError:
        pytest.skip("needs root")
    with pytest.raises(NotOurFolder, match="another user"):
        make_own_folder(folder)


def test_a_share_that_shows_all_as_one_users_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folder and new files belong to somebody who is not us: a share maps all of them."""
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    make_own_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_link_beside_the_vault_is_not_followed(tmp_path: Path, vault: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"as it was")
    vault.with_name("ledger.vault.new").symlink_to(other)
    write_durably(vault, b"renewed")
    assert (vault.read_bytes(), other.read_bytes()) == (b"renewed", b"as it was")


def test_no_link_in_the_printers_journal_overwrites_a_file(tmp_path: Path, vault: Path) -> None:
    folder = tmp_path / "journal" / "main"
    folder.mkdir(parents=True)
    (folder / "ord_1.part").symlink_to(vault)
    journal = Journal(folder)
    journal.begin("ord_1")
    journal.done("ord_1", "17")
    assert journal.printed("ord_1") == "17"
    assert vault.read_bytes() == SECRET
    linked = Journal(tmp_path / "linked")
    linked.folder.symlink_to(vault.parent)
    with pytest.raises(NotOurFolder):
        linked.begin("ord_1")


def test_why_news_was_refused_is_neither_written_nor_read_through_a_link(
    tmp_path: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updates, "_SETTLE_S", 0)
    till = open_till(tmp_path, updates_dir="updates")
    bad = tmp_path / "updates" / "bad"
    bad.mkdir(parents=True)
    (bad / "x.json.error").symlink_to(vault)
    (bad / "y.json.error").symlink_to(vault)
    (bad / "y.json").write_text("{}")
    (tmp_path / "updates" / "x.json").write_text("no news")
    till.read_updates()
    time.sleep(0.01)
    till.read_updates()
    assert vault.read_bytes() == SECRET
    assert [row.place for row in till.unreadable_updates()] == ["bad/x.json"]
