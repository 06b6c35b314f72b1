"""One order, one ticket, whatever the till answers to the write."""

from collections.abc import Callable

import pytest

from tillbridge.adapter import (
    PosFailure,
    PosOffline,
    StoreClosed,
    Ticket,
    TicketOutcomeUnknown,
    written_once,
)


class _Till:
    """Finds its ticket from the call number `found_at` on; writing raises `failure`, if any."""

    def __init__(self, found_at: int, failure: Exception | None = None) -> None:
        self._found_at = found_at
        self._failure = failure
        self.calls: list[str] = []

    def find(self) -> Ticket | None:
        self.calls.append("find")
        return Ticket("A-1") if self.calls.count("find") >= self._found_at else None

    def write(self) -> Ticket:
        self.calls.append("write")
        if self._failure is not None:
            raise self._failure
        return Ticket("A-2")


def test_a_ticket_that_is_there_is_not_written_again() -> None:
    till = _Till(1)
    assert written_once(till.find, till.write) == Ticket("A-1")
    assert till.calls == ["find"]


def test_a_ticket_that_is_not_there_is_written() -> None:
    till = _Till(9)
    assert written_once(till.find, till.write) == Ticket("A-2")
    assert till.calls == ["find", "write"]


@pytest.mark.parametrize("refusal", [PosFailure("There is one."), StoreClosed("Closed.")])
def test_a_till_that_refuses_because_it_has_the_ticket_has_it(refusal: Exception) -> None:
    till = _Till(2, refusal)
    assert written_once(till.find, till.write) == Ticket("A-1")
    assert till.calls == ["find", "write", "find"]


@pytest.mark.parametrize("failure", [PosFailure("No."), StoreClosed("Closed."), KeyError("number")])
def test_a_refusal_without_a_ticket_is_a_refusal(failure: Exception) -> None:
    till = _Till(9, failure)
    with pytest.raises(type(failure)) as raised:
        written_once(till.find, till.write)
    assert raised.value is failure


@pytest.mark.parametrize("failure", [PosOffline("Away."), TicketOutcomeUnknown("Lost.")])
def test_a_till_that_did_not_answer_is_not_asked_at_once(failure: Exception) -> None:
    till = _Till(2, failure)
    with pytest.raises(type(failure)):
        written_once(till.find, till.write)
    assert till.calls == ["find", "write"]


def test_what_is_unknown_before_the_write_is_not_written() -> None:
    def away() -> Ticket | None:
        raise PosOffline("Away.")

    write: Callable[[], Ticket] = _Till(9).write
    with pytest.raises(PosOffline):
        written_once(away, write)
