"""A link in the till's folder that is changed after its path was checked opens nothing of ours."""

import errno
import os
from pathlib import Path

import pytest

from tests.support.folder_till import menu_till
from tillbridge.adapter import ExportUnreadable, ReadsCatalogue
from tillbridge.adapter.sharing import open_shared, read_shared
from tillbridge.core import files
from tillbridge.core.files import NotTheTills, claim_file, claim_folder, is_own

MENU = "external_id,name,price\n1,Soup,1\n"


@pytest.fixture(autouse=True)
def nothing_else_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_files", set())
    monkeypatch.setattr(files, "_folders", set())
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return the bridge's own folder, with a key in it."""
    folder = tmp_path / "data"
    (folder / "secrets").mkdir(parents=True)
    (folder / "ledger.key").write_text("the key\n")
    (folder / "secrets" / "password").write_text("the password\n")
    claim_folder(folder)
    return folder


@pytest.fixture
def till(tmp_path: Path) -> Path:
    folder = tmp_path / "till"
    folder.mkdir()
    (folder / "menu.csv").write_text(MENU)
    return folder


def test_what_the_till_writes_is_read(data: Path, till: Path) -> None:
    assert read_shared(till / "menu.csv").decode() == MENU
    (till / "link.csv").symlink_to(till / "menu.csv")
    assert read_shared(till / "link.csv").decode() == MENU


@pytest.mark.parametrize("target", ["ledger.key", "secrets/password"])
def test_a_link_changed_after_the_check_is_refused_when_it_is_opened(
    data: Path, till: Path, target: str
) -> None:
    link = till / "export.csv"
    link.symlink_to(till / "menu.csv")
    assert not is_own(link), "so much for the check"
    link.unlink()
    link.symlink_to(data / target)
    with pytest.raises(NotTheTills):
        open_shared(link)
    linked_folder = till / "folder"
    linked_folder.symlink_to((data / target).parent)
    with pytest.raises(NotTheTills):
        open_shared(linked_folder / Path(target).name)


def test_a_link_that_is_changed_back_before_the_look_is_refused_all_the_same(
    data: Path, till: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is opened through the bad link, and looked at through the good one."""
    link = till / "export.csv"
    link.symlink_to(data / "ledger.key")
    looks = 0
    refuse = files.refuse

    def look(path: Path, descriptor: int) -> None:
        nonlocal looks
        looks += 1
        link.unlink()
        link.symlink_to(till / "menu.csv")
        try:
            refuse(path, descriptor)
        finally:
            link.unlink()
            link.symlink_to(data / "ledger.key")

    monkeypatch.setattr(files, "refuse", look)
    with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
        open_shared(link)
    assert looks == 3, "it was tried again, since a till may replace its export at any moment"


def test_the_configuration_and_its_secrets_are_refused_by_any_name(till: Path) -> None:
    secret = till / "client_secret"
    secret.write_text("s3cret")
    claim_file(secret)
    for path in (secret, till / "link"):
        if path != secret:
            path.symlink_to(secret)
        with pytest.raises(NotTheTills):
            open_shared(path)


def test_an_export_that_a_person_put_into_the_data_folder_is_read(data: Path, till: Path) -> None:
    """By its own path, as the configuration names it; not by a link from there to a secret."""
    (data / "export").mkdir()
    (data / "export" / "menu.csv").write_text(MENU)
    assert read_shared(data / "export" / "menu.csv").decode() == MENU
    (data / "export" / "link.csv").symlink_to(data / "ledger.key")
    with pytest.raises(NotTheTills):
        open_shared(data / "export" / "link.csv")


def test_a_data_folder_behind_a_link_is_known_by_both_names(tmp_path: Path, till: Path) -> None:
    real = tmp_path / "disk"
    real.mkdir()
    (real / "ledger.key").write_text("key")
    (real / "menu.csv").write_text(MENU)
    (tmp_path / "var").symlink_to(real)
    claim_folder(tmp_path / "var")
    assert is_own(real / "ledger.key")
    assert read_shared(tmp_path / "var" / "menu.csv").decode() == MENU
    (till / "link").symlink_to(real / "ledger.key")
    with pytest.raises(NotTheTills):
        open_shared(till / "link")


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux")
def test_the_systems_files_are_refused(data: Path, till: Path) -> None:
    (till / "link").symlink_to("/proc/self/environ")
    with pytest.raises(NotTheTills):
        open_shared(till / "link")


def test_the_store_says_that_its_export_is_a_link_to_the_bridge(data: Path, till: Path) -> None:
    pos = menu_till(till, MENU)
    assert isinstance(pos, ReadsCatalogue)
    assert pos.read_catalogue().items
    (till / "menu.csv").unlink()
    (till / "menu.csv").symlink_to(data / "ledger.key")
    with pytest.raises(ExportUnreadable) as caught:
        pos.read_catalogue()
    assert "the key" not in str(caught.value)
    assert "a file of the bridge" in caught.value.text
    assert caught.value.fix
