"""From nothing to a connected store: signing up, signing in, choosing one of several stores."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.world import SECRET, World, make_world
from tillbridge.sandbox.settings import MerchantSeed, StoreSeed

FORM = ("--store-name", "Bar Nuovo", "--email", "new@example.com", "--phone", "+39 02 1234567")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path) as made:
        yield made


@pytest.fixture
async def two_stores(tmp_path: Path) -> AsyncIterator[World]:
    stores = (StoreSeed("st_main", "Harbour"), StoreSeed("st_two", "Station"))
    async with make_world(tmp_path, merchants=(MerchantSeed(stores=stores),)) as made:
        yield made


async def merchants_turn(world: World, *arguments: str) -> tuple[int, str, str]:
    """Run a command that prints an address, and be the merchant who opens it and allows it."""
    code, out, err, _page = await world.allowed(*arguments, "--no-browser")
    return code, out, err


@pytest.mark.parametrize("running", [False, True], ids=["alone", "beside the daemon"])
async def test_one_command_leads_from_nothing_to_an_integrated_store(
    world: World, running: bool
) -> None:
    if running:
        await world.bridge.start()
    code, out, err = await merchants_turn(world, "signup", "main", *FORM)
    assert code == 0, out + err
    assert "is connected" in out
    assert "/webhooks/main" in out
    assert SECRET not in out + err
    assert "Bar Nuovo" in str(await world.state())


async def test_a_merchant_who_exists_signs_in_instead(world: World) -> None:
    known = ("--store-name", "Main", "--email", "owner@example.net", "--flow", "signup")
    code, out, err = await merchants_turn(world, "signup", "main", *known)
    assert code == 0, out + err
    assert "has an account already: sign in instead" in out


async def test_the_id_in_the_body_is_enough_where_it_is_configured(world: World) -> None:
    world.write_config(top='signup_auth = "body"')
    code, out, err = await merchants_turn(world, "signup", "main", *FORM)
    assert code == 0, out + err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--store-name, --email"),
        (("--store-name", "Bar", "--email", "nobody"), "--email: is not an e-mail address"),
        ((*FORM[:4], "--phone", "12345"), "--phone: is not a phone number"),
        ((*FORM, "--locale", "italian"), "--locale: is not a language and region"),
    ],
)
async def test_what_is_wrong_is_told_before_anything_is_sent(
    world: World, arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = await world.bridge.run("signup", "main", "--no-browser", *arguments)
    assert code == 2
    assert words in out + err
    assert not await world.calls("signup_url")


@pytest.mark.parametrize("running", [False, True], ids=["alone", "beside the daemon"])
async def test_of_several_stores_one_is_chosen_and_remembered(
    two_stores: World, running: bool
) -> None:
    world = two_stores
    if running:
        await world.bridge.start()
    code, out, err = await merchants_turn(world, "connect", "main")
    assert code == 1, out + err
    assert "st_main (Harbour), st_two (Station)" in err
    assert "--store-id" in err

    code, out, err = await merchants_turn(world, "connect", "main", "--store-id", "st_two")
    assert code == 0, out + err
    assert 'store_id = "st_two"' in out

    # The choice is remembered: it need not be said again.
    code, out, err = await merchants_turn(world, "connect", "main")
    assert code == 0, out + err
    assert "Nothing had to change" in out


async def test_a_store_that_the_merchant_does_not_have_is_refused(two_stores: World) -> None:
    code, _out, err = await merchants_turn(two_stores, "connect", "main", "--store-id", "st_nine")
    assert code == 1
    assert "no store st_nine" in err


async def test_the_configuration_has_the_last_word_on_the_store(two_stores: World) -> None:
    two_stores.write_config(store='store_id = "st_main"')
    code, out, err = await merchants_turn(two_stores, "connect", "main", "--store-id", "st_two")
    assert code != 0
    assert "bridge.toml says store_id" in out + err


@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")
async def test_on_a_terminal_it_asks_until_it_is_right(world: World) -> None:
    answers = ["Bar Nuovo", "nobody", "new@example.com", "", "", "12", "", *[""] * 6]
    code, out = await at_a_terminal(world, answers, "signup", "main")
    assert code == 0, out
    assert "E-mail that the owner will sign in with" in out
    assert "is not an e-mail address" in out
    assert "is not a phone number" in out
    assert "is connected" in out


@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")
async def test_on_a_terminal_a_store_is_chosen_from_a_list(two_stores: World) -> None:
    await two_stores.bridge.start()
    code, out = await at_a_terminal(two_stores, ["three", "0", "2"], "connect", "main")
    assert code == 0, out
    assert "2. Station  st_two  (active, not_integrated)" in out
    assert "Type a number from 1 to 2." in out
    assert 'store_id = "st_two"' in out


async def at_a_terminal(world: World, answers: list[str], *arguments: str) -> tuple[int, str]:
    """Type the answers into a command, as fast as it reads them, and be the merchant."""
    ours, theirs = os.openpty()
    process = await asyncio.create_subprocess_exec(
        *world.bridge.command(*arguments, "--no-browser"),
        stdin=theirs,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=world.bridge.env,
    )
    os.close(theirs)
    os.write(ours, "".join(f"{each}\n" for each in answers).encode())
    assert process.stdout is not None
    said = b""
    opened = False
    try:
        while chunk := await asyncio.wait_for(process.stdout.read(4096), 60):
            said += chunk
            found = re.search(rb"Open: (\S+)\s", said)
            if found and not opened:
                opened = True
                async with world.http.get(found[1].decode()) as page:
                    await page.read()
        return await process.wait(), said.decode()
    finally:
        os.close(ours)
