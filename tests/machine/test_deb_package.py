"""The Debian package: the same bytes twice, and a life on a Debian 12 without a network."""

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.machine import Chroot, build_package, fresh_root, needs
from tillbridge import ledger_schemas

LEDGERS = Path(__file__).resolve().parents[1] / "data" / "ledgers"
pytestmark = pytest.mark.timeout(900)

CONFIG = "etc/tillbridge/bridge.toml"
DATA = "var/lib/tillbridge"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("dpkg-deb")
    return build_package(tmp_path_factory.mktemp("package"), version="0.1.0")


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory, package: Path) -> Path:
    return build_package(tmp_path_factory.mktemp("newer"), version="0.1.1")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("mmdebstrap", "chroot")
    return fresh_root(tmp_path_factory.mktemp("debian"))


@pytest.fixture
def debian(tmp_path: Path, pristine: Path) -> Iterator[Chroot]:
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", str(pristine), str(root)], check=True)
    yield Chroot(root)
    shutil.rmtree(root)


def put_ledger(debian: Chroot, version: str, extra: str = "") -> Path:
    """Put a ledger of an earlier version in place, as its bridge left it."""
    path = debian.root / DATA / "ledger.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((LEDGERS / f"{version}.sql").read_text("utf-8") + extra)
    debian.run("chown", "tillbridge:tillbridge", f"/{DATA}/ledger.db")
    return path


def schema_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def configured(debian: Chroot) -> None:
    """Fill in the configuration, as a technician does."""
    secret = debian.root / "etc/tillbridge/credentials/client_secret"
    secret.write_text("hush-hush\n")
    secret.chmod(0o600)
    debian.run("tillbridge", "config", "check")


def test_the_same_sources_give_the_same_bytes(tmp_path: Path, package: Path) -> None:
    again = build_package(tmp_path, version="0.1.0")
    assert again.read_bytes() == package.read_bytes()


def test_lintian_finds_no_error(package: Path) -> None:
    needs("lintian")
    told = subprocess.run(
        ["lintian", "--fail-on=error", "--tag-display-limit=0", str(package)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout


def test_it_installs_without_a_network_and_asks_nothing(debian: Chroot, package: Path) -> None:
    debian.install(package)
    assert debian.run("tillbridge", "--version").stdout.startswith("tillbridge 0.1.0")
    assert "folder" in debian.run("tillbridge", "adapter", "list").stdout
    assert (debian.root / CONFIG).stat().st_mode & 0o777 == 0o640
    key = debian.root / "etc/tillbridge/credentials/ledger_key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(key.read_text().strip()) == 44
    user = debian.run("getent", "passwd", "tillbridge").stdout
    assert user.strip().endswith(":/var/lib/tillbridge:/usr/sbin/nologin")
    configured(debian)
    assert debian.run("dpkg", "--verify", "tillbridge").stdout == ""
    enabled = debian.root / "etc/systemd/system"
    assert (enabled / "timers.target.wants/tillbridge-backup.timer").is_symlink()


def test_it_runs_with_the_newer_python_of_debian_13(tmp_path: Path, package: Path) -> None:
    debian = Chroot(fresh_root(tmp_path, suite="trixie"))
    debian.install(package)
    configured(debian)
    assert '"python": "3.13.' in debian.run("tillbridge", "version", "--json").stdout
    assert "folder" in debian.run("tillbridge", "adapter", "list").stdout
    shutil.rmtree(debian.root)


def test_an_update_keeps_what_is_there_and_migrates_with_a_back_up(
    debian: Chroot, package: Path, newer: Path
) -> None:
    debian.install(package)
    configured(debian)
    config = debian.root / CONFIG
    config.write_text(config.read_text("utf-8") + "# ours\n", "utf-8")
    key = (debian.root / "etc/tillbridge/credentials/ledger_key").read_bytes()
    ledger = put_ledger(debian, "0001")
    debian.install(newer)
    assert schema_of(ledger) == ledger_schemas()[-1]
    (saved,) = (debian.root / DATA / "backups").glob("*.db")
    assert schema_of(saved) == "0001"
    assert saved.stat().st_uid == ledger.stat().st_uid != 0
    assert config.read_text("utf-8").endswith("# ours\n")
    assert (debian.root / "etc/tillbridge/credentials/ledger_key").read_bytes() == key
    assert not (debian.root / "usr/lib/tillbridge/previous").exists()


def test_an_update_that_cannot_take_the_ledger_over_leaves_the_version_before_in_service(
    debian: Chroot, package: Path, newer: Path
) -> None:
    debian.install(package)
    configured(debian)
    mark = debian.root / "usr/lib/tillbridge/site/tillbridge/__init__.py"
    assert "0.1.0" in mark.read_text("utf-8")
    ledger = put_ledger(debian, "0001", "CREATE TABLE menu_past (in_the_way INTEGER);")
    before = ledger.read_bytes()
    done = debian.install(newer, ok=False)
    assert done.returncode != 0
    assert "0.1.0 goes on with it" in done.stderr
    assert ledger.read_bytes() == before
    home = debian.root / "usr/lib/tillbridge"
    assert (home / "rolled-back").exists()
    told = debian.run(
        "tillbridge", "version", "--json"
    ).stdout  # what serves now is the tree from before
    assert '"ledger_on_disk": "0001"' in told
    assert (home / "previous/tillbridge/__init__.py").exists()
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute("DROP TABLE menu_past")
    debian.run("dpkg", "--configure", "tillbridge")
    assert schema_of(ledger) == ledger_schemas()[-1]
    assert not (home / "rolled-back").exists()
    assert not (home / "previous").exists()


def test_removing_keeps_data_and_purging_leaves_nothing(debian: Chroot, package: Path) -> None:
    before = {path for path in debian.root.rglob("*") if "tillbridge" in path.name}
    debian.install(package)
    configured(debian)
    put_ledger(debian, "0001")
    second = debian.root / "etc/tillbridge/bridges/second"
    (second / "credentials").mkdir(parents=True)
    shutil.copy(debian.root / CONFIG, second / "bridge.toml")
    config = debian.root / CONFIG
    config.write_text(
        config.read_text("utf-8").replace(
            '# data_dir = "/var/lib/tillbridge"', 'data_dir = "/srv/elsewhere"'
        ),
        "utf-8",
    )
    offline = ("env", "SYSTEMD_OFFLINE=1", "tillbridge")  # no systemd runs here
    debian.run(*offline, "service", "install", "--no-start")
    debian.run(
        *(*offline, "--config", "/etc/tillbridge/bridges/second/bridge.toml"),
        *("service", "install", "--no-start", "--name", "second"),
    )
    written = debian.root / "etc/systemd/system"
    assert (written / "tillbridge.service").exists()
    assert (written / "multi-user.target.wants/tillbridge@second.service").is_symlink()
    debian.run("dpkg", "--remove", "tillbridge")
    assert (debian.root / DATA / "ledger.db").exists()
    assert (debian.root / CONFIG).exists()
    assert not (debian.root / "usr/lib/tillbridge").exists()
    debian.run("dpkg", "--purge", "tillbridge")
    left = {path for path in debian.root.rglob("*") if "tillbridge" in path.name}
    assert left == before
    assert debian.run("getent", "passwd", "tillbridge", ok=False).returncode == 2
