"""Orders on paper, end to end: the installed program, and an emulated printer on a real socket."""

from collections.abc import Iterator

import pytest

from tests.support.bridge_process import until
from tests.support.world import World
from tillbridge_printer.emulated.escpos_server import EscPosServer


@pytest.fixture
def printer() -> Iterator[EscPosServer]:
    server = EscPosServer()
    yield server
    server.switch_off()


def papers(printer: EscPosServer) -> list[str]:
    return [sheet.text for sheet in printer.machine.sheets]


async def opened(world: World) -> World:
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err
    await world.menu_is_on_sale()
    return world


@pytest.fixture
async def paper_shop(world: World, printer: EscPosServer) -> World:
    """The menu comes from a file; orders go to a printer."""
    world.write_config(
        orders=f'adapter = "printer"\nprinter = "tcp://127.0.0.1:{printer.port}"\ntimeout_s = 5'
    )
    return await opened(world)


@pytest.fixture
async def careful_shop(world: World, printer: EscPosServer) -> World:
    """Orders go to the till, and to a printer where that cannot take them."""
    world.write_config(
        orders=f"""pause_after_s = 0
[stores.main.fallback]
adapter = "printer"
printer = "tcp://127.0.0.1:{printer.port}"
after_s = 4
"""
    )
    return await opened(world)


async def problems(world: World) -> set[str]:
    return {each["code"] for each in (await world.status())["problems"]}


async def test_an_order_is_printed_and_accepted(paper_shop: World, printer: EscPosServer) -> None:
    order = await paper_shop.order("p1", "p2", special_instructions="Ring twice")
    await paper_shop.reaches(order, "accepted")
    (paper,) = papers(printer)
    assert "1 x Dish 1" in paper
    assert "POSSIBLE DUPLICATE" not in paper
    assert printer.machine.strange == []


async def test_an_open_cover_is_told_and_the_order_comes_out_when_it_is_closed(
    paper_shop: World, printer: EscPosServer
) -> None:
    printer.machine.cover_open = True

    async def told() -> bool:
        return "pos.offline" in await problems(paper_shop)

    order = await paper_shop.order("p1")
    await until("the open cover is told", told)
    (problem,) = [
        each for each in (await paper_shop.status())["problems"] if each["code"] == "pos.offline"
    ]
    assert "cover is open" in problem["text"]
    assert papers(printer) == []
    printer.close_cover()
    await paper_shop.reaches(order, "accepted")
    assert len(papers(printer)) == 1


async def test_a_printer_that_dies_in_the_middle_prints_again_with_a_mark(
    paper_shop: World, printer: EscPosServer
) -> None:
    printer.machine.dies_after = 40
    order = await paper_shop.order("p1")
    await paper_shop.reaches(order, "accepted")
    assert papers(printer)[-1].startswith("POSSIBLE DUPLICATE")
    assert not papers(printer)[0].startswith("POSSIBLE DUPLICATE")


async def test_a_bridge_killed_while_it_prints_never_prints_a_second_plain_ticket(
    paper_shop: World, printer: EscPosServer
) -> None:
    printer.mute = True
    order = await paper_shop.order("p1")
    await until("the printer is called", lambda: printer.calls)
    await paper_shop.bridge.kill()
    printer.mute = False
    await paper_shop.bridge.start()
    await paper_shop.reaches(order, "accepted")
    plain = [paper for paper in papers(printer) if "POSSIBLE DUPLICATE" not in paper]
    assert len(plain) <= 1
    assert papers(printer)


async def test_what_the_till_cannot_take_is_printed_until_somebody_has_typed_it(
    careful_shop: World, printer: EscPosServer
) -> None:
    first = await careful_shop.order("p1")
    await careful_shop.reaches(first, "accepted")
    assert careful_shop.till.tickets() == [first]
    assert papers(printer) == []
    away = careful_shop.folder / "away"
    careful_shop.till.orders.rename(away)
    order = await careful_shop.order("p2")
    await careful_shop.reaches(order, "accepted")
    (paper,) = papers(printer)
    assert paper.startswith("NOT IN TILL")
    assert "order.not_in_till" in await problems(careful_shop)
    away.rename(careful_shop.till.orders)
    await careful_shop.problem("pos.offline", open_=False)
    last = await careful_shop.order("p3")
    await careful_shop.reaches(last, "accepted")
    assert careful_shop.till.tickets() == sorted([first, last])
    code, out, err = await careful_shop.bridge.run("orders", "done", order, "--how", "typed")
    assert code == 0, out + err
    assert "order.not_in_till" not in await problems(careful_shop)
    code, out, _err = await careful_shop.bridge.run("orders", "show", order)
    assert "NOT IN TILL" in out
    assert len(papers(printer)) == 1
