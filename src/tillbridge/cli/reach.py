"""`tillbridge reach`: how the internet may reach the receiver, as configuration to copy."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json, command
from tillbridge.cli.say import Lines
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Argument

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings


class WayName(StrEnum):
    """The ways, by the names of `diagnostics.reach`."""

    CLOUDFLARED = "cloudflared"
    TAILSCALE = "tailscale"
    CADDY = "caddy"
    DIRECT = "direct"


@command("reach")
def reach(
    loaded: "LoadedSettings",
    way: Annotated[
        WayName | None,
        Argument("[WAY]", _("The way to show. Default: compare all four.")),
    ] = None,
    *,
    file_only: Annotated[
        bool, Argument(help=_("Print only the file of this way."), option="--file")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show how orders can reach this machine: a tunnel, a web server, or port forwarding.

    Prints every command and file with your address, port and path. Changes nothing.

    Example: tillbridge reach caddy
    """
    if file_only and way is None:
        raise typer.BadParameter(_("Add a way: tillbridge reach caddy --file"))
    from tillbridge.diagnostics.reach import guidance, place_of

    answer = guidance(place_of(loaded.settings, loaded.path))
    chosen = [each for each in answer["ways"] if way is None or each["name"] == way]
    if as_json:
        say.document({**answer, "ways": chosen})
    elif file_only:
        files = [step["content"] for step in chosen[0]["steps"] if step["file"]]
        if not files:
            raise typer.BadParameter(
                _("This way needs no file. See its commands: tillbridge reach {way}").format(
                    way=way
                )
            )
        sys.stdout.write(files[-1])
    else:
        say.lines(_show({**answer, "ways": chosen}, whole=way is not None))


def _show(answer: Answer, *, whole: bool) -> Lines:
    text = _("Deliveries to {public_url} must reach {receiver}; only {path} has to be open.")
    yield text.format_map(answer)
    yield from ((each, "warning") for each in answer["cautions"])
    for way in answer["ways"]:
        yield ""
        yield from _show_way(way, fits=way["name"] == answer["fits"])
        for number, step in enumerate(way["steps"] if whole else (), 1):
            yield from _show_step(number, step)
    yield ""
    if whole:
        yield _("Then test it: {command}").format(command=answer["next"])
    else:
        text = _("See its steps: {command}")
        yield text.format(command=f"tillbridge reach {answer['fits']}")


def _show_way(way: Answer, *, fits: bool) -> Lines:
    marks = []
    if way["running"]:
        marks.append(_("running"))
    elif way["installed"]:
        marks.append(_("installed, not running") if way["running"] is False else _("installed"))
    if fits:
        marks.append(_("recommended here"))
    shown = f" ({', '.join(marks)})" if marks else ""
    yield f"{way['name']}: {way['title']}{shown}", "ok" if fits else ""
    yield "  " + way["text"]
    for caution in way["cautions"]:
        yield "  " + caution, "warning"


def _show_step(number: int, step: Answer) -> Lines:
    yield ""
    yield f"{number}. {step['text']}"
    if step["file"]:
        yield ""
        yield f"   {step['file']}:"
        # As on a terminal: what steers one is taken out of a line, a tab too.
        yield from (f"     {row.expandtabs(8)}".rstrip() for row in step["content"].splitlines())
    if step["commands"]:
        yield ""
        yield from (f"   $ {each}" for each in step["commands"])
