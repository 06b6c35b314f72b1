"""`tillbridge fleet show`: many bridges, seen from one place."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tillbridge.cli.commands import command
from tillbridge.cli.say import Arguments, Lines
from tillbridge.core.clock import Clock
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Argument

_ON_ITS_WAY_S = 1.0
_WELL = {"ok", "warning"}


def _show(answer: Answer, _given: Arguments) -> Lines:
    for each in answer["bridges"]:
        level = each["level"]
        text = f"{level:<10}{each['bridge']:<24}{each['text']}"
        yield text, level if level in _WELL else "down"
        for problem in each["problems"]:
            yield f"{'':<34}{problem}"
    yield answer["text"]


@command(
    "fleet show",
    _show,
    exit_code=lambda answer: int(any(each["level"] not in _WELL for each in answer["bridges"])),
)
def show(
    _context: typer.Context,
    folder: Annotated[Path, Argument("FOLDER", _("The folder with the reports."))],
    *,
    keys: Annotated[
        Path, Argument("FILE", _("A file with lines NAME KEY (from tillbridge fleet key)."))
    ],
    silent_after: Annotated[
        float,
        Argument("SECONDS", _("A bridge whose report is older counts as silent."), least=1),
    ] = 300,
) -> Answer:
    """Show many bridges from their signed reports, the worst first. Needs no configuration.

    Exit code 1: a bridge is down, silent, or its report has a wrong signature.

    Example: tillbridge fleet show /srv/reports --keys keys.txt
    """
    from tillbridge.fleet.report import gathered, summary

    now_ms = Clock().now_ms()
    seen = gathered(folder, keys, now_ms=now_ms, silent_after_s=silent_after)
    if any(each.level == "untrusted" for each in seen):
        # A report and its signature are two files: one of them may have been on its way.
        time.sleep(_ON_ITS_WAY_S)
        seen = gathered(folder, keys, now_ms=now_ms, silent_after_s=silent_after)
    return {"bridges": [asdict(each) for each in seen], "text": summary(seen)}
