"""A client of the services of the USGS: each request once, a few at a time, with retries and clear errors.

The library dataretrieval follows pages and retries short disturbances. What is added here: responses kept on disk, one
pause for all threads when a service asks for one, retries that last for a long job, and a check of every page: the
library joins pages to one table, takes a page without `features` for an empty one, and names the address of the first
page only.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from candor.core.errors import InputError
from candor.core.optional import needing_packages
from candor.core.progress import Report, silent
from candor.river.cache import Request, Response, ResponseCache
from candor.river.retries import Clock, Failure, Retries, RetryPolicy

if TYPE_CHECKING:
    import httpx
    from dataretrieval.exceptions import DataRetrievalError

Fetch = Callable[[], tuple[bytes, str, *tuple[str, ...]]]
"""Sends one request; returns the content of the response, its address, and further addresses that were needed."""

logging.getLogger("dataretrieval").addHandler(logging.NullHandler())  # it would write into the progress bar

KEY_VARIABLE = "API_USGS_PAT"
KEY_ADDRESS = "https://api.waterdata.usgs.gov/signup/"
_TOO_MANY_REQUESTS = 429
_SERVICE_NAMES = {
    "waterdata": "USGS Water Data (api.waterdata.usgs.gov)",
    "nldi": "USGS NLDI (api.water.usgs.gov)",
    "nhdplus": "USGS NHDPlus (api.water.usgs.gov)",
}


class ServiceError(InputError):
    """A service gave no usable response, or may not be asked; the disk and the login are not at fault."""


class ServiceClient:
    """Sends requests to services, several at a time, and keeps the responses.

    Args:
        cache: where responses are kept and looked for first.
        retry_policy: of failed requests.
        report: progress callback.
        fresh_since: responses from before this moment are fetched again, because readings are revised; None keeps all.
        is_offline: sends nothing; a request whose response is not on disk is refused.
        clock: replaced in tests.
        before_request: is called before anything is sent; may raise to stop it.
    """

    def __init__(
        self,
        cache: ResponseCache,
        retry_policy: RetryPolicy | None = None,
        report: Report = silent,
        fresh_since: datetime | None = None,
        is_offline: bool = False,
        clock: Clock | None = None,
        before_request: Callable[[], object] | None = None,
    ) -> None:
        self.cache = cache
        self.retry_policy = retry_policy or RetryPolicy()
        self.report = report
        self.fresh_since = fresh_since
        self.is_offline = is_offline
        self.record: list[dict[str, Any]] = []
        """Every request with its address, date and checksum, in order."""
        self._clock = clock
        self._before_request = before_request or (lambda: None)
        self._share_done = 0.0
        self._was_answered = False

    def get(self, request: Request, fetch: Fetch, what: str, since: datetime | None = None) -> Response:
        """Return the response to one request."""
        return self.get_all([(request, fetch)], what, None if since is None else [since])[0]

    def get_all(
        self, requests: Sequence[tuple[Request, Fetch]], what: str, since: Sequence[datetime] | None = None
    ) -> list[Response]:
        """Return the responses in the order of the requests; those on disk are not fetched again.

        The first failure ends the work; what came until then is kept. A service that does not answer raises
        `ServiceError`.

        Args:
            requests: each with how to send it.
            what: is being done, for progress.
            since: for each request, from when on a response on disk counts, unless the client is offline.
        """
        moments: Sequence[datetime | None] = since or [None] * len(requests)
        found = (self._find(request, moment) for (request, _), moment in zip(requests, moments, strict=True))
        responses = {place: response for place, response in enumerate(found) if response is not None}
        pending = [place for place in range(len(requests)) if place not in responses]
        self._report_progress(what, len(responses), len(requests))
        if pending and self.is_offline:
            raise ServiceError(
                f"{what}: {len(pending)} of {len(requests)} answers are not on disk, and nobody may be asked",
                where=str(self.cache.folder),
                hint="leave out --offline where there is a network, or name the folder of an earlier time with --cache",
            )
        if pending:
            self._before_request()
        retries = Retries(
            self.retry_policy,
            lambda seconds: self.report(
                f"{what} | {what}: the service needs a pause of {seconds:.0f} s", self._share_done
            ),
            self._clock,
        )
        pool = ThreadPoolExecutor(self.retry_policy.at_once)
        try:
            # A copy of the context for each: it carries the client's settings into the threads.
            futures = {
                pool.submit(copy_context().run, partial(self._send, *requests[place], retries)): place
                for place in pending
            }
            for future in as_completed(futures):
                responses[futures[future]] = future.result()
                self._report_progress(what, len(responses), len(requests))
        finally:
            retries.end()
            pool.shutdown(wait=True, cancel_futures=True)
        ordered = [responses[place] for place in range(len(requests))]
        self.record += [_record(request, response) for (request, _), response in zip(requests, ordered, strict=True)]
        return ordered

    def get_cached(self, requests: Iterable[Request]) -> list[Response]:
        """Return those responses that are on disk, however old: for when a service gives no younger ones."""
        found = [(request, self.cache.find(request)) for request in requests]
        kept = [(request, response) for request, response in found if response is not None]
        self.record += [_record(request, response) for request, response in kept]
        return [response for _, response in kept]

    def _find(self, request: Request, since: datetime | None) -> Response | None:
        response = self.cache.find(request)
        if response is not None and not self.is_offline:
            oldest = max(
                (moment for moment in (since, self.fresh_since) if moment is not None), default=response.moment
            )
            return response if response.moment >= oldest else None
        return response

    def _report_progress(self, what: str, done: int, total: int) -> None:
        self._share_done = done / max(total, 1)
        self.report(f"{what} | {what}: {done} of {total} answers", self._share_done)

    def _send(self, request: Request, fetch: Fetch, retries: Retries) -> Response:
        content, url, *also = retries.call(fetch, lambda error: self._diagnose(error, request))
        self._was_answered = True
        return self.cache.keep(request, content, url, tuple(also))

    def _diagnose(self, error: Exception, request: Request) -> Failure | None:
        import httpx
        from dataretrieval.exceptions import DataRetrievalError

        if not isinstance(error, DataRetrievalError):
            return None
        # As opposed to a connection that came about and broke.
        was_never_there = any(isinstance(one, httpx.ConnectError | httpx.ConnectTimeout) for one in _causes(error))
        is_without_network = was_never_there and not self._was_answered
        return Failure(
            _service_error(error, request, self.cache),
            may_pass=error.retryable and not is_without_network,
            wished=error.retry_after,
            is_over_quota=error.status_code == _TOO_MANY_REQUESTS,
        )


@contextmanager
def quiet_library() -> Iterator[None]:
    """Switch off the progress line of dataretrieval."""
    from dataretrieval import Configuration, configure

    with configure(Configuration(progress=False)):
        yield


def require_client() -> None:
    """Refuse to go on where the packages of the extra `river` are not installed."""
    with needing_packages("building a river", extra="river"):
        for package in ("dataretrieval.waterdata", "dataretrieval.nldi", "networkx", "pyproj"):
            import_module(package)


def _record(request: Request, response: Response) -> dict[str, Any]:
    record: dict[str, Any] = {
        "service": request.service,
        "operation": request.operation,
        "arguments": dict(request.arguments),
        "url": response.url,
        "fetched": response.fetched,
        "sha256": response.sha256,
    }
    return record | ({"also": list(response.also)} if response.also else {})


def _service_error(error: "DataRetrievalError", request: Request, cache: ResponseCache) -> ServiceError:
    """Return what went wrong and what can be done about it."""
    where, status = _SERVICE_NAMES.get(request.service, request.service), error.status_code
    again = f"run the same command again later: what was answered so far is kept in {cache.folder}"
    key = f"a free key raises the limit: get one at {KEY_ADDRESS} and set the environment variable {KEY_VARIABLE}"
    root = _causes(error)[-1]
    detail = (str(root) or type(root).__name__).split(" (URL:")[0].splitlines()[0].rstrip(".")  # without the address
    if status == _TOO_MANY_REQUESTS:
        what, hint = "the service answers no more for now: too many requests", f"{key}; {again}"
    elif status == 403:
        what, hint = f"the service refuses to answer ({detail})", f"check the key in {KEY_VARIABLE}, or unset it; {key}"
    elif status is not None and status < 500:
        what, hint = f"the service does not accept the request ({detail})", "check the options"
    elif status is not None:
        what, hint = f"the service is out of order ({detail})", again
    elif error.retryable:
        what = f"the service cannot be reached ({detail})"
        hint = f"check the connection to the internet (a proxy is named in HTTPS_PROXY); {again}"
    else:
        what, hint = f"the answer of the service cannot be read ({detail})", again
    return ServiceError(what, where=where, hint=hint)


def _causes(error: BaseException) -> list[BaseException]:
    """Return an exception, and what caused it, down to the first cause."""
    return [error, *(_causes(error.__cause__) if error.__cause__ is not None else [])]


_MOST_WORDS = 100  # characters of an answer that is none
_page_addresses: ContextVar[list[str] | None] = ContextVar("pages_seen", default=None)
_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def watched_library() -> Iterator[list[str]]:
    """Yield the addresses of the pages that the client fetches, in their order; a page that is none is refused.

    A walk over pages that was broken off and begun again leaves every address once.
    """
    _hook_into_library()
    addresses: list[str] = []
    token = _page_addresses.set(addresses)
    try:
        with quiet_library():
            yield addresses
    finally:
        _page_addresses.reset(token)
    if not addresses:
        raise InputError(
            "the installed version of dataretrieval does not let its answers be looked at",
            hint="pip install 'dataretrieval==1.4.0'",
        )


def _hook_into_library() -> None:
    """Let the library show every response to `_check_page`, which minds only those that are watched.

    The place where it does so is no promise of the library's: `watched_library` refuses a version that has none.
    """
    with suppress(ImportError, LookupError, TypeError, AttributeError), _ONE_AT_A_TIME:
        from dataretrieval.transport.http import HTTPX_ASYNC_DEFAULTS

        hooks = HTTPX_ASYNC_DEFAULTS["event_hooks"].setdefault("response", [])
        if _check_page not in hooks:
            hooks.append(_check_page)


async def _check_page(response: "httpx.Response") -> None:
    from dataretrieval.exceptions import DataRetrievalError

    addresses = _page_addresses.get()
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
