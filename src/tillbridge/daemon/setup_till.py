"""The till: which adapters there are, their options, and what one reads when it is tried."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tillbridge.adapter import AdapterContext, WritesTickets
from tillbridge.adapter.conformance.quality import NO_LEVEL
from tillbridge.adapter.registration import closing
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.log import learn_secret
from tillbridge.core.own_files import is_own
from tillbridge.diagnostics.apart import apart
from tillbridge.ledger.database import write_durably
from tillbridge.pos.kit import find_quality
from tillbridge.pos.loader import find_adapter, find_adapters, open_adapter
from tillbridge.setup.draft import Draft
from tillbridge.setup.options_form import fields_of, file_only, said_in
from tillbridge.setup.preview import preview_of
from tillbridge.web.ports import Answer

_PATIENCE_S = 20.0
_ALWAYS_THERE = "folder"


def adapters(names: Collection[str] = ()) -> list[Answer]:
    """Return the installed adapters, each with the level that it says it reaches (blocking).

    With `names` only these; all of them have to be imported for it.
    """
    chosen = {name: find_adapter(name) for name in names} if names else find_adapters()
    found = []
    for name, adapter in chosen.items():
        quality = find_quality(adapter)
        level = NO_LEVEL if quality is None else quality.reached
        found.append({"name": name, "summary": adapter.summary, "level": level})
    return found


def form_of(said: Mapping[str, Any]) -> list[Answer]:
    """Return the fields of an adapter's options, `said` being the adapter and what holds."""
    options = {key: value for key, value in said.items() if key != "adapter"}
    adapter = find_adapter(str(said.get("adapter") or _ALWAYS_THERE))
    return [field.to_json() for field in fields_of(adapter.options, options)]


def said_of(
    adapter: str, form: Mapping[str, str], kept: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Return an adapter and its options as they are to stand in the file (blocking).

    A secret goes into a file of its own in `folder`, which only this user reads; one that was left
    empty stays as it was `kept`, and so does what only the file may say: which program is started,
    which module is imported. Raises ConfigError.
    """
    same = kept.get("adapter") == adapter
    if not same and adapter not in find_adapters():
        raise _only_in_the_file(_("An adapter that is not installed"), adapter)
    model = find_adapter(adapter).options
    said = said_in(model, form)
    for name, required in file_only(model).items():
        if same and name in kept:
            said[name] = kept[name]
        elif required:
            raise _only_in_the_file(_("Which program the bridge starts"), adapter)
    for field in fields_of(model, {}):
        if field.kind != "secret":
            continue
        if field.name in said:
            said[field.name] = _in_a_file(said[field.name], folder / f"{adapter}.{field.name}")
        elif same and field.name in kept:
            said[field.name] = kept[field.name]
    return {"adapter": adapter, **said}


def refuse_own_places(said: Mapping[str, Any], form: Mapping[str, str], *, base_dir: Path) -> None:
    """Raise ConfigError where a form names a file of the bridge's own, or of the system's.

    Whoever uses the machine can open the page; the bridge reads what they may not. A link that is
    changed after this check is refused when it is opened (`adapter.sharing`). Blocking.
    """
    for name in form.keys() & said.keys():
        if not isinstance(said[name], str):
            continue
        # A database's URL names its file behind the last of its slashes.
        behind = said[name].rpartition("///")[2].lstrip("/")
        for text in {said[name], behind, f"/{behind}"}:
            if is_own(base_dir / text):
                raise ConfigError(
                    _("{name}: {path} is not the till's.").format(name=name, path=said[name]),
                    fix=_("Name a file or folder that the till writes."),
                )


def _only_in_the_file(what: str, adapter: str) -> ConfigError:
    return ConfigError(
        _("{what} cannot be set on this page, which others on this machine can open too.").format(
            what=what
        ),
        fix=_(
            'Set adapter = "{adapter}" and its options in bridge.toml, with an editor; what stands '
            "there can be tried and changed here."
        ).format(adapter=adapter),
    )


def _in_a_file(secret: str, path: Path) -> dict[str, str]:
    learn_secret(secret)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_durably(path, secret.encode())
    except OSError as failure:
        raise ConfigError(
            _("{path} cannot be written: {why}.").format(path=path, why=failure.strerror),
            fix=_("Let the bridge's user write there."),
        ) from failure
    return {"file": str(path)}


async def tried(said: Mapping[str, Any], draft: Draft, base_dir: Path) -> Answer:
    """Open the adapter and look at what it reads, once. Raises ConfigError."""
    currency = draft.currency or "USD"

    def look() -> Answer:
        pos = _opened(said, draft, base_dir, "pos")
        with closing(pos):
            return preview_of(pos, currency)

    try:
        return await asyncio.wait_for(apart(look), _PATIENCE_S)
    except TimeoutError:
        raise ConfigError(
            _("{adapter} has read nothing within {n} seconds.").format(
                adapter=said["adapter"], n=round(_PATIENCE_S)
            ),
            fix=_("Look whether the folder is on a share that does not answer, or the till hangs."),
        ) from None


async def takes_orders(said: Mapping[str, Any], draft: Draft, base_dir: Path) -> bool:
    """Whether an adapter, opened with these options, takes orders. Raises ConfigError."""

    def look() -> bool:
        pos = _opened(said, draft, base_dir, "orders")
        with closing(pos):
            return isinstance(pos, WritesTickets)

    return await asyncio.wait_for(apart(look), _PATIENCE_S)


def _opened(said: Mapping[str, Any], draft: Draft, base_dir: Path, table: str) -> object:
    context = AdapterContext(
        draft.store, draft.currency or "USD", draft.location_id or draft.store, base_dir
    )
    options = {key: value for key, value in said.items() if key != "adapter"}
    return open_adapter(str(said["adapter"]), options, context, table=table)
