"""The menu as the specification's menu push body, in either of its two shapes."""

import json
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tillbridge.adapter import AdapterContext, Catalogue, CatalogueChanges, ExportUnreadable
from tillbridge.adapter.decoding import guess_by_head, is_cut_short
from tillbridge.adapter.export_files import reading_whole, still_being_written
from tillbridge.adapter.sharing import read_shared
from tillbridge.pos.folder import json_pieces
from tillbridge.pos.folder.cells import BadCell
from tillbridge.pos.folder.known_items import KnownItems
from tillbridge.pos.folder.mapping import format_hint
from tillbridge.pos.folder.menu_gathered import Gathered
from tillbridge.pos.folder.options import FolderOptions


@dataclass(frozen=True, slots=True)
class MenuJson:
    """Reads the body. `menu_name` is for a flat body that does not name its menu."""

    path: Path
    menu_name: str
    encoding: str | None

    @classmethod
    def of(cls, path: Path, options: FolderOptions, context: AdapterContext) -> "MenuJson":
        """Return the reader of the menu at `path`; its prices are minor units of any currency."""
        del context
        return cls(path, options.menu_name, options.encoding)

    def read_catalogue(self) -> Catalogue:
        """Return the whole menu. Raises ExportUnreadable."""
        return self._read(None)

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the menu's difference from the items whose fingerprints are `known`.

        The ids of known items are not looked at, as in a CSV.
        """
        items = KnownItems(known)
        read = self._read(items)
        fresh = {}
        for external_id, item in read.items.items():
            fingerprint = read.fingerprints[external_id]
            if fingerprint in items.unseen:
                items.unseen.remove(fingerprint)
            else:
                fresh[external_id] = item
        fingerprints = {external_id: read.fingerprints[external_id] for external_id in fresh}
        return CatalogueChanges(
            fresh=replace(read, items=fresh, fingerprints=fingerprints),
            unseen=frozenset(items.unseen),
            items_read=len(known) - len(items.unseen) + len(fresh),
        )

    def _read(self, known: KnownItems | None) -> Catalogue:
        with reading_whole(self.path):
            text = json_text(self.path, self.encoding)
            body = parsed_json(self.path.name, text, known)
        gathered = Gathered(self.path.name, text, known)
        try:
            gathered.take_body(body, self.menu_name)
        except BadCell as bad:
            hint = format_hint(body, self.path) if isinstance(body, dict) else ""
            raise ExportUnreadable(
                f"{self.path.name} is not a menu"
                + (" as the ordering service has it." if hint else f": {bad.text}"),
                place=self.path.name,
                fix=hint or bad.fix,
            ) from bad
        return gathered.catalogue()


def json_text(path: Path, encoding: str | None) -> str:
    """Return the text of a JSON file. Raises ExportUnreadable, OSError."""
    content = read_shared(path)
    encoding = encoding or guess_by_head(content[:4096]).encoding
    try:
        return content.decode(encoding).lstrip("\ufeff")
    except UnicodeDecodeError as failure:
        if is_cut_short(failure):
            raise still_being_written(path.name, "ends inside a character") from failure
        raise ExportUnreadable(
            f"{path.name} is not written in {encoding}.",
            place=path.name,
            fix="JSON is UTF-8. If the till writes something else, set encoding.",
        ) from failure


def parsed_json(name: str, text: str, known: KnownItems | None = None) -> Any:  # noqa: ANN401 -- any JSON value
    """Return what the JSON of the file `name` says. Raises ExportUnreadable."""
    try:
        return json_pieces.parse(text, known)
    except json.JSONDecodeError as failure:
        raise ExportUnreadable(
            f"{name} is not whole JSON: {failure.msg}.",
            place=f"{name}, line {failure.lineno}, column {failure.colno}",
            fix="Nothing to do while the till writes it. If this stays, export again.",
            passing=True,
        ) from failure
    except (ValueError, RecursionError) as failure:
        raise ExportUnreadable(
            f"{name} is not a menu: {failure}.",
            place=name,
            fix="Export again.",
        ) from failure
