"""Hypothesis profiles, and what no test leaves behind; other fixtures belong beside their tests."""

import gc
import os
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import structlog
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

from tillbridge.core import files

gc.disable()  # until all is collected: what is imported and collected stays

# A test of properties tries a few examples in each of many runs, and many in the run of the night.
# A deadline per example would make tests fail on a busy machine: pytest-timeout catches hangs.
settings.register_profile(
    "default", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# The same examples every time, so that a red build can be repeated.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("nightly", settings.get_profile("default"), max_examples=1000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default")
)
# What the program logs in a test's own process. As structlog comes, it draws each traceback in
# colours, with the values of all variables: half a second of a processor for a deep one.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)


@pytest.fixture(autouse=True)
def _claims_end_with_their_test() -> Iterator[None]:
    """Forget the files that this test's ledgers claimed: each read of an export looks at all."""
    before = set(files._folders), set(files._files)
    yield
    files._folders.intersection_update(before[0])
    files._files.intersection_update(before[1])


_ON_A_SERVER = pytest.param("postgresql", marks=pytest.mark.xdist_group("ledger-postgresql"))


@pytest.fixture(params=["sqlite", _ON_A_SERVER])
def each_database(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test twice, with its ledgers in SQLite and in PostgreSQL; return which."""
    if request.param == "sqlite":
        yield request.param
        return
    from tests.support.postgresql import instead_of_files
    from tillbridge_sql.rig_servers import missing

    if why := missing("postgresql"):
        pytest.skip(why)
    with instead_of_files():
        yield request.param


@pytest.fixture(autouse=os.environ.get("TEST_LEDGERS") == "postgresql")
def _ledgers_on_a_server(request: pytest.FixtureRequest) -> Iterator[None]:
    """With TEST_LEDGERS=postgresql, run all tests with PostgreSQL: those of SQLite's file fail."""
    from tests.support.postgresql import instead_of_files

    with nullcontext() if "each_database" in request.fixturenames else instead_of_files():
        yield


def pytest_collection_finish() -> None:
    """Leave thousands of collected tests out of every collection of garbage."""
    gc.freeze()
    gc.set_threshold(
        10_000
    )  # of what a test leaves, hundreds of collections took a tenth of the time
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Let all workers fork their commands from one process that has imported them."""
    if (
        hasattr(os, "fork")
        and config.getvalue("numprocesses")
        and not hasattr(config, "workerinput")
    ):
        from tests.support.fork_server import start_for_workers

        start_for_workers()


class _Scheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist ships no types
    """Forgets what is done: after each test xdist counts what a worker has been given at all."""

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        super().mark_test_complete(node, item_index, duration)
        scope = self._split_scope(self.registered_collections[node][item_index])
        given = self.assigned_work[node]
        if all(given[scope].values()):
            del given[scope]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadGroupScheduling | None:
    """Hand out tests without the time that xdist takes the more of the more tests there are."""
    return _Scheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let goldens be written anew."""
    parser.addoption(
        "--renew-goldens", action="store_true", help="write tests/goldens anew instead of comparing"
    )
