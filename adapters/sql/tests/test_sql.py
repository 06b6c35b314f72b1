"""The adapter is right by the suite on real servers, and reads each case as expected."""

from pathlib import Path

import tillbridge_sql
from tillbridge.adapter.conformance import case_tests, conformance_tests, read_quality
from tillbridge_sql.adapter import ADAPTER
from tillbridge_sql.rig import MariadbRig, PostgresqlRig
from tillbridge_sql.rig_marks import marks_of

QUALITY = read_quality(Path(tillbridge_sql.__file__).with_name("quality.toml"))

test_postgresql = conformance_tests(PostgresqlRig, QUALITY)
test_mariadb = conformance_tests(MariadbRig, QUALITY)
for mark in marks_of(PostgresqlRig):
    test_postgresql = mark(test_postgresql)
for mark in marks_of(MariadbRig):
    test_mariadb = mark(test_mariadb)
test_case = case_tests(ADAPTER, Path(__file__).with_name("cases"))
