"""Hypothesis profiles; a fixture belongs beside the tests that use it, or in tests/support."""

import os

import pytest
from hypothesis import HealthCheck, settings

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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let goldens be written anew."""
    parser.addoption(
        "--renew-goldens", action="store_true", help="write tests/goldens anew instead of comparing"
    )
