"""Which program has a port that the bridge wants, and how to end it. Linux tells; others do not."""

import contextlib
import errno
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tillbridge.core.i18n import _

_LISTENS = "0A"
_PROC = Path("/proc")
_DEMO_FOLDER = "tillbridge-demo-"
_LOOK = {"win32": "netstat -ano | findstr :{port}", "linux": "sudo ss -ltnp sport = :{port}"}


@dataclass(frozen=True, slots=True)
class Holder:
    """A program that listens: in words, to stand after "by", and how to end it.

    `pid` is 0 for a program of another user.
    """

    pid: int
    text: str
    fix: str


def port_taken(port: int, otherwise: str, failure: OSError | None = None) -> tuple[str, str]:
    """Return " by ..." ("" where nobody can tell) and what to do about a port that is not free.

    `otherwise` is what helps in any case ("change listen in [receiver]"), and alone where the
    `failure` is not that the port is taken. Blocks.
    """
    by, fix = "", ""
    if failure is None or failure.errno == errno.EADDRINUSE:
        holder = holder_of(port)
        if holder is not None:
            by, fix = _(" by {holder}").format(holder=holder.text), holder.fix
        else:
            command = _LOOK.get(sys.platform, "lsof -nP -iTCP:{port} -sTCP:LISTEN")
            fix = _("Find out which program uses it: {command}").format(
                command=command.format(port=port)
            )
    if not fix:
        return by, f"{otherwise[:1].upper()}{otherwise[1:]}."
    return by, _("{fix}. Otherwise {otherwise}.").format(fix=fix, otherwise=otherwise)


def holder_of(port: int, proc: Path = _PROC) -> Holder | None:
    """Return who listens on the port; None where the system does not tell. Blocks."""
    sockets = _listening(port, proc)
    for folder in _processes(proc) if sockets else ():
        with contextlib.suppress(OSError):  # another user's, or one that has just ended
            for handle in (folder / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(handle.readlink()) in sockets:
                        return _described(folder)
    return _of_another_user(next(iter(sockets.values()))) if sockets else None


def _listening(port: int, proc: Path) -> dict[str, int]:
    """Return the links of the sockets that listen there, `socket:[inode]`, with their users."""
    found = {}
    for table in ("net/tcp", "net/tcp6"):
        with contextlib.suppress(OSError):
            for line in (proc / table).read_text("ascii", "replace").splitlines()[1:]:
                parts = line.split()
                listens = len(parts) > 9 and parts[3] == _LISTENS
                if listens and int(parts[1].rpartition(":")[2], 16) == port:
                    found[f"socket:[{parts[9]}]"] = int(parts[7])
    return found


def _processes(proc: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [each for each in proc.iterdir() if each.name.isdigit()]
    return []


def _of_another_user(uid: int) -> Holder:
    user = str(uid)
    if sys.platform != "win32":
        import pwd  # noqa: PLC0415 -- Windows has no such module

        with contextlib.suppress(KeyError):
            user = pwd.getpwuid(uid).pw_name
    if user == "tillbridge":
        text, fix = _("the installed bridge"), _("Stop it with sudo systemctl stop tillbridge")
        return Holder(0, text, fix)
    text = _("a program of the user {user}").format(user=user)
    return Holder(0, text, _("Let that user stop it"))


def _described(folder: Path) -> Holder:
    pid = int(folder.name)
    arguments = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    command, config = _tillbridge_command(arguments)
    if command == "sandbox":
        what = _("the practice service (tillbridge sandbox), process {pid}")
    elif command == "demo" or _DEMO_FOLDER in config:
        text = _("a running demo, process {pid}").format(pid=pid)
        pid = pid if command == "demo" else _parent_of(folder) or pid
        fix = _("End the demo with Ctrl-C in its terminal, or with kill {pid}").format(pid=pid)
        return Holder(pid, text, fix)
    elif command:
        path = (folder / "cwd").readlink() / (config or "bridge.toml")
        what = _("the bridge of {path}, process {pid}").replace("{path}", str(path))
    else:
        what = _program(folder, arguments)
    fix = _("Stop it with Ctrl-C in its terminal, or with kill {pid}").format(pid=pid)
    return Holder(pid, what.replace("{pid}", str(pid)), fix)


def _tillbridge_command(arguments: Sequence[str]) -> tuple[str, str]:
    """Return the command of a tillbridge, and the file it was given; "" of another program."""
    names = [Path(argument).stem for argument in arguments[:3]]
    if "tillbridge" not in names:
        return "", ""
    words = iter(arguments[names.index("tillbridge") + 1 :])
    config = ""
    for word in words:
        name, _equals, value = word.partition("=")
        if name == "--config":
            config = value or next(words, "")
        elif not word.startswith("-"):
            return word, config
    return "", config


def _parent_of(folder: Path) -> int:
    """Return the process that started this one; 0 where that has ended."""
    text = (folder / "stat").read_text("utf-8", "replace")
    parent = int(text.rpartition(")")[2].split()[1])
    return parent if parent > 1 else 0


def _program(folder: Path, arguments: Sequence[str]) -> str:
    name = (folder / "comm").read_text("utf-8", "replace").strip()
    # The first words alone: further ones may hold a password.
    words = [Path(each).name for each in arguments[:3] if each and not each.startswith("-")]
    command = " ".join(words)
    shown = _("{program}, process {pid}").format(program=name, pid="{pid}")
    return f"{shown} ({command})" if command not in {"", name} else shown
