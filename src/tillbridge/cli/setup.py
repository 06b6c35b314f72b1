"""`tillbridge setup ...`: how far the bridge is set up, and writing what the page may not write."""

from pathlib import Path

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Yes, command, read_config
from tillbridge.cli.control import NotRunning, RunningBridge, find_running
from tillbridge.cli.exits import CommandFailed
from tillbridge.cli.say import Arguments, Lines
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer

_TITLES = {
    "service": _("The ordering service"),
    "sign_in": _("Sign-in"),
    "store": _("The store"),
    "adapter": _("The till"),
    "address": _("The public address"),
    "save": _("Save and restart"),
    "order": _("The first order"),
}
_STATES = {"done": _("done"), "open": _("now"), "shut": _("later")}


def _show(answer: Answer, _given: Arguments) -> Lines:
    for number, step in enumerate(answer["steps"], 1):
        level = {"done": "ok", "open": "warning"}.get(step["state"], "")
        text = f"{number}. {_TITLES[step['name']]}: {_STATES[step['state']]}"
        yield text, level
        if step["text"] and step["state"] != "shut":
            yield f"   {step['text']}"
    yield _("The page: {address}").format(address=answer["page"])


@command("setup show", _show, exit_code=lambda answer: int(bool(answer["next"])))
def show(context: typer.Context) -> Answer:
    """Show the steps of the set-up, which are done, and the page's address.

    Ends with 0 when everything is set up, else with 1.

    Example: tillbridge setup show
    """
    bridge = _running(context)
    page = f"http://{bridge.host}:{bridge.port}/setup"
    return {**bridge.perform("setup.show", {}), "page": page}


@command("setup write")
def write(context: typer.Context, *, yes: Yes = False) -> Answer:
    """Write what was set up on the page into bridge.toml, and restart the bridge.

    Shows the difference and asks. Use it where the bridge itself may not write the file.

    Example: tillbridge --config /etc/tillbridge/bridge.toml setup write
    """
    from tillbridge.config.writing import put_back, replace_file

    bridge = _running(context)
    proposed = bridge.perform("setup.text", {})
    if proposed["faults"]:
        raise ConfigError(
            "\n".join(proposed["faults"]), fix=_("Correct it on the page, under Set-up.")
        )
    if not proposed["lines"]:
        raise CommandFailed(
            _("There is nothing to save."), fix=_("Follow the steps on the page, under Set-up.")
        )
    if not yes:
        say.confirm(proposed["lines"], question=_("Write it?"), mark="")
    path = Path(proposed["file"])
    copy = replace_file(path, proposed["text"])
    try:
        answer: Answer = bridge.perform("setup.written", {"digest": proposed["digest"]})
    except BridgeError:
        if copy is not None:
            put_back(path, copy)
        raise
    return answer


def _running(context: typer.Context) -> RunningBridge:
    # The file may not be a configuration yet.
    _path, data_dir, _configured = read_config(context)
    bridge = find_running(data_dir)
    if bridge is None:
        raise NotRunning(_("The bridge is not running."), fix=_("Start it: tillbridge run"))
    return bridge
