"""The adapter is right by the suite, and reads each case as expected."""

from pathlib import Path

import pytest

import tillbridge_odoo
from tillbridge.adapter.conformance import case_tests, conformance_tests, read_quality
from tillbridge_odoo.adapter import ADAPTER
from tillbridge_odoo.rig import RIG

QUALITY = read_quality(Path(tillbridge_odoo.__file__).with_name("quality.toml"))

test_conformance = conformance_tests(RIG, QUALITY)
test_conformance_of_18 = pytest.mark.slow(
    reason="as 17 and 19; the tests of orders and of polling see in short what is 18's own"
)(conformance_tests(type("Odoo18", (RIG,), {"version": 18}), QUALITY))
test_conformance_of_19 = conformance_tests(type("Odoo19", (RIG,), {"version": 19}), QUALITY)
test_conformance_of_paid = conformance_tests(type("Paid", (RIG,), {"orders": "paid"}), QUALITY)
test_case = case_tests(ADAPTER, Path(__file__).with_name("cases"))
