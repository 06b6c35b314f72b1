"""Real database servers for tests: on a loopback port and in a folder of their own.

As Debian's packages postgresql and mariadb-server have them. They refuse to run as root, so there
another user runs them. One of each is started for a process when it is first wanted, and stopped
at its end.
"""

import atexit
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import URL, create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

USER, PASSWORD = "till", "Keep-it-secret:1"
_START_S = 60.0


class NoServer(Exception):
    """There is no such server on this machine; the text says what to install."""


class Server(ABC):
    """A server that was started; databases are made in it as tests want them."""

    package: ClassVar[str]
    users: ClassVar[Sequence[str]]
    driver: ClassVar[str]
    maintenance: ClassVar[str]

    def __init__(self) -> None:
        self.user = _unprivileged(self.users)
        # Another user must come through to it, which root's own folders may not allow.
        usual = Path(tempfile.gettempdir()).resolve()
        open_ = self.user is None or all(
            each.stat().st_mode & stat.S_IXOTH for each in (usual, *usual.parents)
        )
        place = usual if open_ else "/tmp"  # noqa: S108 -- in a folder of its own there
        self.folder = Path(tempfile.mkdtemp(prefix="till-server-", dir=place))
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0
        # By kind of till: the databases made for it, and those that nobody uses now.
        self.made: dict[str, set[str]] = {}
        self.free_databases: dict[str, list[str]] = {}
        if self.user is not None:
            shutil.chown(self.folder, self.user, _group(self.user))
        try:
            self.prepare()
            self.start()
        except BaseException:
            self.remove()
            raise
        atexit.register(self.remove)

    @abstractmethod
    def prepare(self) -> None:
        """Make the data folder."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return how the server is started."""

    def url(self, database: str, port: int | None = None) -> URL:
        """Return where a database of it is, with the password."""
        return URL.create(
            self.driver, USER, PASSWORD, "127.0.0.1", port or self.port, database or None
        )

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        until = time.monotonic() + _START_S
        while not self._answers():
            # One that was killed leaves children behind for a moment, and none may start beside.
            if self._process is None or self._process.poll() is not None:
                self._launch()
            if time.monotonic() > until:
                raise NoServer(f"{self.package} did not start: {self._log()}")
            time.sleep(0.05)

    def _launch(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 -- a database server of this machine
                self.command(), stdout=log, stderr=log, cwd=self.folder, **_as_user(self.user)
            )

    def kill(self) -> None:
        """End it at once, without a word to its clients, as when the machine goes down."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(_START_S)
            self._process = None

    def stop(self) -> None:
        """End it as its service manager does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT if self.driver[0] == "p" else signal.SIGTERM)
            try:
                self._process.wait(_START_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
            self._process = None

    def remove(self) -> None:
        """End it, and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def make_database(self, options: str = "") -> str:
        """Make an empty database and return its name."""
        self._made += 1
        name = f"till_{self._made}"
        self.run(f"CREATE DATABASE {name} {options}")
        return name

    def run(self, statement: str, database: str = "") -> None:
        """Run a statement as the server's keeper."""
        engine = create_engine(
            self.url(database or self.maintenance), poolclass=NullPool, isolation_level="AUTOCOMMIT"
        )
        with engine.connect() as connection:
            connection.execute(text(statement))

    def _run(self, *command: str) -> None:
        done = subprocess.run(  # noqa: S603 -- as above
            command, capture_output=True, check=False, cwd=self.folder, **_as_user(self.user)
        )
        if done.returncode:
            raise NoServer(f"{command[0]}: {done.stderr.decode(errors='replace')[-500:]}")

    def _answers(self) -> bool:
        try:
            self.run("SELECT 1")
        except SQLAlchemyError:
            return False
        return True

    def _log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")[-500:]


class Postgresql(Server):
    """PostgreSQL, as Debian's package `postgresql` has it."""

    package = "postgresql"
    users = ("postgres", "nobody")
    driver = "postgresql+psycopg"
    maintenance = "postgres"

    def prepare(self) -> None:
        """Run initdb."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        self._run(
            *(postgresql_program("initdb"), "-D", str(self.folder / "data"), "-U", USER),
            *("--pwfile", str(secret), "--auth=scram-sha-256", "-E", "UTF8", "--locale=C"),
            "--no-sync",
        )

    def command(self) -> Sequence[str]:
        """Return the postmaster's, told not to wait for the disk."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "16MB",
            "max_connections": "200",
            "deadlock_timeout": "600ms",
        }
        options = (part for name, value in settings.items() for part in ("-c", f"{name}={value}"))
        return [postgresql_program("postgres"), "-D", str(self.folder / "data"), *options]


class Mariadb(Server):
    """MariaDB, as Debian's package `mariadb-server` has it."""

    package = "mariadb-server"
    users = ("mysql", "nobody")
    driver = "mariadb+pymysql"
    maintenance = ""

    def prepare(self) -> None:
        """Make the system's tables."""
        install = _found("mariadb-install-db", "mariadb-server")
        self._run(
            *(install, "--no-defaults", f"--datadir={self.folder / 'data'}", "--skip-test-db"),
            *("--auth-root-authentication-method=normal", f"--tmpdir={self.folder}"),
        )
        (self.folder / "init.sql").write_text(
            f"CREATE USER IF NOT EXISTS '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO '{USER}'@'127.0.0.1' WITH GRANT OPTION;\n"
        )

    def command(self) -> Sequence[str]:
        """Return the server's, told not to wait for the disk."""
        return [
            _found("mariadbd", "mariadb-server"),
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            f"--tmpdir={self.folder}",  # in one that it shared it would clear away another's
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            f"--init-file={self.folder / 'init.sql'}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-size=16M",
            "--innodb-log-file-size=8M",
            "--innodb-flush-method=nosync",
            "--key-buffer-size=1M",
        ]


@cache
def postgresql() -> Server:
    """Return this process's PostgreSQL. Raises NoServer."""
    _postgresql()
    _driver("psycopg", "psycopg, and libpq")
    return Postgresql()


@cache
def mariadb() -> Server:
    """Return this process's MariaDB. Raises NoServer."""
    _found("mariadbd", "mariadb-server")
    _driver("pymysql", "PyMySQL")
    return Mariadb()


def missing(server: str) -> str:
    """Return why there can be no `postgresql` or `mariadb` here; "" where there can."""
    try:
        if server == "postgresql":
            _postgresql()
            _driver("psycopg", "psycopg, and libpq")
        else:
            _found("mariadbd", "mariadb-server")
            _driver("pymysql", "PyMySQL")
        _unprivileged(Postgresql.users if server == "postgresql" else Mariadb.users)
    except NoServer as reason:
        return str(reason)
    return ""


def postgresql_program(name: str) -> str:
    """Return where a program of the server is. Raises NoServer."""
    here = _postgresql()  # some machines have links there to the programs that are used most
    return str(
        (here / name) if (here / name).exists() else (here / "postgres").resolve().parent / name
    )


def _postgresql() -> Path:
    """Return the folder of PostgreSQL's programs: Debian keeps them out of PATH."""
    here = shutil.which("postgres")
    folders = [Path(here).parent] if here else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoServer("There is no PostgreSQL here; on Debian: apt-get install postgresql.")


def _found(program: str, package: str) -> str:
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")
    if path is None:
        raise NoServer(f"There is no {program} here; on Debian: apt-get install {package}.")
    return path


def _driver(module: str, name: str) -> None:
    try:
        __import__(module)
    except ImportError as failure:
        raise NoServer(f"There is no {name} here ({failure}).") from failure


def _unprivileged(users: Sequence[str]) -> str | None:
    """Return who runs the server: this user (None), or for root one who is not."""
    if not hasattr(os, "getuid") or os.getuid():
        return None
    for user in users:
        try:
            _group(user)
        except KeyError:
            continue
        return user
    raise NoServer(f"Root may not run the server, and there is no user {users[0]}.")


def _as_user(user: str | None) -> dict[str, Any]:
    if user is None:
        return {}
    return {"user": user, "group": _group(user), "extra_groups": []}


def _group(user: str) -> int:
    """Return the group of a user of this system. Raises KeyError."""
    import pwd  # noqa: PLC0415 -- Windows has none, and no root either

    return pwd.getpwnam(user).pw_gid


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
