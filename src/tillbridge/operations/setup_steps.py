"""The steps of setting up, each an operation of its own; see `operations.setup`."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from tillbridge.config.loading import load
from tillbridge.config.writing import replace_file
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _, joined
from tillbridge.core.operation import Answer
from tillbridge.operations.arguments import StoreName
from tillbridge.operations.connect import StoreId
from tillbridge.operations.setup import Work, step, store_id_of
from tillbridge.setup.draft import digest_of
from tillbridge.setup.pos import finding_of, takes_orders
from tillbridge.setup.pos import sample_till as made
from tillbridge.setup.proposal import (
    LISTEN,
    cannot_undo,
    faults_in,
    judged,
    note_address,
    proposed,
    restart_with_file,
    restore_file,
    vault_of,
)
from tillbridge.setup.service import (
    ASSUMED,
    checked_url,
    chosen,
    described,
    is_practice,
    known,
    place_order,
    practice_app,
    reached,
    reached_below,
)

if TYPE_CHECKING:
    from tillbridge.setup.draft import Draft, Finding


@step("service")
async def service(work: Work, base_url: str = "", *, practice: bool = False) -> Answer:
    """Test whether the ordering service answers there.

    With `practice` it is the practice service, and its app is taken and tested too. `offered` is
    an address at which it does answer.
    """
    place, draft = work.place, work.draft
    url = checked_url(base_url)
    found = await reached(url)
    if not found.done:
        if not work.is_running:  # beside a bridge that serves, only valid answers are stored
            await place.store(draft.failed("service"))
        if other := await reached_below(url):
            text = _("Nothing answers at {url}, but the ordering service answers at {other}.")
            answer = _answer(found)
            text, fix = (
                text.format(url=url, other=other),
                _("It is filled in below: press Test the address."),
            )
            return {**answer, "text": text, "fix": fix, "offered": other}
        return _answer(found)
    draft = draft.passed("service", found.text, base_url=url)
    if practice:
        app_id, secret = await practice_app(url)
        draft = await _app_known(work, draft, app_id, secret)
    await place.store(draft)
    return _answer(found)


@step("sign_in")
async def sign_in(work: Work, client_id: str = "", client_secret: str = "") -> Answer:
    """Test the app's id and secret, which goes into the vault; an empty one stays as it is."""
    draft = work.draft
    work.after(draft.base_url)
    app_id, secret = client_id.strip(), client_secret.strip()
    fix = _("It is in the service's console.")
    if not app_id:
        raise ConfigError(_("The client id is missing."), fix=fix, field="client_id")
    if not (secret or work.setup.sign_in.has_secret(draft.base_url)):
        raise ConfigError(_("The client secret is missing."), fix=fix, field="client_secret")
    draft = await _app_known(work, draft, app_id, secret)
    await work.place.store(draft)
    return {"ok": True, "text": draft.found["app"]}


async def _app_known(work: Work, draft: "Draft", app_id: str, secret: str) -> "Draft":
    """Let the service look at the app, whose secret goes into the vault. Raises BridgeError."""
    place, sign_in = work.place, work.setup.sign_in
    redirect_uri = draft.redirect_uri or place.redirect_uri
    draft = draft.with_answers(client_id=app_id, redirect_uri=redirect_uri)
    before = sign_in.stored_secret()
    if secret:
        sign_in.store_secret(secret, draft.base_url)
        draft = draft.with_answers(client_secret={"vault": True})
    try:
        await known(sign_in.app(draft), draft.base_url, ASSUMED.community_audience, place.clock)
    except BridgeError as failure:
        if secret:
            sign_in.restore_secret(before)  # the one that works stays
        raise ConfigError(failure.text, fix=failure.fix, field="client_secret") from failure
    await sign_in.close()
    text = _("The ordering service knows this app.")
    draft = draft.passed("app", text)
    return draft.with_found("sign_in", text) if work.is_running else draft


@step("allow")
async def allow(work: Work, email: str = "") -> Answer:
    """Begin the merchant's consent; return the `url` that the merchant opens."""
    setup, draft = work.setup, work.draft
    work.after(draft.found.get("app"))
    request = await setup.sign_in.begin(draft, email.strip())
    return {"ok": True, "url": request.url, "text": _("The sign-in page is ready.")}


@step("sign_up")
async def sign_up(work: Work, form: dict[str, str]) -> Answer:
    """Create a merchant and a store at the service; return the `url` to continue."""
    setup, draft = work.setup, work.draft
    work.after(draft.found.get("app"))
    request = await setup.sign_in.sign_up(draft, form)
    text = (
        _("This e-mail has an account already: sign in with it.")
        if request.as_login
        else _("The account is prepared: finish it on the service's page.")
    )
    return {"ok": True, "url": request.url, "text": text}


@step("choose")
async def choose(
    work: Work,
    store: StoreName = "",
    store_id: StoreId = "",
    location_id: str = "",
    currency: str = "",
    hours_file: str = "",
) -> Answer:
    """Say which of the merchant's stores this is; `store` is what it is called here.

    Beside a bridge that serves it only the rest is changed.
    """
    setup, place, draft = work.setup, work.place, work.draft
    if not work.is_running:
        work.after(draft.found.get("sign_in"))
    draft = described(
        draft,
        place.base_dir,
        location_id=location_id or ("" if work.is_running else store),
        currency=currency,
        hours_file=hours_file,
    )
    if work.is_running:
        text = _("The currency is {currency}.").format(currency=draft.currency)
        await place.store(draft.passed("store", text))
        return {"ok": True, "text": text}
    with_store = await chosen(
        draft,
        setup.sign_in,
        store=store,
        store_id=store_id,
    )
    setup.sign_in.rename(draft.store, with_store.store, draft.base_url)
    await place.store(with_store)
    return {"ok": True, "text": with_store.found["store"]}


@step("till")
async def till(work: Work, adapter: str, form: dict[str, str]) -> Answer:
    """Try an adapter with these options, and keep them where it reads what it should."""
    work.after(work.draft.currency)
    return await _tried(work, await work.setup.till.answers(adapter, form, work.draft.pos))


@step("sample_till")
async def sample_till(work: Work) -> Answer:
    """Make a till of files beside bridge.toml, to practise with, and try it."""
    work.after(work.draft.currency)
    return await _tried(work, await asyncio.to_thread(made, work.place.base_dir))


async def _tried(work: Work, pos: dict[str, object]) -> Answer:
    setup, place, draft = work.setup, work.place, work.draft
    preview = await setup.till.look(pos, draft)
    found = finding_of(preview)
    if not found.done:
        return _answer(found)
    if preview["takes_orders"]:
        await place.store(draft.passed("adapter", found.text, pos=pos, orders={}))
    elif draft.orders and await takes_orders(draft.orders, draft, place.base_dir):
        await place.store(draft.passed("adapter", found.text, pos=pos))
    else:
        await place.store(draft.passed("menu", found.text, pos=pos))
        fix = _("It does not take orders: choose below where they go.")
        return {"ok": True, "text": found.text, "fix": fix}
    return {"ok": True, "text": found.text}


@step("orders")
async def orders(work: Work, adapter: str, form: dict[str, str]) -> Answer:
    """Let another adapter write the orders, where that of the till does not."""
    setup, place, draft = work.setup, work.place, work.draft
    work.after(draft.pos)
    writer = await setup.till.answers(adapter, form, draft.orders)
    if not await takes_orders(writer, draft, place.base_dir):
        raise ConfigError(
            _("With these options {adapter} does not take orders.").format(adapter=adapter),
            fix=_("Enter where orders go, or choose another adapter."),
        )
    menu = draft.found.get("menu") or draft.found.get("adapter", "")
    text = _("{menu} {adapter} takes the orders.").format(menu=menu, adapter=adapter).strip()
    await place.store(draft.passed("adapter", text, orders=writer))
    return {"ok": True, "text": text}


@step("address")
async def address(
    work: Work, listen: str = "", public_url: str = "", *, anyway: bool = False
) -> Answer:
    """Send a nonce through the public address; `anyway` continues if the result is unknown."""
    place, draft = work.place, work.draft
    work.after(draft.pos)
    url = public_url.strip().rstrip("/")
    draft = draft.with_answers(listen=listen.strip() or LISTEN, public_url=url)
    proposal = await proposed(place, draft)
    if proposal.faults:
        raise ConfigError(proposal.faults[0])
    judgement = await judged(place, proposal, draft.listen)
    if not (judgement.reachable or (judgement.reachable is None and anyway)):
        if not work.is_running:
            await place.store(draft.failed("address"))
        text, fix = judgement.text, judgement.fix
        return {"ok": False, "text": text, "fix": fix, "field": "public_url"}
    await place.store(draft.passed("address", judgement.text))
    if judgement.reachable:
        await note_address(place.ledger, url, place.clock.now_ms(), judgement.cause)
    return {"ok": True, "text": judgement.text}


@step("order")
async def order(work: Work) -> Answer:
    """Place an order at the practice service, as a guest would."""
    draft = work.draft
    if not work.is_running:
        raise ConfigError(_("The bridge is not running yet."), fix=_("Finish the steps before."))
    if not is_practice(draft.base_url):
        raise ConfigError(
            _("That would be a real order."), fix=_("Order something small at the storefront.")
        )
    return _answer(await place_order(draft.base_url, await store_id_of(work)))


@step("write")
async def write(work: Work, digest: str = "") -> Answer:
    """Write the difference of that digest into the file, and restart with it."""
    place, draft = work.place, work.draft
    proposal = await proposed(place, draft)
    if proposal.digest != digest:
        raise ConfigError(
            _("bridge.toml has changed since this was shown."),
            fix=_("Check what is saved, then save it again."),
        )
    if proposal.faults:
        raise ConfigError(joined("\n", proposal.faults), fix=_("Correct it in the steps above."))
    copy = await asyncio.to_thread(replace_file, place.path, proposal.new)
    undo = partial(restore_file, place.path, copy)
    restart_with_file(place, undo, connect=_to_connect(work))
    text = _("{file} is saved, and the bridge restarts with it.")
    copied = _("The file as it was is kept as {copy}.")
    return {
        "ok": True,
        "text": text.format(file=place.path.name),
        "fix": copied.format(copy=copy.name) if copy else "",
    }


@step("restart")
async def restart(work: Work) -> Answer:
    """Restart the bridge with the file as it is, where it can start with it."""

    def faults() -> list[ConfigError]:
        loaded = load(work.place.path)
        return faults_in(loaded, vault_of(loaded), [])

    if found := await asyncio.to_thread(faults):
        raise found[0]
    restart_with_file(work.place, cannot_undo, connect="")
    return {"ok": True, "text": _("The bridge restarts with bridge.toml as it is now.")}


@step("text")
async def text(work: Work) -> Answer:
    """Return `file`, the whole `text` as it would be, `lines`, `faults` and its `digest`.

    For a command whose user may write the file: it may hold secrets of others.
    """
    place, draft = work.place, work.draft
    proposal = await proposed(place, draft)
    return {
        "file": str(place.path.resolve()),
        "text": proposal.new,
        "lines": list(proposal.lines),
        "faults": list(proposal.faults),
        "digest": digest_of(proposal.new),
    }


@step("written")
async def written(work: Work, digest: str) -> Answer:
    """Record that such a command has written the text of that digest, and restart with it."""
    place = work.place
    found, _document = await asyncio.to_thread(place.document)
    if digest_of(found) != digest:
        raise ConfigError(
            _("The file differs from what should have been written."),
            fix=_("Check it, then try again."),
        )
    restart_with_file(place, cannot_undo, connect=_to_connect(work))
    return {"ok": True, "text": _("It is saved, and the bridge restarts with it.")}


@step("forget")
async def forget(work: Work) -> Answer:
    """Forget the answers that are not saved."""
    setup, place = work.setup, work.place
    await place.forget()
    setup.till.forget()
    return {"ok": True, "text": _("Changes discarded.")}


def _to_connect(work: Work) -> str:
    return "" if work.is_running else work.draft.store


def _answer(found: "Finding") -> Answer:
    return {"ok": found.done, "text": found.text, "fix": found.fix, "field": found.field}
