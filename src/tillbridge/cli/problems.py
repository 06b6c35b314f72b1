"""`tillbridge problems ...`: what is wrong, what a code means, and taking note of it."""

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Arguments, add_operations
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer

app = typer.Typer(
    help=_("What is wrong, and what to do; stop alerts about it."), no_args_is_help=True
)


def _show_list(answer: Answer, _given: Arguments) -> None:
    if not answer["problems"]:
        say.line(_("No problem is open."), level="ok")
    for place, problem in enumerate(answer["problems"]):
        if place:
            say.line()
        say.problem(problem)


def _show_kind(answer: Answer, _given: Arguments) -> None:
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


add_operations(app, "problems", {"problems.list": _show_list, "problems.show": _show_kind})
