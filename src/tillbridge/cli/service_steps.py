"""Looking at the machine for `tillbridge service`, and doing the steps."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tillbridge
from tillbridge.cli import service_plan as plan
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings

_PACKAGED = Path("/usr/lib/systemd/system/tillbridge.service")
_SHOWN = "LoadState,ActiveState,SubState,UnitFileState,MainPID,NRestarts,Result,StatusText"


def look(loaded: "LoadedSettings", name: str) -> plan.Found:
    """Return what there is on this machine. Raises ConfigError where an adapter is not there."""
    data_dir = loaded.data_dir
    credentials = loaded.base_dir / "credentials"
    writable, readable = _folders(loaded)
    return plan.Found(
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
    service, timer = plan.unit_names(name)
    kind = service if not name else "tillbridge@.service"
    others = list(plan.SYSTEM.glob("tillbridge@*.service.d/folders.conf")) if name else []
    shared = [
        plan.SYSTEM / each for each in (kind, timer if not name else "tillbridge-backup@.timer")
    ]
    backup = plan.SYSTEM / ("tillbridge-backup@.service" if name else "tillbridge-backup.service")
    drop_in = plan.SYSTEM / f"{service}.d" / "folders.conf"
    # The template serves the other bridges of this machine too.
    found = (
        [drop_in] if [each for each in others if each != drop_in] else [drop_in, *shared, backup]
    )
    return [path for path in found if _is_ours(path)]


def told(step: plan.Step) -> Iterator[str]:
    """Say what a step does, for people; no key is ever shown."""
    match step:
        case plan.Write(path, text, mode):
            yield _("write {path} (mode {mode:o}):").format(path=path, mode=mode)
            yield from (f"    {line}".rstrip() for line in text.splitlines())
        case plan.Folder(path, mode):
            yield _("make the folder {path} (mode {mode:o})").format(path=path, mode=mode)
        case plan.Key(path, None):
            yield _("make a new key for the ledger: {path}").format(path=path)
        case plan.Key(path, beside):
            yield _("move the ledger's key from {beside} to {path}").format(
                beside=beside, path=path
            )
        case plan.Run(command):
            yield _("run: {command}").format(command=" ".join(command))
        case plan.Remove(path):
            yield _("delete {path}").format(path=path)


def do(step: plan.Step) -> None:
    """Do a step. Raises BridgeError where the machine refuses."""
    try:
        match step:
            case plan.Write(path, text, mode):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
                path.chmod(mode)
            case plan.Folder(path, mode):
                if not path.is_dir():
                    path.mkdir(parents=True)
                    path.chmod(mode)
            case plan.Key(path, beside):
                _keep_key(path, beside)
            case plan.Run(command):
                _run(command)
            case plan.Remove(path):
                path.unlink(missing_ok=True)
                if path.parent.name.endswith(".d") and not any(path.parent.iterdir()):
                    path.parent.rmdir()
    except OSError as failure:
        raise BridgeError(
            _("This step failed: {step}: {detail}").format(
                step=next(told(step)), detail=failure.strerror or failure
            ),
            fix=_("Mend that and run the command again: what is done already stays."),
        ) from failure


def state_of(unit: str) -> dict[str, Any]:
    """Return what systemd says of a unit. Raises BridgeError where there is no systemd."""
    if shutil.which("systemctl") is None:
        raise BridgeError(
            _("This machine has no systemd."),
            fix=_("Run the bridge by another service manager: docs/install.md"),
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
            fix=_("Is it the machine's first process? In a container it may not be."),
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
        pwd.getpwnam(plan.USER)
    except KeyError:
        return False
    return True


def _is_ours(path: Path) -> bool:
    try:
        return path.read_text("utf-8").startswith(plan.MARK)
    except OSError:
        return False


def _keep_key(path: Path, beside: Path | None) -> None:
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
            fix=_("Mend that and run the command again: what is done already stays."),
        )
