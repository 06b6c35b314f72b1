"""Each profile on the tables of its till, on PostgreSQL and on MariaDB."""

import pytest

from tillbridge.adapter.conformance import CHECKS, Check, Outcome, run_check
from tillbridge.adapter.conformance.subject import Subject
from tillbridge_sql.rig_marks import on_servers
from tillbridge_sql.rig_profiles import (
    ChromisOnMariadb,
    ChromisOnPostgresql,
    FloreantOnMariadb,
    FloreantOnPostgresql,
    ProfileRig,
    UnicentaOnMariadb,
    UnicentaOnPostgresql,
)

TILLS: tuple[type[ProfileRig], ...] = (
    UnicentaOnPostgresql,
    UnicentaOnMariadb,
    ChromisOnPostgresql,
    ChromisOnMariadb,
    FloreantOnPostgresql,
    FloreantOnMariadb,
)
OF_ALL = (
    *("reads", "unicode", "rounding", "identity", "sold_out", "tables", "probe"),
    *("same_order_twice", "lost_answer", "unknown_item", "closed", "cancel"),
)


every_till = pytest.mark.parametrize("till", on_servers(*TILLS))


@every_till
@pytest.mark.parametrize(
    "check", [each for each in CHECKS if each.name in OF_ALL], ids=lambda each: each.name
)
def test_a_profile_keeps_the_rules(till: type[ProfileRig], check: Check) -> None:
    result = run_check(check, Subject(till))
    assert result.outcome is Outcome.PASSED, f"{result.text} {result.fix}"
