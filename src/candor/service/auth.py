"""Access control: tokens, the addresses the service may listen at, and security headers for browsers."""

import hmac
import ipaddress
import os
import socket
from pathlib import Path

from pydantic import SecretStr
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from candor.core.errors import InputError
from candor.service.errors import RefusedError
from candor.service.limits import refuse
from candor.service.settings import ServiceSettings

TOKEN_VARIABLE = "CANDOR_TOKEN"
# plotly sets inline styles as it draws, and exports charts as data and blob URLs.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


def read_token(file: Path | None) -> SecretStr | None:
    """Returns the token in a file, else that of the environment variable CANDOR_TOKEN; None if there is neither."""
    if file is None:
        where, text = f"environment variable {TOKEN_VARIABLE}", os.environ.get(TOKEN_VARIABLE)
        if text is None:
            return None
    else:
        where = str(file)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"the token cannot be read ({error})", where=where) from None
    token = text.strip()
    if not token or not all("!" <= letter <= "~" for letter in token):
        what = "a token is one line of letters, digits and signs without spaces"
        raise InputError(what, where=where, hint="make one: openssl rand -hex 32 > token.txt")
    return SecretStr(token)


def is_loopback(host: str) -> bool:
    """Returns whether a name or address is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        raise InputError(f"there is no network address called {host!r}", hint="give --host 127.0.0.1") from None
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found)


def check_binding(settings: ServiceSettings) -> None:
    """Refuses to listen beyond this machine without a token, unless that is allowed explicitly."""
    if settings.token is None and not settings.allow_open and not is_loopback(settings.host):
        raise InputError(
            f"anybody who reaches {settings.host} could use the service: there is no token",
            hint=f"set a token (--token-file FILE or {TOKEN_VARIABLE}), or say --allow-open if that is meant",
        )


class AccessControl:
    """Checks the token, if there is one, and for a service of this machine alone the Host header.

    Without a token a foreign page in the user's browser could reach the service by DNS rebinding. Its requests carry a
    foreign host name, and are refused.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._token = None if settings.token is None else settings.token.get_secret_value().encode()
        self._is_local = self._token is None and not settings.allow_open and is_loopback(settings.host)
        self._host = settings.host.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] == "http" and (refusal := self._refusal(scope)) is not None:
            await refuse(refusal, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> RefusedError | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if self._is_local and not self._is_own_host(headers.get(b"host", b"")):
            what = "the service is for this machine only, and was asked for under another name"
            hint = "use http://127.0.0.1, or start it with a token (--token-file)"
            return RefusedError(421, "wrong_host", what, where="header Host", hint=hint)
        is_guarded = scope["path"].startswith("/v1/") or scope["path"] == "/metrics"
        if self._token is None or not is_guarded:
            return None
        scheme, _, sent = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(sent.strip(), self._token):
            return None
        what = "the token is not the right one" if sent else "a token is needed"
        hint = "send the header Authorization: Bearer TOKEN; whoever runs the service knows the token"
        headers_out = {"WWW-Authenticate": "Bearer"}
        return RefusedError(401, "unauthorized", what, where="header Authorization", hint=hint, headers=headers_out)

    def _is_own_host(self, host: bytes) -> bool:
        name = host.decode("latin-1").lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        return name in ("", "localhost", self._host) or _is_loopback_address(name)


def _is_loopback_address(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class SecurityHeaders:
    """Adds security headers to every response; responses with data are not to be cached."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                is_private = scope["path"].startswith("/v1/") or scope["path"] == "/metrics"
                uncached = [(b"cache-control", b"no-store")] if is_private else []
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS, *uncached]}
            await send(message)

        await self._app(scope, receive, send_guarded if scope["type"] == "http" else send)
