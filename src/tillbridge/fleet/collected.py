"""A folder of reports, as somebody looks at it who has two hundred bridges."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tillbridge.core.i18n import _, ngettext
from tillbridge.fleet.minisign import NotSigned, PublicKey
from tillbridge.fleet.report import SignedReport

_RANK = {"untrusted": 0, "down": 1, "silent": 2, "warning": 3, "ok": 4}

_CLOCKS_DIFFER_S = 300.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One bridge: `level` is ok, warning, silent, down or untrusted; `age_s` None where unknown."""

    bridge: str
    level: str
    text: str
    age_s: float | None
    version: str = ""
    problems: tuple[str, ...] = ()


def read_keys(text: str) -> Mapping[str, PublicKey]:
    """Return the bridges' keys of lines `NAME KEY`; # begins a comment. Raises NotSigned."""
    keys = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2:
            msg = f"line {number} is not: NAME KEY"
            raise NotSigned(msg)
        try:
            keys[words[0]] = PublicKey.read(words[1])
        except NotSigned as slip:
            msg = f"line {number}: {slip}"
            raise NotSigned(msg) from slip
    return keys


def look(
    folder: Path, keys: Mapping[str, PublicKey], *, now_ms: int, silent_after_s: float
) -> list[Seen]:
    """Return every bridge that has a key or a report, the worst first. Raises OSError."""
    names = keys.keys() | {path.stem for path in folder.glob("*.json")}
    seen = [_one(folder, name, keys.get(name), now_ms, silent_after_s) for name in names]
    return sorted(seen, key=lambda each: (_RANK[each.level], each.bridge))


def summary(seen: list[Seen]) -> str:
    """Return the whole in a sentence."""
    well = sum(each.level == "ok" for each in seen)
    return ngettext(
        "{well} of {n} bridge is well.", "{well} of {n} bridges are well.", len(seen)
    ).format(well=well, n=len(seen))


def _one(
    folder: Path, name: str, key: PublicKey | None, now_ms: int, silent_after_s: float
) -> Seen:
    if key is None:
        return Seen(name, "untrusted", _("There is no key of this bridge in the list."), None)
    content, signature = folder / f"{name}.json", folder / f"{name}.json.minisig"
    if not content.exists():
        return Seen(name, "silent", _("It has never sent a report."), None)
    try:
        report = SignedReport(content.read_bytes(), signature.read_bytes()).read(key)
        glance = report.glance
    except FileNotFoundError:
        return Seen(name, "untrusted", _("The signature is missing."), None)
    except NotSigned as slip:
        text = _("The report is not to be believed: {slip}.").format(slip=slip)
        return Seen(name, "untrusted", text, None)
    if report.bridge != name:
        text = _("It is the report of {bridge}.").format(bridge=report.bridge)
        return Seen(name, "untrusted", text, None)
    age_s = (now_ms - report.at_ms) / 1000
    verdict, version = glance.verdict, glance.bridge.version
    problems = tuple(
        f"{each.store}: {each.code}" if each.store else each.code for each in glance.problems
    )
    if age_s < -_CLOCKS_DIFFER_S:
        text = _("Its clock is {n} minutes ahead: nobody can tell how old its report is.").format(
            n=round(-age_s / 60)
        )
        return Seen(name, "warning", text, None, version, problems)
    if age_s > silent_after_s:
        text = _("Nothing was heard of it for {n} minutes; then: {text}").format(
            n=round(age_s / 60), text=verdict.text
        )
        return Seen(name, "silent", text, age_s, version, problems)
    known = verdict.level if verdict.level in _RANK else "down"
    return Seen(name, known, verdict.text, age_s, version, problems)
