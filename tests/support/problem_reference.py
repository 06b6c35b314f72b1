"""docs/problems.md, made of the tables of problems and of their help (`make reference`)."""

import sys
from collections.abc import Iterator

from tillbridge.core.problems import PROBLEMS, anchor, help_of, index

HEAD = """\
# Problems: what each one means and what to do

Every problem that the page, `tillbridge status` and the metrics show has a stable code. `down`
means that orders or the menu do not work, `warning` that somebody should look soon. Words in braces
are filled in. The bridge shows the same pages in your language and without the internet: **How to
fix this** beside a problem, `/help` on the bridge's page, or `tillbridge problems show CODE`.
[Alerts](alerts.md) notify people of problems.
"""


def text() -> str:
    """Return the page, in the English of the source."""
    return "\n".join([HEAD, *_index(), *(line for code in PROBLEMS for line in _section(code))])


def _index() -> Iterator[str]:
    for name, topics in index():
        yield f"**{name}**: " + " · ".join(f"[{title}](#{anchor(code)})" for code, title in topics)
        yield ""


def _section(code: str) -> Iterator[str]:
    kind, page = PROBLEMS[code], help_of(code, restart="`systemctl restart tillbridge`")
    yield from (f"## {code}", "", f"**{kind.severity}** · {kind.text}", "")
    yield from (page.means, "", f"What to do: {kind.fix}", "", "In the restaurant:", "")
    yield from (f"{place}. {step}" for place, step in enumerate(page.restaurant, 1))
    yield from ("", "Your technician:", "")
    yield from (f"{place}. {step}" for place, step in enumerate(page.technician, 1))
    yield from ("", f"Why: {page.why}", "", f"Closes: {page.closes}", "")


if __name__ == "__main__":
    sys.stdout.write(text())
