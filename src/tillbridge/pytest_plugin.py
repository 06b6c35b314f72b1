"""The conformance suite as a plugin of pytest, in a vendor's own repository.

`pytest --tillbridge-adapter NAME`, or `tillbridge_adapter = "."` in pytest's configuration, tries
an adapter without a line of test code: one test for each check, document and case folder. The
fixture `tillbridge_till` is a fresh till for tests of one's own. `docs/adapters/testing.md`.

pytest loads this in every environment that has tillbridge, so it imports nothing heavy by itself.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tillbridge.adapter.conformance import CheckResult, Rig
    from tillbridge.pos.kit import Kit
    from tillbridge.pos.verdict import KitVerdict, PlannedCheck

_PROPERTY = "tillbridge"
_KITS = pytest.StashKey["dict[str, Kit]"]()
_WIDEST = 200


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("tillbridge", "conformance of adapters for tills")
    group.addoption(
        "--tillbridge-adapter",
        action="append",
        metavar="NAME",
        help="try this adapter: its name, module:ATTR, or the folder of its package; repeatable",
    )
    group.addoption(
        "--tillbridge-report",
        metavar="FILE",
        help="write what came of it as JSON (docs/adapters/report.schema.json)",
    )
    parser.addini(
        "tillbridge_adapter", "adapters that are tried at each run", type="args", default=[]
    )


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker."""
    config.addinivalue_line(
        "markers", "tillbridge(check): a check of an adapter for tillbridge; made by its plugin"
    )
    config.pluginmanager.register(_Results(config), "tillbridge-results")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Add a test for each thing to try, before those of the repository."""
    made: list[pytest.Item] = []
    for name, kit in _kits(session.config).items():
        collector = _Adapter.from_parent(session, name=f"tillbridge:{kit.adapter.name}")
        collector.kit = kit
        collector.asked_for = name
        made += collector.collect()
    items[:0] = made


class _Adapter(pytest.Collector):
    """One adapter."""

    kit: "Kit"
    asked_for: str

    def collect(self) -> Iterable["_Try"]:
        """Return a test for each thing to try."""
        from tillbridge.pos.verdict import planned_checks  # noqa: PLC0415 -- only where it is used

        for planned in planned_checks(self.kit):
            test = _Try.from_parent(self, name=planned.name)
            test.planned = planned
            test.add_marker(pytest.mark.tillbridge(planned.name))
            yield test


class _Try(pytest.Item):
    """One check, document or case of one adapter."""

    planned: "PlannedCheck"

    def runtest(self) -> None:
        """Run it. A rule that is declared as done must pass, one that is exempt need not."""
        result = self.planned.run()
        complaint = self.planned.complaint(result)
        report = {"adapter": self._adapter.asked_for, "result": result.to_json()}
        self.user_properties.append((_PROPERTY, json.dumps(report)))
        if complaint:
            raise _Complaint(complaint)
        if result.outcome.value != "passed":
            pytest.skip(self._why_not(result))

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: Any = None,  # noqa: ANN401 -- as pytest has it
    ) -> Any:  # noqa: ANN401 -- (as above)
        """Return what is wrong in words; a traceback of the suite would help nobody."""
        if isinstance(excinfo.value, _Complaint):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def _why_not(self, result: "CheckResult") -> str:
        if self.planned.exempt:
            return f"exempt: {self.planned.exempt}"
        return f"todo, as quality.toml says: {result.text}"

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return how it is called."""
        return self._adapter.kit.package, None, f"{self._adapter.name}: {self.name}"

    @property
    def _adapter(self) -> _Adapter:
        parent = self.parent
        if not isinstance(parent, _Adapter):  # pragma: no cover -- it is made by one
            raise TypeError(parent)
        return parent


class _Complaint(Exception):
    """What is wrong with the adapter, and what to do."""


class _Results:
    """What came of the tests, wherever they ran: the table, and the report."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._reports: dict[str, list[dict[str, Any]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what came of a test."""
        for name, value in report.user_properties if report.when == "call" else ():
            if name == _PROPERTY and isinstance(value, str):
                document = json.loads(value)
                self._reports.setdefault(document["adapter"], []).append(document["result"])

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:  # noqa: ANN401 -- pytest's, not public
        """Show the table, and write the report."""
        verdicts = [
            _verdict(kit, self._reports[name])
            for name, kit in _kits(self._config).items()
            if name in self._reports
        ]
        for verdict in verdicts:
            terminalreporter.section(f"tillbridge: {verdict.report.adapter}")
            for result in verdict.report.results:
                shown = verdict.shown_outcome(result)
                reason = verdict.exemption(result.check) if shown == "exempt" else ""
                text = (reason or result.text).partition("\n")[0]
                line = f"{shown:<10} {result.title}: {text}"
                terminalreporter.line(line[:_WIDEST])
            in_part = "" if verdict.whole else " (not all was tried)"
            terminalreporter.line(f"level: {verdict.level}{in_part}")
        path = self._config.getoption("--tillbridge-report")
        if path and verdicts:
            documents = [verdict.to_json() for verdict in verdicts]
            whole = documents[0] if len(documents) == 1 else {"adapters": documents}
            text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
            Path(path).write_text(text, "utf-8")


def _verdict(kit: "Kit", reports: list[dict[str, Any]]) -> "KitVerdict":
    from tillbridge.adapter.conformance import CheckResult, Outcome  # noqa: PLC0415 -- (as above)
    from tillbridge.pos.verdict import planned_checks, verdict_of  # noqa: PLC0415 -- (as above)

    results: dict[str, CheckResult] = {}
    for each in reports:
        results[each["check"]] = CheckResult(**{**each, "outcome": Outcome(each["outcome"])})
    in_order = [planned.name for planned in planned_checks(kit)]
    return verdict_of(kit, [results[name] for name in in_order if name in results])


def _kits(config: pytest.Config) -> "dict[str, Kit]":
    """Return the adapters to try, by what they were asked for as."""
    if _KITS not in config.stash:
        names = config.getoption("--tillbridge-adapter") or config.getini("tillbridge_adapter")
        found: dict[str, Kit] = {}
        for name in names:
            found[name] = _kit(name, config)
        config.stash[_KITS] = found
    return config.stash[_KITS]


def _kit(name: str, config: pytest.Config) -> "Kit":
    from tillbridge.core.errors import BridgeError  # noqa: PLC0415 -- (as above)
    from tillbridge.pos.kit import find_kit  # noqa: PLC0415 -- (as above)

    folder = config.rootpath / name
    try:
        kit = find_kit(str(folder) if folder.is_dir() else name)
    except BridgeError as failure:
        raise pytest.UsageError(str(failure)) from failure
    if kit.rig is None:
        raise pytest.UsageError(
            f"The adapter {kit.adapter.name} has no rig: write RIG in {kit.package.name}/rig.py."
        )
    return kit


@pytest.fixture
def tillbridge_till(request: pytest.FixtureRequest) -> Iterator["Rig"]:
    """A till for tests, fresh, of the (first) adapter that is named; `open()` opens the adapter."""
    from tillbridge.adapter.conformance.subject import Subject  # noqa: PLC0415 -- (as above)

    kits = list(_kits(request.config).values())
    if not kits or kits[0].rig is None:
        pytest.fail("Name the adapter: --tillbridge-adapter NAME.", pytrace=False)
    with Subject(kits[0].rig).till() as rig:
        yield rig
