"""What stands around every page says, without anybody looking at it, whether help is needed."""

from dataclasses import replace

import pytest

from tests.support.fake_control import FakeControl
from tests.support.page_sample import busy
from tillbridge.core.i18n import _
from tillbridge.core.problems import OpenProblem
from tillbridge.status.document import document
from tillbridge.status.views import StatusDocument
from tillbridge.web.rendering import _environment, frame_of


def told(*codes: str) -> StatusDocument:
    control = FakeControl()
    problems = tuple(
        OpenProblem(code, "main", "", control.now_ms, {"detail": "unplugged"}) for code in codes
    )
    return document(replace(control.facts, problems=problems), control.now_ms)


@pytest.mark.parametrize(
    ("codes", "title", "icon"),
    [
        ((), "", "/icon.svg"),
        (("consent.ending",), "(1) Needs attention", "/icon-warning.svg"),
        (("pos.offline", "consent.ending"), "(2) Needs help", "/icon-down.svg"),
    ],
)
def test_the_tab_says_how_many_problems_wait_and_how_bad_it_is(
    codes: tuple[str, ...], title: str, icon: str
) -> None:
    frame = frame_of(told(*codes))
    assert (frame.title, frame.count) == (title, len(codes))
    assert icon in frame.icon


def test_it_names_the_store_as_the_service_does_and_counts_several() -> None:
    control = FakeControl()
    busy(control, "Pizza")
    status = document(control.facts, control.now_ms)
    (key,) = status["stores"]
    status["stores"][key]["service"]["store_name"] = "Main Street"
    assert frame_of(status).store == "Main Street"
    status["stores"][key]["service"]["store_name"] = ""
    assert frame_of(status).store == key
    status["stores"]["second"] = status["stores"][key]
    assert frame_of(status).store == "2 stores"


def test_a_number_stays_with_its_unit_on_a_page() -> None:
    page = _environment().from_string("{{ short(3) }}, {{ said }}, {{ size(40_300) }}, {{ typed }}")
    shown = page.render(said=_("The call took {ms} ms.").format(ms=12), typed="wait 5 min")
    shown = shown.replace("\N{NO-BREAK SPACE}", "~")
    assert shown == "3~ms, The call took 12~ms., 40.3~kB, wait 5 min"
