"""The pages that an answer came on: every one is looked at before anything is made of it, and its address is noted.

The client (dataretrieval) joins pages to one table, takes a page without `features` for an empty one, and names the
address of the first page only.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from candor.core.errors import InputError
from candor.river.asking import quiet_client

if TYPE_CHECKING:
    import httpx

_MOST_WORDS = 100  # characters of an answer that is none
_seen: ContextVar[list[str] | None] = ContextVar("pages_seen", default=None)
_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def watched_client() -> Iterator[list[str]]:
    """Yields the addresses of the pages that the client fetches, in their order; a page that is none is refused.

    A walk over pages that was broken off and begun again leaves every address once.
    """
    _look_at_responses()
    addresses: list[str] = []
    token = _seen.set(addresses)
    try:
        with quiet_client():
            yield addresses
    finally:
        _seen.reset(token)
    if not addresses:
        raise InputError(
            "the installed version of dataretrieval does not let its answers be looked at",
            hint="pip install 'dataretrieval==1.4.0'",
        )


def _look_at_responses() -> None:
    """Lets the client show every response to `_look`, which minds only those that are watched.

    The place where it does so is no promise of the client's: a version that has none is told of by `watched_client`.
    """
    with suppress(ImportError, LookupError, TypeError, AttributeError), _ONE_AT_A_TIME:
        from dataretrieval.transport.http import HTTPX_ASYNC_DEFAULTS

        hooks = HTTPX_ASYNC_DEFAULTS["event_hooks"].setdefault("response", [])
        if _look not in hooks:
            hooks.append(_look)


async def _look(response: "httpx.Response") -> None:
    from dataretrieval.exceptions import DataRetrievalError

    addresses = _seen.get()
    if addresses is None or not response.is_success:
        return
    await response.aread()
    try:
        body = response.json()
    except ValueError:
        return  # the client says so itself
    if not isinstance(body, dict) or not isinstance(body.get("features"), list):
        words = " ".join(response.text.split())[:_MOST_WORDS]
        raise DataRetrievalError(f"it is no collection of features but {words}")
    if str(response.url) not in addresses:
        addresses.append(str(response.url))
