"""A command that was typed wrong: what is wrong with it and where its help is."""

import re

import typer

from tillbridge.cli.exits import Exit
from tillbridge.cli.say import clean, failed
from tillbridge.core.i18n import N_, _

# What typer says, always in English, and what the reader is told instead.
_SENTENCES = (
    (r"No such command '(?P<name>.*?)'.*", N_("There is no command {name}.")),
    (r"Missing command.*", N_("A command is missing.")),
    (r"No such option: (?P<name>.*)", N_("There is no option {name}.")),
    (r"Option '(?P<name>.*)' requires .*", N_("{name} needs a value.")),
    (r"Option '(?P<name>.*)' does not take a value\.", N_("{name} does not take a value.")),
    (r"Got unexpected extra argument\S* \((?P<words>.*)\)", N_("Not expected here: {words}")),
    (r"Value error, '?(?P<given>.*?)'? is not one of (?P<known>.*)\.",
     N_("{given} is not one of: {known}.")),
    (r"Value error, (?P<text>.*)", "{text}"),
    (r"Input should be a valid integer.*", N_("Enter a whole number.")),
    (r"Input should be a valid number.*", N_("Enter a number.")),
    (r"Input should be greater than or equal to (?P<least>\S+)", N_("Enter {least} or more.")),
    (r"Input should be less than or equal to (?P<most>\S+)", N_("Enter {most} or less.")),
)  # fmt: skip


def refused(error: Exception, *, as_json: bool) -> int | None:
    """Say what is wrong with a command line; None where the error is of another kind."""
    if isinstance(error, typer.Abort):
        failed(_("Cancelled."), "", Exit.FAILED, as_json=as_json)
        return Exit.FAILED
    if not isinstance(error, typer.TyperException):
        return None
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.message, err=True)
        return Exit.USAGE
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "tillbridge"
    see = _("For help: {command} --help").format(command=command)
    failed(_words(error), see, Exit.USAGE, as_json=as_json)
    return Exit.USAGE


def _words(error: typer.TyperException) -> str:
    message = clean(error.message)
    text = next(
        (
            str(_(ours)).format(**found.groupdict()).replace("'", "")
            for pattern, ours in _SENTENCES
            if (found := re.fullmatch(pattern, message))
        ),
        message,
    )
    if isinstance(error, typer.BadParameter):
        name = _name(error)
        if not text:
            text = str(_("{name} is missing.")).format(name=name)
        elif name:
            text = f"{name}: {text}"
    if close := _close(error):
        text += " " + str(_("Did you mean {name}?")).format(name=close)
    return text


def _name(error: typer.BadParameter) -> str:
    parameter = error.param
    if parameter is None:
        return str(error.param_hint or "")
    options = [each for each in parameter.opts if each.startswith("-")]
    return max(options, key=len) if options else str(parameter.metavar or parameter.name).upper()


def _close(error: typer.TyperException) -> str:
    if possible := getattr(error, "possibilities", None):
        return str(possible[0])
    found = re.search(r"Did you mean '(.*?)'", error.message)
    return found[1] if found else ""
