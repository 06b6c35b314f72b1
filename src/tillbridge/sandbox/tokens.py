"""Consents, codes and tokens: what is issued, how long it lives, why it stops working."""

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from typing import Any, Literal

from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.settings import SandboxSettings

SCOPES = "store.read menu.write orders.write webhooks.write"
REPORTING_SCOPES = ("reports.read", "catalogue.write")

Kind = Literal["access", "refresh", "app"]


@dataclass(slots=True)
class Consent:
    """A merchant's permission for an app. Revoking it stops every token that came of it."""

    app_id: str
    merchant_email: str
    revoked: bool = False


@dataclass(slots=True)
class Code:
    """An authorization code."""

    consent: Consent
    redirect_uri: str
    expires_at_ms: int
    used: bool = False


@dataclass(slots=True)
class Token:
    """A token that was issued; `invalid` ones are as good as unknown."""

    kind: Kind
    app_id: str
    expires_at_ms: int
    consent: Consent | None
    audience: str | None = None
    scopes: tuple[str, ...] = ()
    invalid: bool = False


class Tokens:
    """Issues and checks.

    A token is a signed JWT, which only this service reads (specification, rule 6).
    """

    def __init__(self, clock: Clock, settings: SandboxSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._key = secrets.token_bytes(32)
        self.reset()

    def reset(self) -> None:
        """Forget all of them."""
        self._consents: dict[tuple[str, str], Consent] = {}
        self._codes: dict[str, Code] = {}
        self._tokens: dict[str, Token] = {}

    # Issuing

    def authorize(self, app_id: str, merchant_email: str, redirect_uri: str) -> str:
        """An authorization code: good once, for `auth_code_s`."""
        code = secrets.token_urlsafe(24)
        consent = self._consent(app_id, merchant_email)
        expires = self._clock.now_ms() + self._settings.auth_code_s * 1000
        self._codes[code] = Code(consent, redirect_uri, expires)
        return code

    def exchange(self, app_id: str, code: str, redirect_uri: str) -> dict[str, Any]:
        """The token response for an authorization code.

        Raises auth.invalid_grant or auth.consent_revoked.
        """
        found = self._codes.get(code)
        if found is None or found.consent.app_id != app_id:
            raise ServiceError("auth.invalid_grant", "Unknown authorization code")
        if found.used:
            raise ServiceError("auth.invalid_grant", "This authorization code was used before")
        if found.expires_at_ms <= self._clock.now_ms():
            raise ServiceError(
                "auth.invalid_grant", "This authorization code has expired; ask for consent again"
            )
        if found.redirect_uri != redirect_uri:
            raise ServiceError(
                "auth.invalid_grant", "This authorization code belongs to another redirect_uri"
            )
        if found.consent.revoked:
            raise _revoked()
        found.used = True
        return self.issue(found.consent)

    def issue(self, consent: Consent) -> dict[str, Any]:
        """A fresh access and refresh token."""
        refresh = self._sign("refresh", consent.app_id, self._settings.refresh_token_s, consent)
        return {**self._access(consent), "refresh_token": refresh}

    def issue_for(self, app_id: str, merchant_email: str) -> dict[str, Any]:
        """Tokens without the browser (control API)."""
        return self.issue(self._consent(app_id, merchant_email))

    def refresh(self, refresh_token: str) -> dict[str, Any]:
        """A new access token, and no new refresh token: only another consent renews that."""
        token = self._tokens.get(refresh_token)
        if token is None or token.kind != "refresh" or token.consent is None or token.invalid:
            raise ServiceError("auth.invalid_grant", "Unknown refresh token")
        if token.consent.revoked:
            raise _revoked()
        if token.expires_at_ms <= self._clock.now_ms():
            raise ServiceError(
                "auth.invalid_grant",
                "The refresh token has expired; the merchant must consent again",
            )
        return self._access(token.consent)

    def issue_app_token(
        self, app_id: str, audience: str, scopes: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """client_credentials: an app-level token, of no use on /pos/*."""
        lifetime = self._settings.app_token_s
        text = self._sign("app", app_id, lifetime, None, audience)
        self._tokens[text].scopes = scopes
        return {"access_token": text, "expires_in": lifetime}

    # Checking

    def consent_of(self, access_token: str) -> Consent:
        """Whose token this is.

        Raises auth.invalid_token, auth.consent_revoked or auth.token_expired.
        """
        token = self._known(access_token)
        if token.kind != "access" or token.consent is None:
            raise ServiceError(
                "auth.invalid_token", f"A token of kind {token.kind} is not accepted here"
            )
        if token.consent.revoked:
            raise _revoked()
        self._refuse_expired(token)
        return token.consent

    def app_of(self, access_token: str, audience: str) -> str:
        """The app whose app-level token for `audience` this is.

        Raises auth.invalid_token or auth.token_expired, and for another audience the code that
        `wrong_audience_code` names.
        """
        token = self._known(access_token)
        if token.kind != "app":
            raise ServiceError(
                "auth.invalid_token", "Only an app-level token (client_credentials) opens this"
            )
        self._refuse_expired(token)
        if token.audience != audience:
            raise ServiceError(
                self._settings.wrong_audience_code,
                f"This token is not for the audience {audience}; mint one that is",
            )
        return token.app_id

    def _known(self, access_token: str) -> Token:
        token = self._tokens.get(access_token)
        if token is None or token.invalid:
            raise ServiceError(
                "auth.invalid_token",
                "The access token is malformed, revoked, or not of this service",
            )
        return token

    def _refuse_expired(self, token: Token) -> None:
        if token.expires_at_ms <= self._clock.now_ms():
            raise ServiceError(
                "auth.token_expired", "The access token has expired; get a fresh one"
            )

    # Control

    def expire(self, kind: Kind) -> int:
        """End the lifetime of all live tokens of a kind; returns how many."""
        now = self._clock.now_ms()
        live = [
            token
            for token in self._tokens.values()
            if token.kind == kind and token.expires_at_ms > now
        ]
        for token in live:
            token.expires_at_ms = now
        return len(live)

    def invalidate(self, kind: Kind) -> int:
        """Make all tokens of a kind unknown to the service; returns how many."""
        live = [
            token for token in self._tokens.values() if token.kind == kind and not token.invalid
        ]
        for token in live:
            token.invalid = True
        return len(live)

    def revoke(self, merchant_email: str | None = None) -> list[Consent]:
        """The merchant (or every one) takes the permission back."""
        hit = [
            consent
            for consent in self._consents.values()
            if not consent.revoked and merchant_email in (None, consent.merchant_email)
        ]
        for consent in hit:
            consent.revoked = True
        return hit

    def summary(self) -> list[dict[str, Any]]:
        """Tokens without their text, for the state dump."""
        return [
            {
                "kind": token.kind,
                "app_id": token.app_id,
                "merchant": token.consent.merchant_email if token.consent else None,
                "expires_in_s": (token.expires_at_ms - self._clock.now_ms()) // 1000,
                "audience": token.audience,
                "scopes": list(token.scopes),
                "invalid": token.invalid,
                "consent_revoked": bool(token.consent and token.consent.revoked),
            }
            for token in self._tokens.values()
        ]

    def _consent(self, app_id: str, merchant_email: str) -> Consent:
        key = (app_id, merchant_email)
        if key not in self._consents or self._consents[key].revoked:
            self._consents[key] = Consent(app_id, merchant_email)
        return self._consents[key]

    def _access(self, consent: Consent) -> dict[str, Any]:
        lifetime = self._settings.access_token_s
        return {
            "token_type": "Bearer",
            "access_token": self._sign("access", consent.app_id, lifetime, consent),
            "expires_in": lifetime,
            "scope": SCOPES,
        }

    def _sign(
        self,
        kind: Kind,
        app_id: str,
        lifetime_s: int,
        consent: Consent | None,
        audience: str | None = None,
    ) -> str:
        now = self._clock.now_ms()
        claims = {
            "jti": secrets.token_hex(12),
            "typ": kind,
            "iat": now // 1000,
            "exp": now // 1000 + lifetime_s,
        }
        head = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(claims)}"
        seal = hmac.new(self._key, head.encode(), hashlib.sha256).digest()
        text = f"{head}.{base64.urlsafe_b64encode(seal).rstrip(b'=').decode()}"
        self._tokens[text] = Token(kind, app_id, now + lifetime_s * 1000, consent, audience)
        return text


def _part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _revoked() -> ServiceError:
    return ServiceError(
        "auth.consent_revoked", "The merchant uninstalled or revoked the app; ask for consent again"
    )
