"""`tillbridge setup ...`: how far the bridge is set up, and writing what the page may not write."""

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json
from tillbridge.cli.control import NotRunning, RunningBridge, find_running
from tillbridge.cli.exits import CommandFailed
from tillbridge.cli.settings import config_path
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _

app = typer.Typer(help=_("How far the bridge is set up."), no_args_is_help=True)


@app.command()
def show(context: typer.Context, as_json: Json = False) -> None:
    """Show each step of setting up, whether it is done, and where the page is.

    Ends with 0 when everything is set up, else with 1.

    Example: tillbridge setup show
    """
    bridge = _running(context)
    answer = bridge.perform("setup.show")
    address = f"http://{bridge.host}:{bridge.port}/setup"
    if as_json:
        say.document({**answer, "page": address})
    else:
        for number, step in enumerate(answer["steps"], 1):
            level = {"done": "ok", "open": "warning"}.get(step["state"], "")
            text = say.clean(f"{number}. {_TITLES[step['name']]}: {_STATES[step['state']]}")
            say.line(text, level=level) if level else say.line(text)
            if step["text"] and step["state"] != "shut":
                say.line(f"   {say.clean(step['text'])}")
        say.line(_("The page: {address}").format(address=address))
    raise typer.Exit(1 if answer["next"] else 0)


@app.command()
def write(
    context: typer.Context,
    yes: say.Yes = False,
    as_json: Json = False,
) -> None:
    """Write what was set up on the page into the file, as a user who may; the bridge begins anew.

    Shows the difference and asks. For a service whose user may not write its own configuration.

    Example: tillbridge --config /etc/tillbridge/bridge.toml setup write
    """
    from pathlib import Path

    from tillbridge.config.writing import put_back, replace_file

    bridge = _running(context)
    told = bridge.perform("setup.text")
    if told["faults"]:
        raise ConfigError("\n".join(told["faults"]), fix=_("Mend it on the page, under Set-up."))
    if not told["lines"]:
        raise CommandFailed(
            _("There is nothing to write."), fix=_("Take the steps on the page, under Set-up.")
        )
    say.confirm(told["lines"], yes=yes, question=_("Write it?"), mark="")
    path = Path(told["file"])
    copy = replace_file(path, told["text"])
    try:
        answer = bridge.perform("setup.written", digest=told["digest"])
    except BridgeError:
        if copy is not None:
            put_back(path, copy)
        raise
    say.answered(answer, as_json=as_json)


def _running(context: typer.Context) -> RunningBridge:
    # The file may not be a configuration yet.
    from tillbridge.config.loading import data_dir_of, find_file
    from tillbridge.config.toml import read_file

    path = find_file(config_path(context))
    _text, said = read_file(path)
    bridge = find_running(data_dir_of(path, said))
    if bridge is None:
        raise NotRunning(_("The bridge is not running."), fix=_("Start it: tillbridge run"))
    return bridge


_TITLES = {
    "service": _("The ordering service"),
    "sign_in": _("Sign-in"),
    "store": _("The store"),
    "adapter": _("The till"),
    "address": _("The public address"),
    "order": _("The first order"),
}
_STATES = {"done": _("done"), "open": _("now"), "shut": _("later")}
