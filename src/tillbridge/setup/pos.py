"""The till: which adapters there are, their options, and what one reads when it is tried."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from tillbridge.adapter import AdapterContext, ReadsCatalogue, WritesTickets
from tillbridge.adapter.conformance.suite import NO_LEVEL
from tillbridge.adapter.registration import closing
from tillbridge.core.errors import ConfigError
from tillbridge.core.files import is_own
from tillbridge.core.i18n import _, joined, ngettext
from tillbridge.core.log import learn_secret
from tillbridge.core.worker import in_thread
from tillbridge.ledger.database import write_durably
from tillbridge.model.money import to_major
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.kit import find_quality, trial_of
from tillbridge.pos.loader import find_adapter, find_adapters, open_found
from tillbridge.setup.draft import Draft, Finding, done, not_done
from tillbridge.setup.options import ExportColumns, columns_of, fields_of, file_only, options_in
from tillbridge.setup.proposal import SetupContext

Looked = TypeVar("Looked")

_PATIENCE_S = 20.0
_USUAL = "folder"


def adapters(names: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the installed adapters, each with the level that it says it reaches (blocking).

    With `names` only these; all of them have to be imported for it.
    """
    chosen = {name: find_adapter(name) for name in names} if names else find_adapters()
    found = []
    for name, adapter in chosen.items():
        quality = find_quality(adapter)
        level = NO_LEVEL if quality is None else quality.reached
        found.append({"name": name, "summary": _(adapter.summary), "level": level})
    return found


def form_of(answers: Mapping[str, Any], *, for_menu: bool = True) -> list[dict[str, Any]]:
    """Return the fields of an adapter's options, `answers` being the adapter and what holds."""
    options = {key: value for key, value in answers.items() if key != "adapter"}
    adapter = find_adapter(str(answers.get("adapter") or _USUAL))
    return [asdict(field) for field in fields_of(adapter.options, options, for_menu=for_menu)]


def columns_in(answers: Mapping[str, Any], base_dir: Path) -> ExportColumns | None:
    """Return the columns of the menu that the folder adapter reads with these options (blocking).

    None if there are none to choose.
    """
    if answers.get("adapter") != _USUAL or not answers.get("menu"):
        return None
    options = {key: value for key, value in answers.items() if key != "adapter"}
    try:
        return columns_of(FolderOptions.model_validate(options), base_dir)
    except ValidationError:  # which opening the adapter says
        return None


_SAMPLE = Path("sample-till")
SAMPLE_MENU = str(_SAMPLE / "export/menu.csv")


def sample_till(base_dir: Path) -> dict[str, Any]:
    """Make a till of files to practise with, and return its options (blocking).

    What is there already stays. Raises ConfigError.
    """
    export = base_dir / _SAMPLE / "export"
    try:
        export.mkdir(parents=True, exist_ok=True)
        for name in ("menu.csv", "addons.csv"):
            if not (export / name).exists():
                menu = files("tillbridge").joinpath("demo", "store", name)
                (export / name).write_bytes(menu.read_bytes())
    except OSError as failure:
        raise _not_writable(export, failure) from failure
    return {
        "adapter": _USUAL,
        "menu": SAMPLE_MENU,
        "addons": str(_SAMPLE / "export/addons.csv"),
        "orders_dir": str(_SAMPLE / "orders"),
        "updates_dir": str(_SAMPLE / "updates"),
    }


def answers_of(
    adapter: str, form: Mapping[str, str], before: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Return an adapter and its options as they are to be in the file (blocking).

    A secret goes into a file of its own in `folder`, which only this user reads; one that was left
    empty stays as it was `before`, and so does what only the file may say: which program is run,
    which module is imported. Raises ConfigError.
    """
    same = before.get("adapter") == adapter
    if not same and adapter not in find_adapters():
        raise _only_in_the_file(_("An adapter that is not installed here"), adapter)
    model = find_adapter(adapter).options
    answers = options_in(model, form)
    for name, required in file_only(model).items():
        if same and name in before:
            answers[name] = before[name]
        elif required:
            raise _only_in_the_file(_("Which program the bridge starts"), adapter)
    for field in fields_of(model, {}):
        if field.kind != "secret":
            continue
        if field.name in answers:
            answers[field.name] = _in_a_file(
                answers[field.name], folder / f"{adapter}.{field.name}"
            )
        elif same and field.name in before:
            answers[field.name] = before[field.name]
    return {"adapter": adapter, **answers}


def refuse_own_places(
    answers: Mapping[str, Any], form: Mapping[str, str], *, base_dir: Path
) -> None:
    """Raise ConfigError if a form names a file of the bridge's own, or of the system's.

    Whoever uses the machine can open the page; the bridge reads what they may not. A link that is
    changed after this check is refused when it is opened (`adapter.sharing`). Blocking.
    """
    for name in form.keys() & answers.keys():
        if not isinstance(answers[name], str):
            continue
        # A database's URL names its file behind the last of its slashes.
        behind = answers[name].rpartition("///")[2].lstrip("/")
        for text in {answers[name], behind, f"/{behind}"}:
            if is_own(base_dir / text):
                raise ConfigError(
                    _("{path} does not belong to the till.").format(path=answers[name]),
                    fix=_("Choose a file or folder that the till writes."),
                    field=name,
                )


def _only_in_the_file(what: str, adapter: str) -> ConfigError:
    return ConfigError(
        _(
            "{what} cannot be set on this page, because others on this machine can open it too."
        ).format(what=what),
        fix=_(
            'Set adapter = "{adapter}" and its options in bridge.toml with an editor. '
            "After that you can test and change them here."
        ).format(adapter=adapter),
    )


def _in_a_file(secret: str, path: Path) -> dict[str, str]:
    learn_secret(secret)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_durably(path, secret.encode())
    except OSError as failure:
        raise _not_writable(path, failure) from failure
    return {"file": str(path)}


def _not_writable(path: Path, failure: OSError) -> ConfigError:
    return ConfigError(
        _("{path} cannot be written: {why}.").format(path=path, why=failure.strerror),
        fix=_("Give the bridge's user permission to write there."),
    )


async def tried(answers: Mapping[str, Any], draft: Draft, base_dir: Path) -> dict[str, Any]:
    """Open the adapter and look at what it reads, once. Raises ConfigError."""
    currency = draft.currency or "USD"
    return await _looked(answers, draft, base_dir, lambda pos: preview_of(pos, currency))


async def takes_orders(answers: Mapping[str, Any], draft: Draft, base_dir: Path) -> bool:
    """Whether an adapter, opened with these options, takes orders. Raises ConfigError."""
    return await _looked(answers, draft, base_dir, lambda pos: isinstance(pos, WritesTickets))


async def _looked(
    answers: Mapping[str, Any],
    draft: Draft,
    base_dir: Path,
    look: Callable[[object], Looked],
) -> Looked:
    """Open an adapter, let `look` look at it in a thread, and close it. Raises ConfigError."""
    name = str(answers["adapter"])
    options = {key: value for key, value in answers.items() if key != "adapter"}
    location_id = draft.location_id or draft.store
    context = AdapterContext(draft.store, draft.currency or "USD", location_id, base_dir)

    def opened() -> Looked:
        pos = open_found(find_adapter(name), options, context)
        with closing(pos):
            return look(pos)

    try:
        return await asyncio.wait_for(in_thread(opened), _PATIENCE_S)
    except TimeoutError:
        raise ConfigError(
            _("{adapter} could not read anything within {n} seconds.").format(
                adapter=name, n=round(_PATIENCE_S)
            ),
            fix=_(
                "Check whether the folder is on a network share that does not answer, and whether "
                "the till hangs."
            ),
        ) from None


_ROWS = 8
_NAMED = 3
_BAD_ROWS = 5
_NAMES = 12


def preview_of(pos: object, currency: str) -> dict[str, Any]:
    """Read all there is to read, once (blocking), and return the part of it that is shown."""
    return shown(
        trial_of(pos).readings,
        currency,
        reads_menu=isinstance(pos, ReadsCatalogue),
        takes_orders=isinstance(pos, WritesTickets),
    )


def shown(
    read: Mapping[str, Any], currency: str, *, reads_menu: bool, takes_orders: bool
) -> dict[str, Any]:
    """Return what is shown of a trial's readings."""
    catalogue = read.get("catalogue", {})
    items = catalogue.get("items", [])
    stopped = [
        key
        for key, state in read.get("availability", {}).get("items", {}).items()
        if not state["available"]
    ]
    tables = read.get("tables", {}).get("tables", [])
    parts = ("catalogue", "availability", "tables")
    bad = [row for part in parts for row in read.get(part, {}).get("bad_rows", [])]
    return {
        "unknown_columns": False,  # the page asks which they are
        "reads_menu": reads_menu,
        "takes_orders": takes_orders,
        "health": read.get("health"),
        "troubles": [
            {"text": read[part]["error"], "fix": read[part]["fix"]}
            for part in parts
            if "error" in read.get(part, {})
        ],
        "items": len(items),
        "categories": len(catalogue.get("categories", [])),
        "addon_groups": len(catalogue.get("addon_groups", [])),
        "rows": [
            {
                "external_id": item["external_id"],
                "name": item["name"],
                "price": to_major(item["price"], currency),
                "on_sale": item.get("available", True) and item["external_id"] not in stopped,
            }
            for item in items[:_ROWS]
        ],
        "sold_out": len(stopped) + sum(not item.get("available", True) for item in items),
        "tables": len(tables),
        "table_names": [table["name"] for table in tables[:_NAMES]],
        "bad_rows": [
            joined(" ", filter(None, (row["place"], row["text"], row["fix"])))
            for row in bad[:_BAD_ROWS]
        ],
        "bad_count": len(bad),
    }


def finding_of(preview: Mapping[str, Any]) -> Finding:
    """Return whether an adapter that reads this can serve the storefront's menu."""
    if preview["unknown_columns"]:
        return not_done(
            _("The columns of this file have other names."),
            _("Choose below which column is which, then read the menu again."),
            field="columns",
        )
    if preview["troubles"]:
        return Finding(done=False, **preview["troubles"][0], field="menu")
    if not preview["reads_menu"]:
        return not_done(
            _("With these options the bridge cannot read a menu."),
            _("Enter where the till writes its menu."),
            field="menu",
        )
    if not preview["items"] and preview["bad_rows"]:
        return not_done(
            _("No row of the till's menu can be read; the first: {row}"),
            _("If that is not the till's mistake, change the options. Then read the menu again."),
            row=preview["bad_rows"][0],
            field="menu",
        )
    if not preview["items"]:
        return not_done(
            _("The till's menu has no items."),
            _("Let the till export its menu, then read it again."),
            field="menu",
        )
    health = preview["health"]
    if health is not None and not health["online"]:
        return not_done(
            _("The till does not answer: {detail}"),
            _("Start it, then read the menu again."),
            detail=health["detail"],
        )
    count, rows = preview["items"], preview["rows"][:_NAMED]
    found = ngettext(
        "Found {n} item in the till's menu: {some}",
        "Found {n} items in the till's menu: {some}",
        count,
    )
    named = ", ".join(f"{row['name']} {row['price']}" for row in rows)
    return done(found, n=count, some=named + (", ..." if count > len(rows) else "."))


_LOOK_AGAIN_S = 2.0
_WATCHED_S = 90.0  # a page that is open asks at least every 30 seconds


class TillPreview:
    """What was tried last, and what it reads for as long as somebody looks."""

    def __init__(self, place: SetupContext) -> None:
        self._place = place
        self._tried: dict[str, Any] = {}  # the adapter and its options
        self._seen: dict[str, Any] | None = None
        self._shown_at = 0.0  # monotonic seconds
        self._looking: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Stop reading."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def forget(self) -> None:
        """Forget what was tried."""
        self._tried, self._seen = {}, None

    async def answers(
        self, adapter: str, form: Mapping[str, str], before: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return an adapter and its options, as they are to be in the file."""
        data_dir, base_dir = self._place.ledger.data_dir, self._place.base_dir

        def read() -> dict[str, Any]:
            answers = answers_of(adapter, form, before, data_dir / "secrets")
            refuse_own_places(answers, form, base_dir=base_dir)
            return answers

        return await asyncio.to_thread(read)

    async def look(self, answers: dict[str, Any], draft: Draft) -> dict[str, Any]:
        """Return what an adapter reads, and keep reading. Raises ConfigError."""
        self._tried, self._seen = answers, None
        seen = await tried(answers, draft, self._place.base_dir)
        columns = await asyncio.to_thread(columns_in, answers, self._place.base_dir)
        if columns is not None and columns.missing:
            return {**seen, "unknown_columns": True}
        self._seen = seen
        self._shown_at = self._place.clock.monotonic()
        await self.close()
        self._looking = asyncio.create_task(self._look_on(answers, draft), name="setup.preview")
        return self._seen

    async def show(self, draft: Draft, adapter: str, *, all_adapters: bool) -> dict[str, Any]:
        """Return what the form holds, for the adapter that is chosen or was tried.

        Looking at all adapters imports them: beside a running bridge only who asks for it pays.
        """
        answers = self._tried or dict(draft.pos)
        if adapter and adapter != answers.get("adapter"):
            answers = {"adapter": adapter}
        name = str(answers.get("adapter") or _USUAL)
        columns = None
        if all_adapters or self._tried:
            columns = await asyncio.to_thread(columns_in, answers, self._place.base_dir)
        menu_only = "menu" in draft.found and "adapter" not in draft.found
        self._shown_at = self._place.clock.monotonic()
        return {
            "adapters": await asyncio.to_thread(adapters, () if all_adapters else (name,)),
            "all_adapters": all_adapters,
            "adapter": name,
            "fields": await asyncio.to_thread(form_of, {**answers, "adapter": name}),
            "preview": self._seen if self._tried.get("adapter") == name else None,
            "needs_orders": menu_only,
            "orders_adapter": str(draft.orders.get("adapter") or _USUAL),
            "orders_fields": await asyncio.to_thread(form_of, draft.orders, for_menu=False)
            if menu_only
            else [],
            "columns": None if columns is None else asdict(columns),
        }

    async def _look_on(self, answers: Mapping[str, Any], draft: Draft) -> None:
        clock = self._place.clock
        while clock.monotonic() - self._shown_at < _WATCHED_S:
            await asyncio.sleep(_LOOK_AGAIN_S)
            try:
                seen = await tried(answers, draft, self._place.base_dir)
            except ConfigError as failure:
                seen = shown({}, "USD", reads_menu=False, takes_orders=False)
                seen["troubles"] = [{"text": failure.text, "fix": failure.fix}]
            if seen != self._seen:
                self._seen = seen
                self._place.changes.notify()
