"""The adapter is right by the suite, and reads each case as expected."""

from pathlib import Path

import tillbridge_aloha
from tillbridge.adapter.conformance import case_tests, conformance_tests, read_quality
from tillbridge_aloha.adapter import ADAPTER
from tillbridge_aloha.rig import RIG

QUALITY = read_quality(Path(tillbridge_aloha.__file__).with_name("quality.toml"))

test_conformance = conformance_tests(RIG, QUALITY)
test_case = case_tests(ADAPTER, Path(__file__).with_name("cases"))
