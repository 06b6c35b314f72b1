"""What an answer means for the items of a push."""

from tests.support.catalogues import dishes
from tillbridge.menu.plan import Step
from tillbridge.menu.verdict import Reply, accepted_part, judge

STEP = Step("batch", tuple(dishes(4).items.values()))


def taken(reply: Reply) -> set[str]:
    step = accepted_part(STEP, judge(reply, STEP))
    return set() if step is None else set(step.ids)


def test_success_takes_all_and_an_unknown_word_is_no_failure() -> None:
    assert taken(Reply("success", "")) == {"p1", "p2", "p3", "p4"}
    assert taken(Reply("ok", "")) == {"p1", "p2", "p3", "p4"}


def test_what_a_partial_answer_names_is_left_out() -> None:
    assert taken(Reply("partial", "p2 was rejected", 3)) == {"p1", "p3", "p4"}
    assert taken(Reply("partial", "p2 was rejected")) == {"p1", "p3", "p4"}


def test_names_that_disagree_with_the_numbers_do_not_count() -> None:
    assert taken(Reply("partial", "p2 and others were rejected", 1)) == set()


def test_a_partial_answer_without_names_takes_nothing() -> None:
    assert taken(Reply("partial", "some were rejected")) == set()


def test_a_partial_answer_that_took_every_item_speaks_of_something_else() -> None:
    assert taken(Reply("partial", "a picture is missing", 4)) == {"p1", "p2", "p3", "p4"}
