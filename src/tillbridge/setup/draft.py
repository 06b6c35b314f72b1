"""The steps of setting up, and what was said and tested there and is not written yet. Pure.

It holds no secret: the app's goes to the vault when it is given. It is kept in the ledger, so that
a person goes on where they were after a restart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from tillbridge.config import OrderSettings, PosSettings
from tillbridge.config.toml import KeyPath
from tillbridge.core.i18n import _, ngettext

State = Literal["done", "open", "shut"]

# In this order; each is tested before the next one opens.
STEPS = ("service", "sign_in", "store", "adapter", "address", "order")


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one step: whether it is done, in words, and what to do where it is not."""

    done: bool
    text: str = ""
    fix: str = ""


def done(text: str, **values: object) -> Finding:
    """Return that a step is done; `values` go into the text."""
    return Finding(done=True, text=text.format(**values))


def not_done(text: str, fix: str = "", **values: object) -> Finding:
    """Return that a step is not done, and what to do; `values` go into both."""
    return Finding(done=False, text=text.format(**values), fix=fix.format(**values))


@dataclass(frozen=True, slots=True)
class Step:
    """A step as it is shown. Only one that is `open` or `done` can be taken (again)."""

    name: str
    state: State
    text: str = ""
    fix: str = ""


def steps_of(findings: Mapping[str, Finding]) -> tuple[Step, ...]:
    """Return all steps: those done, the first that is not, and those that wait for it.

    A step that was done once and comes after one that is not stays done, so that a person sees
    what is still good; what depends on the other is the caller's to say.
    """
    found: list[Step] = []
    is_open = True
    for name in STEPS:
        finding = findings.get(name, Finding(done=False))
        state: State = "done" if finding.done else "open" if is_open else "shut"
        is_open = is_open and finding.done
        found.append(Step(name, state, finding.text, finding.fix))
    return tuple(found)


def next_step(steps: tuple[Step, ...]) -> str:
    """Return the name of the step to take now; "" where all are done."""
    return next((step.name for step in steps if step.state != "done"), "")


# Keys of [stores.NAME.pos] and [stores.NAME.orders] that are the bridge's own, not an adapter's.
_OWN_POS = frozenset(PosSettings.model_fields)
_OWN_ORDERS = frozenset(OrderSettings.model_fields)
# What has to be found out again once a step is taken anew.
_AFTER: Mapping[str, tuple[str, ...]] = {
    "service": ("app", "sign_in", "store"),
    "app": ("sign_in", "store"),
    "sign_in": ("store",),
    "menu": ("adapter",),
}


class Draft(BaseModel):
    """The answers so far; "" and {} where nothing was said.

    `pos` and `orders` are an adapter and its options as they are to stand in the file; without
    `orders` the till's own adapter writes them. `found` says by step what its test found; beside
    the steps there are `app`, whose id and secret the service knows, and `menu`, which the till's
    adapter reads while another one still has to be found for its orders.
    `written` is the digest of the file that these answers were written into.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    base_url: str = ""
    client_id: str = ""
    secret_given: bool = False
    redirect_uri: str = ""
    store: str = "main"
    store_id: str = ""
    location_id: str = ""
    currency: str = ""
    pos: dict[str, Any] = {}
    orders: dict[str, Any] = {}
    listen: str = ""
    public_url: str = ""
    found: dict[str, str] = {}
    written: str = ""

    @classmethod
    def of(cls, stored: object) -> "Draft | None":
        """Return what the ledger stores; None for nothing, or what another version wrote."""
        try:
            return cls.model_validate(stored)
        except ValidationError:
            return None

    def with_answers(self, **answers: Any) -> "Draft":  # noqa: ANN401 -- of any field
        """Return the draft with these answers."""
        return self.model_copy(update=answers)

    def passed(self, step: str, text: str, **answers: Any) -> "Draft":  # noqa: ANN401 -- of any field
        """Return the draft after a step's test has succeeded; what depends on it is open again."""
        after = _AFTER.get(step, ())
        found = {name: each for name, each in self.found.items() if name not in after}
        return self.with_answers(found={**found, step: text}, **answers)

    def failed(self, step: str, **answers: Any) -> "Draft":  # noqa: ANN401 -- of any field
        """Return the draft after a step's test has failed: what was typed stays in its form."""
        again = self.passed(step, "", **answers)
        found = {name: text for name, text in again.found.items() if name != step}
        return again.with_answers(found=found)

    def findings(self) -> dict[str, Finding]:
        """Return a finding for each step that has been tested."""
        return {name: Finding(done=True, text=text) for name, text in self.found.items()}


# Which keys of the file some answers are.
_KEYS: Mapping[str, KeyPath] = {
    "base_url": ("service", "base_url"),
    "client_id": ("service", "client_id"),
    "redirect_uri": ("service", "redirect_uri"),
    "listen": ("receiver", "listen"),
    "public_url": ("receiver", "public_url"),
}
_STORE_KEYS = ("store_id", "location_id", "currency")


def _keys(store: str) -> dict[str, KeyPath]:
    return {**_KEYS, **{name: ("stores", store, name) for name in _STORE_KEYS}}


def draft_of(document: Mapping[str, Any]) -> Draft:
    """Return what a file says already, of its first store."""
    name = next(iter(_table(document, "stores")), "main")
    answers = {answer: _at(document, path) for answer, path in _keys(name).items()}
    return Draft(
        store=name,
        pos=_adapter_part(_table(document, "stores", name, "pos"), _OWN_POS),
        orders=_adapter_part(_table(document, "stores", name, "orders"), _OWN_ORDERS),
    ).with_answers(**{answer: value for answer, value in answers.items() if isinstance(value, str)})


def changes_of(draft: Draft, document: Mapping[str, Any]) -> dict[KeyPath, Any]:
    """Return what the draft changes in a file: only what was said, and differs."""
    pos: KeyPath = ("stores", draft.store, "pos")
    orders: KeyPath = ("stores", draft.store, "orders")
    texts = {path: getattr(draft, answer) for answer, path in _keys(draft.store).items()}
    wanted: dict[KeyPath, Any] = {path: text for path, text in texts.items() if text}
    if draft.secret_given:
        wanted["service", "client_secret"] = {"vault": True}
    if draft.pos and not _table(document, *pos):
        # Nobody has seen yet what this till's export comes to.
        wanted["stores", draft.store, "menu", "approve_first"] = True
    for path, given, own in ((pos, draft.pos, _OWN_POS), (orders, draft.orders, _OWN_ORDERS)):
        if given:
            there = _table(document, *path)
            wanted |= {(*path, key): None for key in there if key not in own and key not in given}
            wanted |= {(*path, key): value for key, value in given.items()}
    return {path: value for path, value in wanted.items() if _at(document, path) != value}


def _table(document: Mapping[str, Any], *path: str | int) -> Mapping[str, Any]:
    found = _at(document, path)
    return found if isinstance(found, Mapping) else {}


def _at(document: Mapping[str, Any], path: KeyPath) -> Any:  # noqa: ANN401 -- any TOML value
    value: Any = document
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _adapter_part(table: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """Return an adapter and its options, of a table that also holds settings of the bridge's."""
    if "adapter" not in table:
        return {}
    return {key: value for key, value in table.items() if key == "adapter" or key not in own}


_Part = Mapping[str, Any]

_STARTING_S = 15


def findings_of(
    overview: _Part, store: str, *, base_url: str, delivered: bool = False
) -> dict[str, Finding]:
    """Return a finding for each step, for the store of that name.

    `overview` is the status document with its chain (docs/page.md); `delivered`: a signed delivery
    has arrived, of whatever kind.
    """
    part = overview["stores"][store]
    links = {link["key"]: link for link in overview["chain"][store]}
    return {
        "service": _service(links["service"], base_url, overview["bridge"]["uptime_s"]),
        "sign_in": _sign_in(part["service"], store),
        "store": _store(part["service"], store),
        "adapter": _adapter(part, store),
        "address": _address(links["address"], part["service"]),
        "order": _order(part["orders"], delivered=delivered),
    }


def _service(link: _Part, base_url: str, uptime_s: int | None) -> Finding:
    if link["at"] is not None:
        return done(_("The service answers at {url}."), url=base_url)
    if uptime_s is not None and uptime_s < _STARTING_S:
        return not_done(_("The bridge is starting. It asks the service at {url}."), url=base_url)
    return not_done(
        _("The service has not answered at {url} yet."),
        _("Look whether this machine is on the internet, and whether base_url is right."),
        url=base_url,
    )


def _sign_in(service: _Part, store: str) -> Finding:
    left = service["consent_days_left"]
    if left and service["consent"] in {"ok", "ending"}:
        days = ngettext("{n} day", "{n} days", int(left)).format(n=left)
        return done(_("The merchant allows it, for another {days}."), days=days)
    return not_done(
        _("The merchant has not allowed this bridge to work for {store}."),
        _("Let the merchant allow it."),
        store=store,
    )


def _store(service: _Part, store: str) -> Finding:
    if service["integrated"]:
        name = service["store_name"] or service["store_id"] or "?"
        text = _("{store} is {name} at the service, and is connected.")
        return done(text, store=store, name=name)
    text = _("{store} is not connected at the service.")
    return not_done(text, _("Connect it."), store=store)


def _adapter(part: _Part, store: str) -> Finding:
    adapter, items = part["pos"]["adapter"], part["menu"]["acknowledged_items"]
    if part["pos"]["online"] is False:
        return not_done(
            _("The till is away: {detail}"),
            _("Look whether it runs and writes its export, and try its settings below."),
            detail=part["pos"]["detail"] or adapter,
        )
    if items:
        on_sale = ngettext("{n} item", "{n} items", items).format(n=items)
        text = _("{adapter} is read, and the storefront has {items}.")
        return done(text, adapter=adapter, items=on_sale)
    if part["menu"]["held"]:
        return not_done(
            _("The first menu of {store} waits for you: guests have not seen it yet."),
            _("Review it on the page Menu, and release it."),
            store=store,
        )
    return not_done(
        _("The storefront has no menu of {store} yet."),
        _("See the page Menu for what holds it up."),
        store=store,
    )


def _address(link: _Part, service: _Part) -> Finding:
    if link["state"] == "down":
        return not_done(
            _("The public address does not lead here."),
            _("See what is wrong on the overview; tillbridge doctor looks at every link."),
        )
    if link["at"] is not None and service["webhook_url"]:
        return done(_("Deliveries reach this bridge at {url}."), url=service["webhook_url"])
    return not_done(
        _("Nothing has come through the public address yet."), _("Test it, or place an order.")
    )


def _order(orders: _Part, *, delivered: bool) -> Finding:
    if count := sum(orders["by_state"].values()):
        return done(ngettext("{n} order has arrived.", "{n} orders have arrived.", count), n=count)
    text = _("No order has arrived yet.")
    if delivered:
        text = _("A signed delivery has arrived, and no order yet.")
    return not_done(text, _("Place a test order."))
