"""PostgreSQL as a hosted ledger has it: a primary whose commits wait for a synchronous standby."""

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests.support.postgresql import LedgerServer
from tillbridge_sql.rig_servers import PASSWORD, USER, postgresql_program

_NAME = "standby"


class Standby(LedgerServer):
    """A server that follows another one."""

    def __init__(self, primary: LedgerServer) -> None:
        self.primary = primary
        super().__init__()

    def prepare(self) -> None:
        """Copy the primary, which tells it everything from then on."""
        port = self.primary.port
        where = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/?application_name={_NAME}"
        copy = (postgresql_program("pg_basebackup"), "-d", where, "-D", str(self.folder / "data"))
        self._run(*copy, "-X", "stream", "-R", "--checkpoint=fast", "--no-sync")

    def promote(self) -> None:
        """Become a primary; commits wait for nobody then."""
        self._run(postgresql_program("pg_ctl"), "promote", "-w", "-D", str(self.folder / "data"))


class Pair:
    """The two servers with one database. Blocks."""

    def __init__(self) -> None:
        self.primary = LedgerServer()
        self.database = self.primary.make_database("TEMPLATE template0")
        self.standby: Standby | None = None
        self.follow()

    def url(self, port: int, host: str) -> str:
        """Return the database's URL at a place that leads to the primary."""
        where = self.primary.url(self.database, port).set(host=host)
        return where.render_as_string(hide_password=False)

    def follow(self) -> None:
        """Let commits wait for a standby from now on, for a new one if there is none."""
        if self.standby is not None:
            return
        self.standby = Standby(self.primary)
        self.primary.run(f"ALTER SYSTEM SET synchronous_standby_names = '{_NAME}'")
        self.primary.run("SELECT pg_reload_conf()")
        while "sync" not in self.rows("SELECT sync_state FROM pg_stat_replication"):
            self.primary.run("SELECT pg_sleep(0.05)")

    def promote(self, *, kill: bool) -> None:
        """Promote the standby; the primary goes down before (`kill`), or only afterwards."""
        assert self.standby is not None
        old, self.primary, self.standby = self.primary, self.standby, None
        if kill:
            old.kill()
        self.primary.promote()
        old.remove()

    def rows(self, query: str) -> list[str]:
        """Return the first column of what the primary answers."""
        engine = create_engine(self.primary.url(self.database), poolclass=NullPool)
        with engine.connect() as connection:
            return list(connection.scalars(text(query)))

    def close(self) -> None:
        """End both."""
        for server in (self.standby, self.primary):
            if server is not None:
                server.remove()
