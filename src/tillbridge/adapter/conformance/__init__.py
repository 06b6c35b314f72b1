"""The conformance suite: by one command, a vendor knows whether an adapter is right.

In a vendor's tests, with `RIG` being the till for tests beside the adapter:

- `from tillbridge.adapter.conformance import conformance_tests`
- `from tillbridge_mytill.rig import RIG`
- `test_conformance = conformance_tests(RIG)`
"""

from tillbridge.adapter.conformance.cases import Case, case_folders, run_case
from tillbridge.adapter.conformance.rig import CannotDo, Rig, RigTicket, TicketLine
from tillbridge.adapter.conformance.subject import (
    CAPABILITIES,
    CheckResult,
    Outcome,
    Report,
    Violation,
    capabilities_of,
)
from tillbridge.adapter.conformance.suite import (
    CHECKS,
    LEVELS,
    Check,
    Quality,
    QualityError,
    case_tests,
    conformance_tests,
    read_quality,
    run_check,
    run_suite,
)

__all__ = [
    "CAPABILITIES",
    "CHECKS",
    "LEVELS",
    "CannotDo",
    "Case",
    "Check",
    "CheckResult",
    "Outcome",
    "Quality",
    "QualityError",
    "Report",
    "Rig",
    "RigTicket",
    "TicketLine",
    "Violation",
    "capabilities_of",
    "case_folders",
    "case_tests",
    "conformance_tests",
    "read_quality",
    "run_case",
    "run_check",
    "run_suite",
]
