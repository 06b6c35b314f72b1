"""The adapter is right by the suite, with each kind of printer, and its cases hold."""

from dataclasses import replace
from pathlib import Path

import tillbridge_printer
from tillbridge.adapter.conformance import case_tests, conformance_tests, read_quality
from tillbridge_printer.adapter import ADAPTER
from tillbridge_printer.emulated.other_rigs import CloudRig, EposRig
from tillbridge_printer.rig import RIG

QUALITY = read_quality(Path(tillbridge_printer.__file__).with_name("quality.toml"))
# Nobody waits for an answer of a printer that asks.
POLLED = replace(
    QUALITY, done=QUALITY.done - {"slow"}, exempt={**QUALITY.exempt, "slow": "it is it that asks"}
)

test_conformance = conformance_tests(RIG, QUALITY)
test_conformance_of_epos = conformance_tests(EposRig, QUALITY)
test_conformance_of_cloudprnt = conformance_tests(CloudRig, POLLED)
test_case = case_tests(ADAPTER, Path(__file__).with_name("cases"))
