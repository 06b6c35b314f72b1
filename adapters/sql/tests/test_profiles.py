"""Each profile on the tables of its till, on PostgreSQL and on MariaDB."""

import pytest

from tillbridge.adapter.conformance import CHECKS, Check, Outcome, run_check
from tillbridge.adapter.conformance.subject import Subject
from tillbridge_sql.rig_profiles import (
    ChromisOnMariadb,
    ChromisOnPostgresql,
    FloreantOnMariadb,
    FloreantOnPostgresql,
    ProfileRig,
    UnicentaOnMariadb,
    UnicentaOnPostgresql,
)
from tillbridge_sql.rig_servers import missing

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


def there(till: type[ProfileRig]) -> pytest.MarkDecorator:
    why = missing("postgresql" if "Postgresql" in till.__name__ else "mariadb")
    return pytest.mark.skipif(bool(why), reason=why or "there")


every_till = pytest.mark.parametrize(
    "till", [pytest.param(till, marks=there(till), id=till.__name__) for till in TILLS]
)


@every_till
@pytest.mark.parametrize(
    "check", [each for each in CHECKS if each.name in OF_ALL], ids=lambda each: each.name
)
def test_a_profile_keeps_the_rules(till: type[ProfileRig], check: Check) -> None:
    result = run_check(check, Subject(till))
    assert result.outcome is Outcome.PASSED, f"{result.text} {result.fix}"
