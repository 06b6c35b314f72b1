"""Builds the Debian package: `make deb`, or `python packaging/deb/build.py --arch arm64`.

    wheels of the hashed lock ─┐
    our own wheels ────────────┼─▶ build/deb/ARCH/root ─▶ dist/tillbridge_VERSION_ARCH.deb
    units, sample, documents ──┘

The same sources give the same bytes: times are SOURCE_DATE_EPOCH (else that of the last commit),
modes and owners are set, names are sorted. Nothing of the machine that builds is in it, so any
machine can build for any other.
"""

import argparse
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import wheels

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAME = "tillbridge"
SITE = Path("usr/lib/tillbridge/site")
DOCUMENTS = ("docs/install.md", "docs/operate.md", "docs/configuration.md", "docs/problems.md")
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")


def main() -> None:
    """Build what the command line asks for, and say where it is."""
    asked = argparse.ArgumentParser(description="Build the Debian package.")
    asked.add_argument("--arch", choices=sorted(wheels.MACHINES), default="amd64")
    asked.add_argument("--out", type=Path, default=ROOT / "dist")
    asked.add_argument("--version", default="", help="another version than the program's")
    asked.add_argument("--offline", action="store_true", help="use the wheels that are there")
    given = asked.parse_args()
    print(build(given.arch, given.out, version=given.version, offline=given.offline))


def build(arch: str, out: Path, *, version: str = "", offline: bool = False) -> Path:
    """Build the package for this architecture into `out`; return its path."""
    version = version or _version()
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or _last_commit())
    work = ROOT / "build" / "deb" / arch
    store = ROOT / "build" / "wheels" / arch
    if not offline:
        wheels.fetch(ROOT, store, wheels.MACHINES[arch])
    root = work / "root"
    shutil.rmtree(work, ignore_errors=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    own = wheels.build_own(ROOT, work / "wheels", environment)
    wheels.unpack([*store.glob("*.whl"), *own], root / SITE)
    _lay_out(root, version, epoch)
    _control(root, version, arch)
    _settle(root, epoch)
    out.mkdir(parents=True, exist_ok=True)
    package = out / f"{NAME}_{version}_{arch}.deb"
    # One thread: how many there are shows in the compressed bytes.
    environment["DPKG_DEB_THREADS_MAX"] = "1"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zxz", "-z2", "--build", str(root), str(package)],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    return package


def _lay_out(root: Path, version: str, epoch: int) -> None:
    """Put everything but the modules in its place."""
    _put(HERE / "tillbridge", root / "usr/bin/tillbridge")
    for unit in sorted((ROOT / "systemd").glob("*.service")) + sorted(
        (ROOT / "systemd").glob("*.timer")
    ):
        _put(unit, root / "usr/lib/systemd/system" / unit.name)
    share = root / "usr/share/tillbridge"
    for sample in ("bridge.schema.json", "hours.toml", "store.toml"):
        _put(ROOT / "config" / sample, share / sample)
    (share / "bridge.toml").write_text(_configuration(), "utf-8")
    documents = root / "usr/share/doc" / NAME
    for document in DOCUMENTS:
        _put(ROOT / document, documents / Path(document).name)
    _put(HERE / "debian/copyright", documents / "copyright")
    _put(HERE / "debian/lintian-overrides", root / "usr/share/lintian/overrides" / NAME)
    _pack(documents / "changelog.Debian.gz", _changelog(version, epoch))
    _pack(documents / "changelog.gz", (ROOT / "CHANGELOG.md").read_text("utf-8"))


def _configuration() -> str:
    """Return the sample as a packaged bridge begins with it: the secret as a credential."""
    sample = (ROOT / "config/bridge.toml").read_text("utf-8")
    changed = sample.replace(
        'client_secret = { file = "client_secret" }',
        'client_secret = { credential = "client_secret" }',
    )
    if changed == sample:
        message = "config/bridge.toml has another client_secret than the package expects."
        raise ValueError(message)
    return changed


def _control(root: Path, version: str, arch: str) -> None:
    folder = root / "DEBIAN"
    folder.mkdir()
    newest = wheels.PYTHONS[-1].partition(".")[2]
    installed = sum(each.stat().st_size for each in root.rglob("*") if each.is_file()) // 1024
    text = (HERE / "debian/control").read_text("utf-8")
    for name, value in {
        "VERSION": version,
        "ARCH": arch,
        "SIZE": str(installed),
        "NEXT_PYTHON": f"3.{int(newest) + 1}",
    }.items():
        text = text.replace(f"@{name}@", value)
    (folder / "control").write_text(text, "utf-8")
    for script in SCRIPTS:
        _put(HERE / "debian" / script, folder / script)
    sums = "".join(
        f"{hashlib.md5(each.read_bytes(), usedforsecurity=False).hexdigest()}"
        f"  {each.relative_to(root)}\n"
        for each in sorted(root.rglob("*"))
        if each.is_file() and folder not in each.parents
    )
    (folder / "md5sums").write_text(sums, "utf-8")


def _settle(root: Path, epoch: int) -> None:
    """Give everything the time and the mode it has in every build."""
    executable = {root / "usr/bin/tillbridge", *(root / "DEBIAN" / each for each in SCRIPTS)}
    for path in sorted(root.rglob("*"), reverse=True):
        path.chmod(0o755 if path.is_dir() or path in executable else 0o644)
        os.utime(path, (epoch, epoch))
    root.chmod(0o755)
    os.utime(root, (epoch, epoch))


def _changelog(version: str, epoch: int) -> str:
    when = datetime.fromtimestamp(epoch, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
    return (
        f"{NAME} ({version}) stable; urgency=medium\n\n"
        f"  * What has changed is in changelog.gz beside this file.\n\n"
        f" -- The tillbridge contributors <maintainers@tillbridge.example>  {when}\n"
    )


def _pack(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def _put(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _version() -> str:
    text = (ROOT / "src/tillbridge/__init__.py").read_text("utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    if found is None:
        message = "src/tillbridge/__init__.py tells no version."
        raise ValueError(message)
    return found[1]


def _last_commit() -> str:
    told = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(ROOT), "log", "-1", "--format=%ct"],
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or "0"


if __name__ == "__main__":
    main()
