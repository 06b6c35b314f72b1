"""The first order, where the service is the sandbox on this machine: placed as a guest would."""

from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp

from tillbridge.core.i18n import _
from tillbridge.setup.steps import Finding

_WITHIN_S = 10.0
_MOST_TRIES = 25  # items that need a choice are not to be had without one


def storefront_of(base_url: str, store_id: str) -> str:
    """Return where guests order at the practice service."""
    return f"{_origin(base_url)}/store/{quote(store_id, safe='')}"


def _origin(base_url: str) -> str:
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}"


async def place_order(base_url: str, store_id: str) -> Finding:
    """Order one of the first item that can be ordered by itself."""
    origin = _origin(base_url)
    storefront = storefront_of(base_url, store_id)
    try:
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_WITHIN_S), trust_env=False
        ) as session:
            items = await _on_sale(session, origin, store_id)
            for external_id in items[:_MOST_TRIES]:
                line = {"external_id": external_id, "quantity": 1}
                body = {"store_id": store_id, "items": [line]}
                async with session.post(f"{origin}/_control/orders", json=body) as answer:
                    if answer.status < 300:
                        return Finding(
                            done=True,
                            text=_("The order is placed. Watch it arrive below."),
                        )
    except (aiohttp.ClientError, TimeoutError, KeyError, TypeError, ValueError):
        return Finding(
            done=False,
            text=_("The service on this machine takes no practice orders from here."),
            fix=_("Order at its storefront: {url}").format(url=storefront),
        )
    return Finding(
        done=False,
        text=_("The storefront has nothing that can be ordered by itself yet."),
        fix=_("Wait until the menu is there, or order at {url}").format(url=storefront),
    )


async def _on_sale(session: aiohttp.ClientSession, origin: str, store_id: str) -> list[str]:
    async with session.get(f"{origin}/_control/state") as answer:
        state: Any = await answer.json()
    links = state["stores"][store_id]["integrations"]
    return [
        str(external_id)
        for link in links
        for external_id, item in link["items"].items()
        if item["available"]
    ]
