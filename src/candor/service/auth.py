"""Who may use the service: the token, and the addresses that it may listen at."""

import ipaddress
import os
import socket
from pathlib import Path

from pydantic import SecretStr

from candor.core.errors import InputError
from candor.service.settings import ServiceSettings

TOKEN_VARIABLE = "CANDOR_TOKEN"


def read_token(file: Path | None) -> SecretStr | None:
    """Return the token in a file, else that of the environment variable CANDOR_TOKEN; None if there is neither."""
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


def is_loopback_address(name: str) -> bool:
    """Return whether a name is an address of this machine."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether a name or address is reached from this machine only."""
    if is_loopback_address(host):
        return True
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        raise InputError(f"there is no network address called {host!r}", hint="give --host 127.0.0.1") from None
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found)


def check_binding(settings: ServiceSettings) -> None:
    """Refuse to listen beyond this machine without a token, unless that is allowed explicitly."""
    if settings.token is None and not settings.allow_open and not is_loopback(settings.host):
        raise InputError(
            f"anybody who reaches {settings.host} could use the service: there is no token",
            hint=f"set a token (--token-file FILE or {TOKEN_VARIABLE}), or say --allow-open if that is meant",
        )
