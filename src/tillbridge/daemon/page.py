"""The status page of a daemon: who may open it, where it listens, and who hears of that."""

import contextlib
import errno
import json
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

from aiohttp import web

from tillbridge.config import (
    LoadedSettings,
    PageUser,
    StatusPageSettings,
    host_and_port,
    is_loopback,
)
from tillbridge.config.secrets import resolve_secret
from tillbridge.core.actor import Role
from tillbridge.core.errors import BridgeError, ConfigError, reason_of
from tillbridge.core.files import create_new
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.operation import Dispatcher
from tillbridge.core.restart import RestartController
from tillbridge.diagnostics.network import taken_by
from tillbridge.operations.bridge import Bridge
from tillbridge.receiver.receiver import Echo, Receiver, receiver_settings
from tillbridge.stores.consent import callback_place
from tillbridge.web.authenticator import AccessRules, Authenticator, User
from tillbridge.web.listener import HeldAddress, MerchantReturn, StatusListener
from tillbridge.web.rendering import HEADERS, OnCallback, callback_page

log = get_logger()

CONTROL_FILE = "control.json"
_FORM = "$argon2id$"


@asynccontextmanager
async def status_page(
    bridge: Bridge,
    dispatcher: Dispatcher,
    restarts: RestartController,
    held: HeldAddress,
    *,
    on_change: Callable[[Callable[[], None]], None],
    on_return: OnCallback,
) -> AsyncIterator[tuple[StatusListener, str]]:
    """Serve the page, what commands ask and the merchant's return; yield its address, too.

    Who has signed in stays so from one run of the bridge to the next. Raises ConfigError.
    """
    settings, redirect_uri = bridge.settings.status_page, bridge.settings.service.redirect_uri
    path = path_on_status_page(redirect_uri, settings.listen)
    rules = access_rules(settings, bridge.base_dir)
    if restarts.authenticator is None:
        restarts.authenticator = Authenticator(rules, bridge.clock)
    else:
        restarts.authenticator.reconfigure(rules)
    token = secrets.token_urlsafe(32)  # for this run alone
    page = StatusListener(
        dispatcher,
        restarts.authenticator,
        token=token,
        metrics=bridge.context.metrics,
        merchant=MerchantReturn(path, on_return) if path else None,
        on_change=on_change,
        is_parting=lambda: restarts.again,
        only_setup=not bridge.is_set_up,
    )
    async with AsyncExitStack() as opened:
        host, port = host_and_port(settings.listen)
        opened.push_async_callback(page.close)
        try:
            address, port = await page.start(host, port, held)
        except OSError as failure:
            holder = taken_by(port) if failure.errno == errno.EADDRINUSE else ""
            raise ConfigError(
                _("The status page cannot listen on {listen}: {detail}{holder}.").format(
                    listen=settings.listen, detail=reason_of(failure), holder=holder
                ),
                fix=_("Stop what listens there, or change listen in [status_page]."),
            ) from failure
        if not path:
            await opened.enter_async_context(redirect_listener(redirect_uri, on_return))
        url = f"http://{reached_at(address)}:{port}"
        opened.enter_context(announced(bridge.ledger.data_dir, url=url, token=token))
        yield page, url


@asynccontextmanager
async def trial_receiver(bridge: Bridge, loaded: LoadedSettings) -> AsyncIterator[Echo]:
    """Listen as this configuration's receiver will. Raises ConfigError where it cannot."""
    receiver = Receiver(
        receiver_settings(loaded),
        {},
        bridge.ledger,
        bridge.problems,
        clock=bridge.clock,
        wake=lambda _store: None,
    )
    await receiver.start()
    try:
        yield receiver.echo
    finally:
        await receiver.stop(1.0)


def access_rules(page: StatusPageSettings, base_dir: Path) -> AccessRules:
    """Return the rules. Raises ConfigError where a password's hash cannot be had, or is none."""
    return AccessRules(
        users={name: _user(name, user, base_dir) for name, user in page.users.items()},
        allowed_hosts=tuple(page.allowed_hosts),
        session_idle_s=page.session_idle_s,
        session_longest_s=page.session_longest_s,
    )


def reached_at(address: str) -> str:
    """Return where this machine reaches a listener on `address`, as a URL writes it."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if found.is_unspecified:
        return "[::1]" if found.version == 6 else "127.0.0.1"
    return f"[{address}]" if found.version == 6 else address


def _user(name: str, user: PageUser, base_dir: Path) -> User:
    key = f"status_page.users.{name}.password"
    found = resolve_secret(user.password, key=key, base_dir=base_dir).get_secret_value()
    if not found.startswith(_FORM) or found.count("$") != 5:
        raise ConfigError(
            _("{key} is no Argon2id hash.").format(key=key),
            fix=_("Make one with: tillbridge password {name}").format(name=name),
        )
    return User(Role[user.role.upper()], found)


def path_on_status_page(redirect_uri: str, listen: str) -> str:
    """Return the path of `redirect_uri` that the status listener serves, "" for none."""
    place = callback_place(redirect_uri)
    host, port = host_and_port(listen)
    here = is_loopback(host) or host in {"0.0.0.0", "::"}  # noqa: S104 -- recognised, not listened on
    return place.path if here and place.port == port else ""


@asynccontextmanager
async def redirect_listener(redirect_uri: str, on_callback: OnCallback) -> AsyncIterator[None]:
    """Listen on the address of `redirect_uri`, and on no other path. Raises ConfigError."""
    place = callback_place(redirect_uri)

    async def handle(request: web.Request) -> web.Response:
        answer = await on_callback(request.query)
        return web.Response(
            status=200 if answer.ok else 400,
            text=callback_page(answer),
            content_type="text/html",
            headers=HEADERS,
        )

    application = web.Application()
    application.router.add_get(place.path, handle, allow_head=False)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, place.host, place.port).start()
        except OSError as failure:
            raise ConfigError(
                _("Nothing can listen at redirect_uri {uri}: {detail}.").format(
                    uri=redirect_uri, detail=failure.strerror or failure
                ),
                fix=_("End what uses the port, or give redirect_uri that of status_page.listen."),
            ) from failure
        yield
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def announced(data_dir: Path, *, url: str, token: str) -> Iterator[None]:
    """Keep the file while the body runs. Only this user can read it; it appears whole."""
    path = data_dir / CONTROL_FILE
    text = json.dumps({"url": url, "token": token, "pid": os.getpid()})
    try:
        _write(path, text)
    except OSError as failure:
        raise BridgeError(
            _("{path} cannot be written: {detail}.").format(path=path, detail=reason_of(failure)),
            fix=_(
                "Let the bridge's user write to {folder}, free disk space there, or mend the disk;"
                " then start the bridge again."
            ).format(folder=data_dir),
        ) from failure
    try:
        yield
    finally:
        try:
            path.unlink(missing_ok=True)
        except OSError as failure:
            # Commands find out by themselves that nobody answers there.
            log.warning("control.left_behind", file=str(path), detail=reason_of(failure))


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.new")
    with os.fdopen(create_new(fresh, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
