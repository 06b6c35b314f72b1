"""`tillbridge service ...`: the bridge as a service of this machine, under systemd.

Installing and removing it are plans: steps that are shown, and then done.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tillbridge
from tillbridge.cli import say
from tillbridge.cli.commands import Json, command
from tillbridge.cli.say import Arguments, Lines
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Argument

if TYPE_CHECKING:
    from tillbridge.config.loading import LoadedSettings

MARK = "# Written by tillbridge service install.\n"
USER = "tillbridge"
SYSTEM = Path("/etc/systemd/system")
SYSUSERS = Path("/etc/sysusers.d/tillbridge.conf")
# What the units say, and what is put there instead.
_PROGRAM = "/usr/bin/tillbridge"
_HOME = "/etc/tillbridge"
_DATA = "/var/lib/tillbridge"
_PACKAGED = Path("/usr/lib/systemd/system/tillbridge.service")
_SHOWN = "LoadState,ActiveState,SubState,UnitFileState,MainPID,NRestarts,Result,StatusText"
# The service sees none of these (ProtectHome=).
_HIDDEN = tuple(Path(each) for each in ("/home", "/root", "/run/user"))


@dataclass(frozen=True, slots=True)
class Write:
    """Put a file in place."""

    path: Path
    text: str
    mode: int = 0o644


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


Step = Write | Key | Run | Remove


@dataclass(frozen=True, slots=True)
class Found:
    """What is installed: the program, its configuration, and the state of the machine.

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
    writable: Sequence[Path] = ()
    readable: Sequence[Path] = ()


def unit_names(name: str) -> tuple[str, str]:
    """Return the service and the timer of a bridge; "" is the only one of its machine."""
    instance = f"@{name}" if name else ""
    return f"tillbridge{instance}.service", f"tillbridge-backup{instance}.timer"


def plan_install(found: Found, *, start: bool) -> list[Step]:
    """Return the steps. Raises ConfigError if the service could not run like this."""
    _check(found)
    steps: list[Step] = []
    if not found.has_user:
        steps.append(Write(SYSUSERS, MARK + found.units["tillbridge.sysusers"]))
        steps.append(Run(("systemd-sysusers", str(SYSUSERS))))
    credentials = found.config.parent / "credentials"
    steps.append(_folder(credentials))
    if not found.has_key and (found.key_beside or not found.has_vault):
        beside = found.data_dir / "ledger.key" if found.key_beside else None
        steps.append(Key(credentials / "ledger_key", beside))
    steps.append(_folder(found.data_dir))
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
        # A running one sees the folders that are opened for it only after a restart.
        steps.append(Run(("systemctl", "restart", service)))
    steps.append(Run(("systemctl", "enable", *(("--now",) if start else ()), timer)))
    return steps


def _folder(path: Path) -> Run:
    """Return what makes a folder of root's alone, where there is none."""
    return Run(("mkdir", "-p", "-m", "700", str(path)))


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
    # systemd opens the usual data folder by itself (StateDirectory=).
    usual = Path(_DATA) / "bridges" / found.name if found.name else Path(_DATA)
    lines = ["ProtectHome=tmpfs"] if hidden else []
    lines += [
        f"{'BindPaths' if _is_hidden(path) else 'ReadWritePaths'}=-{_quoted(path)}"
        for path in sorted({*found.writable} | {found.data_dir} - {usual})
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
        (found.config, _("Move the configuration to /etc/tillbridge, and pass it with --config.")),
        (found.data_dir, _('Set data_dir in [bridge] to "/var/lib/tillbridge".')),
    ):
        if _is_hidden(path):
            raise ConfigError(_("The service cannot see {path}.").format(path=path), fix=fix)
    expected = Path(_HOME) / "bridges" / found.name / "bridge.toml"
    if found.name and found.config != expected:
        raise ConfigError(
            _("The bridge {name} has its configuration in {path}.").format(
                name=found.name, path=expected
            ),
            fix=_("Put it there, and pass it with --config."),
        )


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


def look(loaded: "LoadedSettings", name: str) -> Found:
    """Return what this machine has. Raises ConfigError if an adapter is missing."""
    data_dir = loaded.data_dir
    credentials = loaded.base_dir / "credentials"
    writable, readable = _folders(loaded)
    return Found(
        program=Path(sys.argv[0]).absolute(),
        config=loaded.path,
        data_dir=data_dir,
        units={path.name: path.read_text("utf-8") for path in _units_folder().iterdir()},
        name=name,
        packaged=_PACKAGED.exists(),
        has_user=_has_user(),
        has_key=(credentials / "ledger_key").exists(),
        key_beside=(data_dir / "ledger.key").exists(),
        has_vault=(data_dir / "ledger.vault").exists(),
        writable=writable,
        readable=readable,
    )


def ours(name: str) -> list[Path]:
    """Return the files that installing has written for this bridge."""
    service, timer = unit_names(name)
    kind = service if not name else "tillbridge@.service"
    others = list(SYSTEM.glob("tillbridge@*.service.d/folders.conf")) if name else []
    shared = [SYSTEM / each for each in (kind, timer if not name else "tillbridge-backup@.timer")]
    backup = SYSTEM / ("tillbridge-backup@.service" if name else "tillbridge-backup.service")
    drop_in = SYSTEM / f"{service}.d" / "folders.conf"
    # The template serves the other bridges of this machine too.
    found = (
        [drop_in] if [each for each in others if each != drop_in] else [drop_in, *shared, backup]
    )
    return [path for path in found if _is_ours(path)]


def lines_of(step: Step) -> Iterator[str]:
    """Describe a step for people; no key is ever shown."""
    match step:
        case Write(path, text, mode):
            yield _("write {path} (mode {mode:o}):").format(path=path, mode=mode)
            yield from (f"    {line}".rstrip() for line in text.splitlines())
        case Key(path, None):
            yield _("create a new key for the database: {path}").format(path=path)
        case Key(path, beside):
            yield _("move the database's key from {beside} to {path}").format(
                beside=beside, path=path
            )
        case Run(command):
            yield _("run: {command}").format(command=" ".join(command))
        case Remove(path):
            yield _("delete {path}").format(path=path)


def do(step: Step) -> None:
    """Do a step. Raises BridgeError if the machine refuses."""
    try:
        match step:
            case Write(path, text, mode):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
                path.chmod(mode)
            case Key(path, beside):
                _store_key(path, beside)
            case Run(command):
                _run(command)
            case Remove(path):
                path.unlink(missing_ok=True)
                if path.parent.name.endswith(".d") and not any(path.parent.iterdir()):
                    path.parent.rmdir()
    except OSError as failure:
        raise BridgeError(
            _("This step failed: {step}: {detail}").format(
                step=next(lines_of(step)), detail=failure.strerror or failure
            ),
            fix=_("Correct that and run the command again: completed steps stay."),
        ) from failure


def _state_of(unit: str) -> dict[str, str]:
    """Return what systemd says of a unit. Raises BridgeError if there is no systemd."""
    if shutil.which("systemctl") is None:
        raise BridgeError(
            _("This machine has no systemd."),
            fix=_("Use another service manager: docs/install.md"),
        )
    done = subprocess.run(  # noqa: S603 -- systemctl with a unit of our own
        ["systemctl", "show", f"--property={_SHOWN}", unit],  # noqa: S607 -- wherever it is
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BridgeError(
            _("systemd does not answer: {detail}").format(detail=done.stderr.strip()),
            fix=_("systemd has to be the machine's first process. In a container it often is not."),
        )
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def _folders(loaded: "LoadedSettings") -> tuple[Sequence[Path], Sequence[Path]]:
    from tillbridge.pos.loader import find_adapter

    writable: set[Path] = set()
    readable: set[Path] = set()
    for store in loaded.settings.stores.values():
        for name, options in filter(None, (store.pos_adapter, store.order_adapter)):
            checked = find_adapter(name).options.model_validate(dict(options))
            for key in type(checked).model_fields:
                value = getattr(checked, key)
                if isinstance(value, Path):
                    path = loaded.base_dir / value
                    if key.endswith("_dir") or path.is_dir():
                        writable.add(path)
                    else:
                        readable.add(path.parent)
    return sorted(writable), sorted(readable)


def _units_folder() -> Path:
    """Return where the units are: in the installed program, or in the clone it runs from."""
    package = Path(tillbridge.__file__).parent
    installed = package / "systemd"
    return installed if installed.is_dir() else package.parents[1] / "systemd"


def _has_user() -> bool:
    if sys.platform == "win32":
        return False
    import pwd

    try:
        pwd.getpwnam(USER)
    except KeyError:
        return False
    return True


def _is_ours(path: Path) -> bool:
    try:
        return path.read_text("utf-8").startswith(MARK)
    except OSError:
        return False


def _store_key(path: Path, beside: Path | None) -> None:
    from cryptography.fernet import Fernet

    key = Fernet.generate_key() + b"\n" if beside is None else beside.read_bytes()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(key)
        stream.flush()
        os.fsync(stream.fileno())
    if beside is not None:
        beside.unlink()


def _run(command: tuple[str, ...]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- from the plan
    if done.returncode != 0:
        raise BridgeError(
            _("{command} failed: {detail}").format(
                command=" ".join(command), detail=(done.stderr or done.stdout).strip()
            ),
            fix=_("Correct that and run the command again: completed steps stay."),
        )


# -- the commands

Name = Annotated[str, Argument("NAME", _("The name of the bridge, if this machine has several."))]
DryRun = Annotated[bool, Argument(help=_("Show what would be done. Changes nothing."))]


@command("service install")
def install(
    loaded: "LoadedSettings",
    *,
    name: Name = "",
    no_start: Annotated[bool, Argument(help=_("Start it with the machine, but not now."))] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Install the bridge as a systemd service with a user of its own.

    Creates the user, moves the key out of the data folder, gives the service access to the tills'
    folders, and backs up every night. Safe to repeat: do it when a till's folder changes.

    Example: tillbridge --config /etc/tillbridge/bridge.toml service install --dry-run
    """
    steps = plan_install(look(loaded, _checked(name)), start=not no_start)
    text = _("{unit} is installed.").format(unit=unit_names(name)[0])
    fix = _("See its state: tillbridge service status")
    _carry_out(steps, dry_run=dry_run, as_json=as_json, text=text, fix=fix)


@command("service uninstall")
def uninstall(
    _context: typer.Context, *, name: Name = "", dry_run: DryRun = False, as_json: Json = False
) -> None:
    """Stop and uninstall the service. Configuration and data stay.

    To remove the files of a package, use the package manager.

    Example: tillbridge service uninstall --dry-run
    """
    steps = plan_uninstall(_checked(name), ours(name))
    text = _("{unit} is uninstalled.").format(unit=unit_names(name)[0])
    fix = _(
        "Configuration, credentials and data are still there. Delete them if you no longer "
        "need them."
    )
    _carry_out(steps, dry_run=dry_run, as_json=as_json, text=text, fix=fix)


def _carry_out(steps: Sequence[Step], *, dry_run: bool, as_json: bool, text: str, fix: str) -> None:
    if not dry_run and hasattr(os, "geteuid") and os.geteuid() != 0:
        raise ConfigError(
            _("Installing a service needs root."),
            fix=_("Run it with sudo, or see what it would do with --dry-run."),
        )
    lines = [line for step in steps for line in lines_of(step)]
    for line in () if as_json else lines:
        say.line(line)
    for step in () if dry_run else steps:
        do(step)
    if dry_run:
        text, fix = _("Nothing was changed."), _("To do it, run the command without --dry-run.")
    answer = {"ok": True, "dry_run": dry_run, "text": text, "fix": fix}
    if as_json:
        say.document({**answer, "steps": lines})
    else:
        say.lines(say.sentence(answer, {}))


def _show(answer: Answer, given: Arguments) -> Lines:
    service, timer = answer["service"], answer["backup_timer"]
    line = _("{unit}: {active} ({sub}), {enabled} at start").format(
        unit=answer["unit"],
        active=service["ActiveState"],
        sub=service["SubState"],
        enabled=service["UnitFileState"] or _("not installed"),
    )
    yield line, "ok" if answer["ok"] else "down"
    if service["StatusText"]:
        yield f"  {service['StatusText']}"
    line = _("  process {pid}, started again {n} times, last result: {result}")
    yield line.format(pid=service["MainPID"], n=service["NRestarts"], result=service["Result"])
    line = _("{unit}: {active}, {enabled} at start")
    enabled = timer["UnitFileState"] or _("not installed")
    yield line.format(
        unit=unit_names(given["name"])[1], active=timer["ActiveState"], enabled=enabled
    )


@command("service status", _show)
def status(_context: typer.Context, *, name: Name = "") -> Answer:
    """Show the service's state in systemd. Exit code: 0 it is active, 1 it is not.

    Example: tillbridge service status
    """
    service, timer = unit_names(_checked(name))
    found, backup = _state_of(service), _state_of(timer)
    active = found["ActiveState"] == "active"
    return {"ok": active, "unit": service, "service": found, "backup_timer": backup}


def _checked(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise ConfigError(
            _("{name} is not a valid name for a bridge.").format(name=name),
            fix=_("Use letters, digits, dots, dashes and underscores."),
        )
    return name
