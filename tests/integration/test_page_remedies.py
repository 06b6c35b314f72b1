"""What the overview offers against a problem: buttons in its words, to those who may press them."""

import html
from dataclasses import replace

from tests.support.page_house import page_house, users
from tillbridge.ledger.open_problem import OpenProblem
from tillbridge.status.doorkeeper import AccessRules

DIFFERS = OpenProblem("integration.differs", "main", "", 1, {"detail": "webhook_url"})
SECRET = OpenProblem("integration.secret_missing", "main", "", 1)
GONE = OpenProblem("integration.missing", "main", "", 1)
TUNNEL = OpenProblem("public_address.unreachable", "", "", 1, {"detail": "x", "remedy": "Mend."})
COMMAND = "tillbridge integration apply main"


async def test_beside_a_button_stand_words_and_no_command() -> None:
    async with page_house() as house:
        house.control.facts = replace(house.control.facts, problems=(DIFFERS, TUNNEL))
        page = html.unescape((await house.get("/")).text)
        assert "Look at the difference, and apply what is configured here." in page
        assert COMMAND not in page
        assert 'href="/stores/main/integration/apply"' in page
        assert '<a class="button" href="/reach">How orders get in</a>' in page


async def test_who_may_not_press_it_reads_the_command() -> None:
    async with page_house(AccessRules(users=users())) as house:
        house.control.facts = replace(house.control.facts, problems=(DIFFERS,))
        await house.sign_in("lou")
        page = (await house.get("/")).text
        assert COMMAND in page
        assert "/stores/main/integration/apply" not in page


async def test_the_buttons_of_an_integration_ask_and_do_what_the_commands_do() -> None:
    async with page_house() as house:
        house.control.facts = replace(house.control.facts, problems=(GONE, SECRET, DIFFERS))
        house.control.integration.shown["plan"] = {
            "kind": "change",
            "lines": ["webhook_url: https://a -> https://b"],
            "costs": [],
        }
        page = (await house.get("/")).text
        for path, said, did in (
            ("apply", "webhook_url: https://a -&gt; https://b", "integration apply"),
            ("secret", "It is made anew.", "integration rotate-secret"),
            ("anew", "The integration is removed and made anew", "integration reintegrate"),
        ):
            assert f'href="/stores/main/integration/{path}"' in page
            assert said in (await house.get(f"/stores/main/integration/{path}")).text
            await house.post(f"/stores/main/integration/{path}")
            assert house.control.asked[-1] == (did, "main")
