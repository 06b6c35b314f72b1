"""The codes of tables as files: SVG, PNG, and the name of a printed sheet."""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.qr_sheets.sheet import (
    QrTable,
    code_of,
    file_stems,
    in_order,
    png_file,
    printable,
    slug,
    svg_file,
)


def sheet_name(store: str, zone: str | None) -> str:
    """Return the name of a sheet's file; a print for one zone has a file of its own."""
    return "-".join(filter(None, ("tables", store, slug(zone or "")))) + ".html"


def single_files(
    tables: list[QrTable], store: str, title: str, *, kind: str
) -> Mapping[str, bytes]:
    """Return the contents of a file a table (`kind`: svg or png) by the file's name."""
    ordered = in_order(tables)
    stems = file_stems(store, ((each.name, each.external_id) for each in ordered))
    files = {}
    for stem, each in zip(stems, ordered, strict=True):
        name = printable(each.name)
        code = code_of(name, each.url)
        label = ", ".join(filter(None, (name, printable(title))))
        files[f"{stem}.{kind}"] = png_file(code) if kind == "png" else svg_file(code, label)
    return files


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write the files, each whole or not at all; return their paths. Raises BridgeError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_write(folder / name, content) for name, content in files.items()]
    except OSError as failure:
        raise BridgeError(
            _("{path} cannot be written: {detail}.").format(
                path=failure.filename or folder, detail=failure.strerror or failure
            ),
            fix=_("Choose another folder with --out."),
        ) from failure


def _write(path: Path, content: bytes) -> Path:
    with NamedTemporaryFile(dir=path.parent, prefix=".tables-", delete=False) as beside:
        try:
            beside.write(content)
            beside.close()
            os.chmod(beside.name, 0o666 & ~_umask())  # noqa: PTH101 -- whoever prints it may read it
            Path(beside.name).replace(path)
        except BaseException:
            Path(beside.name).unlink(missing_ok=True)
            raise
    return path


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
