"""`tillbridge problems ...`: what is wrong, what a code means, and taking note of it."""

from typing import Annotated

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.control import os_user
from tillbridge.cli.menu import Json
from tillbridge.cli.reach import ask
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.i18n import _

app = typer.Typer(
    help=_("What is wrong, and what to do; stop alerts about it."), no_args_is_help=True
)

_CODE = _("The problem's code, for example pos.offline.")
Code = Annotated[str, typer.Argument(metavar="CODE", help=_CODE, autocompletion=complete.codes)]
OpenCode = Annotated[
    str, typer.Argument(metavar="CODE", help=_CODE, autocompletion=complete.open_codes)
]


@app.command("list")
def list_problems(context: typer.Context, as_json: Json = False) -> None:
    """List the open problems, the worst first, with what to do about each.

    Example: tillbridge problems list
    """
    answer = ask(
        load_settings(context),
        lambda bridge: bridge.ask("GET", "problems"),
        lambda control: control.problems.list(),
    )
    if as_json:
        say.document(answer)
    elif not answer["problems"]:
        say.line(_("No problem is open."), level="ok")
    else:
        for place, problem in enumerate(answer["problems"]):
            if place:
                say.line()
            say.problem(problem)


@app.command()
def show(context: typer.Context, code: Code, as_json: Json = False) -> None:
    """Explain a problem by its code, and show where it is open.

    Example: tillbridge problems show pos.offline
    """
    answer = ask(
        load_settings(context),
        lambda bridge: bridge.ask("GET", "problems", code),
        lambda control: control.problems.show(code),
    )
    if as_json:
        say.document(answer)
        return
    say.line(say.clean(f"{answer['code']} ({answer['severity']})"), level=answer["severity"])
    say.line(say.clean(answer["text"]))
    say.line(say.clean(_("What to do: {fix}").format(fix=answer["fix"])))
    say.line(say.clean(_("Ends: {ends}").format(ends=answer["ends"])))
    say.line(say.clean(_("More: {docs}").format(docs=answer["docs"])))
    for problem in answer["open"]:
        say.line()
        say.problem(problem)
    if not answer["open"]:
        say.line(_("It is not open."))


@app.command()
def ack(
    context: typer.Context,
    code: OpenCode,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="STORE",
            help=_("Only where it is this store's problem."),
            autocompletion=complete.stores,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Take note of a problem: alerts about it stop until it is over; the page still shows it.

    Example: tillbridge problems ack pos.offline
    """
    loaded = load_settings(context)
    if store is not None:
        store_of(loaded, store)
    body = {"store": store, "by": os_user()}
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "problems", code, "ack", body=body),
        lambda control: control.problems.acknowledge(code, store=store, by=os_user()),
    )
    say.answered(answer, as_json=as_json)
    raise typer.Exit(0 if answer["ok"] else 1)
