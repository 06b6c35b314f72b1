"""What one bridge asks of another is done once, and its failure comes back as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.core import errors
from tillbridge.core.errors import BridgeError, ConfigError, LedgerLocked
from tillbridge.core.i18n import _
from tillbridge.core.operation import BadRequest, Forbidden
from tillbridge.daemon.peers import failure_of, plain_failure

KINDS = (BridgeError, ConfigError, LedgerLocked, BadRequest, Forbidden, errors.ServiceError)


@given(kind=st.sampled_from(KINDS), text=st.text(), fix=st.text())
def test_a_failure_comes_back_as_it_was(kind: type[BridgeError], text: str, fix: str) -> None:
    found = failure_of(plain_failure(kind(text, fix=fix)))
    assert type(found) is kind
    assert (found.text, found.fix) == (text, fix)


def test_a_failure_of_a_kind_that_needs_more_is_told_all_the_same() -> None:
    found = failure_of(plain_failure(errors.RateLimited("Wait.", retry_after_s=3, fix="Later.")))
    assert (type(found), found.text, found.fix) == (BridgeError, "Wait.", "Later.")


@pytest.mark.parametrize("kind", ["", "os", "Exception", "annotations", "NoSuchError"])
def test_a_kind_that_is_none_is_a_failure_all_the_same(kind: str) -> None:
    assert type(failure_of({"kind": kind, "text": "No.", "fix": ""})) is BridgeError


def test_a_text_is_translated_where_it_is_read() -> None:
    plain = plain_failure(BridgeError(_("The bridge is not running.")))
    assert "The bridge is not running." in str(plain["text"])
