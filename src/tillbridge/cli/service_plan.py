"""What installing and removing the systemd service takes: steps as values, nothing done yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _

MARK = "# Written by tillbridge service install.\n"
USER = "tillbridge"
SYSTEM = Path("/etc/systemd/system")
SYSUSERS = Path("/etc/sysusers.d/tillbridge.conf")
# What the units say, and what is put there instead.
_PROGRAM = "/usr/bin/tillbridge"
_HOME = "/etc/tillbridge"
_DATA = "/var/lib/tillbridge"
# The service sees none of these (ProtectHome=).
_HIDDEN = tuple(Path(each) for each in ("/home", "/root", "/run/user"))


@dataclass(frozen=True, slots=True)
class Write:
    """Put a file in place."""

    path: Path
    text: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Folder:
    """Make a folder, where there is none."""

    path: Path
    mode: int


@dataclass(frozen=True, slots=True)
class Key:
    """Put the ledger's key among the credentials: the one beside the ledger, else a new one."""

    path: Path
    beside: Path | None


@dataclass(frozen=True, slots=True)
class Run:
    """Run a command."""

    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a file that installing has written."""

    path: Path


Step = Write | Folder | Key | Run | Remove


@dataclass(frozen=True, slots=True)
class Found:
    """What there is: the program, its configuration, and the state of the machine.

    `units` are the texts of the units by name; `packaged` says that a package has put them in
    place. `writable` are the tills' folders that the bridge writes, `readable` those it reads.
    """

    program: Path
    config: Path
    data_dir: Path
    units: Mapping[str, str]
    name: str = ""
    packaged: bool = False
    has_user: bool = False
    has_key: bool = False
    key_beside: bool = False
    has_vault: bool = False
    writable: Sequence[Path] = field(default_factory=tuple)
    readable: Sequence[Path] = field(default_factory=tuple)


def unit_names(name: str) -> tuple[str, str]:
    """Return the service and the timer of a bridge; "" is the only one of its machine."""
    instance = f"@{name}" if name else ""
    return f"tillbridge{instance}.service", f"tillbridge-backup{instance}.timer"


def plan_install(found: Found, *, start: bool) -> list[Step]:
    """Return the steps. Raises ConfigError where the service could not run like this."""
    _check(found)
    steps: list[Step] = []
    if not found.has_user:
        steps.append(Write(SYSUSERS, MARK + found.units["tillbridge.sysusers"]))
        steps.append(Run(("systemd-sysusers", str(SYSUSERS))))
    credentials = found.config.parent / "credentials"
    steps.append(Folder(credentials, 0o700))
    if not found.has_key and (found.key_beside or not found.has_vault):
        beside = found.data_dir / "ledger.key" if found.key_beside else None
        steps.append(Key(credentials / "ledger_key", beside))
    steps.append(Folder(found.data_dir, 0o700))
    steps.append(Run(("chown", "-R", f"{USER}:{USER}", str(found.data_dir))))
    steps.append(Run(("chgrp", USER, str(found.config))))
    steps.append(Run(("chmod", "g+r", str(found.config))))
    if not found.packaged or _rendered(found) != _as_packaged(found):
        steps += [
            Write(SYSTEM / name, MARK + text) for name, text in sorted(_rendered(found).items())
        ]
    service, timer = unit_names(found.name)
    if drop_in := folders_drop_in(found):
        steps.append(Write(SYSTEM / f"{service}.d" / "folders.conf", MARK + drop_in))
    steps.append(Run(("systemctl", "daemon-reload")))
    steps.append(Run(("systemctl", "enable", service)))
    if start:
        # One that runs already sees the folders that are opened for it only once it starts anew.
        steps.append(Run(("systemctl", "restart", service)))
    steps.append(Run(("systemctl", "enable", *(("--now",) if start else ()), timer)))
    return steps


def plan_uninstall(name: str, ours: Sequence[Path]) -> list[Step]:
    """Return the steps; `ours` are the files that installing has written."""
    service, timer = unit_names(name)
    return [
        Run(("systemctl", "disable", "--now", service, timer)),
        *(Remove(path) for path in ours),
        Run(("systemctl", "daemon-reload")),
    ]


def folders_drop_in(found: Found) -> str:
    """Return the drop-in that opens the folders of the tills, "" where none is needed."""
    hidden = [path for path in (*found.writable, *found.readable) if _is_hidden(path)]
    lines = ["ProtectHome=tmpfs"] if hidden else []
    lines += [
        f"{'BindPaths' if _is_hidden(path) else 'ReadWritePaths'}=-{_quoted(path)}"
        for path in sorted({*found.writable, *_elsewhere(found)})
    ]
    lines += [
        f"BindReadOnlyPaths=-{_quoted(path)}"
        for path in sorted({*found.readable} - {*found.writable})
        if _is_hidden(path)
    ]
    return "\n".join(("[Service]", *lines, "")) if lines else ""


def _check(found: Found) -> None:
    for path, fix in (
        (
            found.program,
            _("Install the package, or make the virtual environment in /opt/tillbridge."),
        ),
        (found.config, _("Move the configuration to /etc/tillbridge, and name it with --config.")),
        (found.data_dir, _('Let data_dir in [bridge] be "/var/lib/tillbridge".')),
    ):
        if _is_hidden(path):
            raise ConfigError(_("The service cannot see {path}.").format(path=path), fix=fix)
    expected = Path(_HOME) / "bridges" / found.name / "bridge.toml"
    if found.name and found.config != expected:
        raise ConfigError(
            _("The bridge {name} has its configuration in {path}.").format(
                name=found.name, path=expected
            ),
            fix=_("Put it there, and name it with --config."),
        )


def _elsewhere(found: Found) -> list[Path]:
    """Return the data folder where systemd does not open it by itself (StateDirectory=)."""
    usual = Path(_DATA) / "bridges" / found.name if found.name else Path(_DATA)
    return [] if found.data_dir == usual else [found.data_dir]


def _rendered(found: Found) -> dict[str, str]:
    """Return the units of this bridge, with its program and its places."""
    texts = {}
    for name, text in _as_packaged(found).items():
        changed = text.replace(_PROGRAM, str(found.program))
        if not found.name:
            changed = changed.replace(f"{_HOME}/bridge.toml", str(found.config))
            changed = changed.replace(
                f"{_HOME}/credentials/", f"{found.config.parent}/credentials/"
            ).replace(f"{_DATA}/ledger.db", f"{found.data_dir}/ledger.db")
        texts[name] = changed
    return texts


def _as_packaged(found: Found) -> dict[str, str]:
    return {
        name: text
        for name, text in found.units.items()
        if name.endswith((".service", ".timer")) and ("@" in name) == bool(found.name)
    }


def _is_hidden(path: Path) -> bool:
    return any(path.is_relative_to(each) for each in _HIDDEN)


def _quoted(path: Path) -> str:
    """Return a path as a unit writes it: spaces and specifiers mean something there."""
    text = str(path).replace("\\", "\\\\").replace("%", "%%").replace('"', '\\"')
    return text.replace(" ", "\\x20")
