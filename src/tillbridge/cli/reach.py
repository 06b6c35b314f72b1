"""`tillbridge reach`: how the internet may reach the receiver, as configuration to copy."""

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json, argument, option
from tillbridge.cli.settings import load_settings
from tillbridge.core.i18n import _


class WayName(StrEnum):
    """The ways, by the names of `diagnostics.reach`."""

    CLOUDFLARED = "cloudflared"
    TAILSCALE = "tailscale"
    CADDY = "caddy"
    DIRECT = "direct"


def reach(
    context: typer.Context,
    way: Annotated[
        WayName | None,
        argument("[WAY]", _("Which way; without one all four are compared.")),
    ] = None,
    file_only: Annotated[
        bool, option("--file", _("Print the way's file and nothing else."))
    ] = False,
    as_json: Json = False,
) -> None:
    """Print how deliveries get in: a tunnel, a web server, or straight, with one path open.

    Everything is filled in from bridge.toml: address, port, path. Changes nothing.

    Example: tillbridge reach caddy
    """
    if file_only and way is None:
        raise typer.BadParameter(_("Name the way: tillbridge reach caddy --file"))
    loaded = load_settings(context)
    from tillbridge.diagnostics.reach import guidance, place_of

    told = guidance(place_of(loaded.settings, loaded.path))
    chosen = [each for each in told["ways"] if way is None or each["name"] == way]
    if as_json:
        say.document({**told, "ways": chosen})
    elif file_only:
        files = [step["content"] for step in chosen[0]["steps"] if step["file"]]
        if not files:
            raise typer.BadParameter(
                _("This way needs no file. Its commands: tillbridge reach {way}").format(way=way)
            )
        sys.stdout.write(files[-1])
    else:
        _show(told, chosen, whole=way is not None)


def _show(told: dict[str, Any], ways: list[dict[str, Any]], *, whole: bool) -> None:
    say.line(
        _("Deliveries to {public_url} must reach {receiver}; only {path} has to be open.").format(
            public_url=told["public_url"], receiver=told["receiver"], path=told["path"]
        )
    )
    for caution in told["cautions"]:
        say.line(caution, level="warning")
    for way in ways:
        say.line()
        _head(way, fits=way["name"] == told["fits"])
        if whole:
            for number, step in enumerate(way["steps"], 1):
                _step(number, step)
    say.line()
    if whole:
        say.line(_("Then test it: {command}").format(command=told["next"]))
    else:
        say.line(
            _("Its steps, with every file filled in: {command}").format(
                command=f"tillbridge reach {told['fits']}"
            )
        )


def _head(way: dict[str, Any], *, fits: bool) -> None:
    marks = []
    if way["running"]:
        marks.append(_("running"))
    elif way["installed"]:
        marks.append(_("installed, not running") if way["running"] is False else _("installed"))
    if fits:
        marks.append(_("fits best here"))
    shown = f" ({', '.join(marks)})" if marks else ""
    say.line(f"{way['name']}: {way['title']}{shown}", level="ok" if fits else "")
    say.line("  " + way["text"])
    for caution in way["cautions"]:
        say.line("  " + caution, level="warning")


def _step(number: int, step: dict[str, Any]) -> None:
    say.line()
    say.line(f"{number}. {step['text']}")
    if step["file"]:
        say.line()
        say.line(f"   {step['file']}:")
        for row in step["content"].splitlines():
            say.line(f"     {row}".rstrip())
    if step["commands"]:
        say.line()
        for command in step["commands"]:
            say.line(f"   $ {command}")
