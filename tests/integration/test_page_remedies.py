"""What the overview offers against a problem: buttons in its words, to those who may press them."""

import html
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC

from tests.support.page_harness import page_harness, users
from tests.support.page_sample import busy
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.figures import OrderCourse, StoreFigures, sales_of
from tillbridge.web.authenticator import AccessRules

DIFFERS = OpenProblem("integration.differs", "main", "", 1, {"detail": "webhook_url"})
SECRET = OpenProblem("integration.secret_missing", "main", "", 1)
GONE = OpenProblem("integration.missing", "main", "", 1)
TUNNEL = OpenProblem("public_address.unreachable", "", "", 1, {"detail": "x", "remedy": "Mend."})
COMMAND = "tillbridge integration apply main"


async def test_beside_a_button_stand_words_and_no_command() -> None:
    async with page_harness() as harness:
        harness.control.facts = replace(harness.control.facts, problems=(DIFFERS, TUNNEL))
        page = html.unescape((await harness.get("/")).text)
        assert "Review the difference, then apply the configuration." in page
        assert COMMAND not in page
        assert 'href="/stores/main/integration/apply"' in page
        assert '<a class="button primary" href="/reach">Check the public address</a>' in page


async def test_who_may_not_press_it_reads_the_command() -> None:
    async with page_harness(AccessRules(users=users())) as harness:
        harness.control.facts = replace(harness.control.facts, problems=(DIFFERS,))
        await harness.sign_in("lou")
        page = (await harness.get("/")).text
        assert COMMAND in page
        assert "/stores/main/integration/apply" not in page


async def test_the_buttons_of_an_integration_ask_and_do_what_the_commands_do() -> None:
    async with page_harness() as harness:
        harness.control.facts = replace(harness.control.facts, problems=(GONE, SECRET, DIFFERS))
        harness.control.integration.shown["plan"] = {
            "kind": "change",
            "lines": ["webhook_url: https://a -> https://b"],
            "costs": [],
        }
        page = (await harness.get("/")).text
        for path, said, did in (
            ("apply", "webhook_url: https://a -&gt; https://b", "integration apply"),
            ("secret", "It is made anew.", "integration rotate-secret"),
            ("anew", "This removes the connection and creates it again", "integration reintegrate"),
        ):
            assert f'href="/stores/main/integration/{path}"' in page
            assert said in (await harness.get(f"/stores/main/integration/{path}")).text
            await harness.post(f"/stores/main/integration/{path}")
            assert harness.control.asked[-1] == (did, "main")


async def test_what_is_over_once_it_is_acknowledged_says_so() -> None:
    detail = {"count": 1, "orders": "1003", "why": "x", "since": "07:53"}
    lost = OpenProblem("order.cancelled", "main", "offline", 1, detail)
    async with page_harness() as harness:
        harness.control.facts = replace(harness.control.facts, problems=(lost, DIFFERS))
        page = html.unescape((await harness.get("/")).text)
        assert "press Acknowledge." in page
        assert page.count(">Acknowledge</button>") == 2


async def test_cancelled_orders_are_told_with_their_causes() -> None:
    async with page_harness() as harness:
        now = harness.control.now_ms
        lost = OrderCourse(now - 1000, cancelled=True, reason_code="POS_OFFLINE")
        well = OrderCourse(now - 1000, now - 900, amount=1250, currency="EUR")
        figures = StoreFigures(sales=sales_of([lost, lost, well], UTC, now))
        harness.control.facts = replace(harness.control.facts, figures={"main": figures})
        page = (await harness.get("/")).text
        assert "till offline 2" in page
        assert "12.50" in page
        assert page.count("2 cancelled") == 1


async def test_nothing_is_said_twice() -> None:
    """Every sentence of the page stands there once, whatever is open."""
    async with page_harness() as harness:
        busy(harness.control, "unplugged")
        page = (await harness.get("/")).text
    main = page[page.index("<main") : page.index("</main>")]
    main = re.sub(r"<(details|a)\b.*?</\1>", "", main, flags=re.DOTALL)
    texts = [" ".join(html.unescape(each).split()) for each in re.split(r"<[^>]+>", main)]
    sentences = Counter(each for each in texts if len(each.split()) > 3)
    assert {each: n for each, n in sentences.items() if n > 1} == {}


async def test_the_menu_says_which_rows_of_the_export_guests_do_not_see() -> None:
    detail = {"count": 2, "detail": "menu.csv, row 5: The price is wrong.", "remedy": "Correct it."}
    async with page_harness() as harness:
        busy(harness.control)
        bad = OpenProblem("export.bad_rows", "main", "menu", harness.control.now_ms, detail)
        harness.control.facts = replace(harness.control.facts, problems=(bad,))
        page = (await harness.get("/menu")).text
    assert "2 rows of the export cannot be read; the first: menu.csv, row 5" in page
    assert 'href="/stores/main/menu/difference">Show the rows' in page
    assert "The storefront matches the till." not in page
