"""The adapter is right by the suite on real servers, and reads each case as expected."""

from pathlib import Path

import pytest

import tillbridge_sql
from tillbridge.adapter.conformance import case_tests, conformance_tests, read_quality
from tillbridge_sql.adapter import ADAPTER
from tillbridge_sql.rig import MariadbRig, PostgresqlRig
from tillbridge_sql.rig_servers import missing

QUALITY = read_quality(Path(tillbridge_sql.__file__).with_name("quality.toml"))

test_postgresql = pytest.mark.skipif(
    bool(missing("postgresql")), reason=missing("postgresql") or "there"
)(conformance_tests(PostgresqlRig, QUALITY))
test_mariadb = pytest.mark.skipif(bool(missing("mariadb")), reason=missing("mariadb") or "there")(
    conformance_tests(MariadbRig, QUALITY)
)
test_case = case_tests(ADAPTER, Path(__file__).with_name("cases"))
