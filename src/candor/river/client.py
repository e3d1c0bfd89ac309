"""A client of the services of the USGS: each request once, a few at a time, with retries and clear errors.

The library dataretrieval follows pages and retries short disturbances. What is added here: responses kept on disk, one
pause for all threads when a service asks for one, retries that last for a long job, and a check of every page: the
library joins pages to one table, takes a page without `features` for an empty one, and names the address of the first
page only.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from candor.core.errors import InputError
from candor.core.optional import needing_packages
from candor.core.progress import Report, silent
from candor.river.cache import Answer, AnswerCache, Question

if TYPE_CHECKING:
    import httpx
    from dataretrieval.exceptions import DataRetrievalError

Fetch = Callable[[], tuple[bytes, str, *tuple[str, ...]]]
"""Asks a service; returns the content of the answer, the address it came from, and further ones asked on the way."""

logging.getLogger("dataretrieval").addHandler(logging.NullHandler())  # it would write into the progress bar

KEY_VARIABLE = "API_USGS_PAT"
KEY_ADDRESS = "https://api.waterdata.usgs.gov/signup/"
_TOO_MANY_REQUESTS = 429
_SPOKEN_NAMES = {
    "waterdata": "USGS Water Data (api.waterdata.usgs.gov)",
    "nldi": "USGS NLDI (api.water.usgs.gov)",
    "nhdplus": "USGS NHDPlus (api.water.usgs.gov)",
}


class ServiceError(InputError):
    """A service gave no answer that can be used, or may not be asked; the disk and the login are not at fault."""


@dataclass(frozen=True)
class Manners:
    """How a guest behaves.

    Args:
        at_once: most questions under way at a time.
        attempts: how often one question is asked before giving up.
        first_wait: seconds before the second attempt where the service names no time; doubled for each further one.
        quota_wait: seconds before any attempt after "too many requests" where the service names no time. It counts them
            by the hour, so that five such pauses outlast the longest one.
        longest_wait: seconds; a service that asks for more is not waited for.
    """

    at_once: int = 4
    attempts: int = 6
    first_wait: float = 5.0
    quota_wait: float = 780.0
    longest_wait: float = 3900.0


class Clock:
    """Time as it passes; something else in tests."""

    def now(self) -> float:
        """Returns the seconds since some moment."""
        return time.monotonic()

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Waits, or stops waiting when told to."""
        stop.wait(seconds)


class Asker:
    """Asks services, and keeps what they say.

    Args:
        cache: where answers are kept and looked for first.
        manners: how the services are treated.
        report: listens to progress.
        fresh_since: what was answered before this moment is asked again, because readings are revised; None asks
            nothing again.
        is_offline: asks nobody; a question whose answer is not on disk is refused.
        clock: how pauses are kept.
        before_asking: is called before a service is asked; may raise to stop it.
    """

    def __init__(
        self,
        cache: AnswerCache,
        manners: Manners | None = None,
        report: Report = silent,
        fresh_since: datetime | None = None,
        is_offline: bool = False,
        clock: Clock | None = None,
        before_asking: Callable[[], object] | None = None,
    ) -> None:
        self.cache = cache
        self.manners = manners or Manners()
        self.report = report
        self.fresh_since = fresh_since
        self.is_offline = is_offline
        self.record: list[dict[str, Any]] = []
        """Every question with its address, date and checksum, in the order in which they were put."""
        self._clock = clock or Clock()
        self._before_asking = before_asking or (lambda: None)
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._share_done = 0.0
        self._was_answered = False

    def ask(self, question: Question, fetch: Fetch, what: str, since: datetime | None = None) -> Answer:
        """Returns the answer to one question."""
        return self.ask_all([(question, fetch)], what, None if since is None else [since])[0]

    def ask_all(
        self, questions: Sequence[tuple[Question, Fetch]], what: str, since: Sequence[datetime] | None = None
    ) -> list[Answer]:
        """Returns the answers in the order of the questions; those on disk are not asked again.

        The first failure ends the work; what was answered until then is kept. A service that does not answer raises
        `ServiceError`.

        Args:
            questions: each with how to ask it.
            what: is being done, for progress.
            since: for each question, answers on disk that are older do not count where somebody may be asked.
        """
        moments: Sequence[datetime | None] = [None] * len(questions) if since is None else since
        known = [self._find(question, moment) for (question, _), moment in zip(questions, moments, strict=True)]
        pending = [place for place, answer in enumerate(known) if answer is None]
        answers = {place: answer for place, answer in enumerate(known) if answer is not None}
        self._tell(what, len(answers), len(questions))
        if pending and self.is_offline:
            raise _not_on_disk(what, len(pending), len(questions), self.cache)
        if pending:
            self._before_asking()
        stop = threading.Event()
        pool = ThreadPoolExecutor(self.manners.at_once)
        try:
            # A copy of the context for each: it carries the client's settings into the threads.
            work = {place: partial(self._ask_patiently, *questions[place], what, stop) for place in pending}
            futures = {pool.submit(copy_context().run, work[place]): place for place in pending}
            for future in as_completed(futures):
                answers[futures[future]] = future.result()
                self._tell(what, len(answers), len(questions))
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
        for place, (question, _) in enumerate(questions):
            self.record.append(_record_of(question, answers[place]))
        return [answers[place] for place in range(len(questions))]

    def take_kept(self, questions: Iterable[Question]) -> list[Answer]:
        """Returns those answers that are on disk, however old they are: for when a service gives no younger ones."""
        found = [(question, self.cache.find(question)) for question in questions]
        kept = [(question, answer) for question, answer in found if answer is not None]
        self.record += [_record_of(question, answer) for question, answer in kept]
        return [answer for _, answer in kept]

    def _find(self, question: Question, since: datetime | None) -> Answer | None:
        """Returns the answer on disk, if it is young enough."""
        answer = self.cache.find(question)
        if answer is None or self.is_offline:
            return answer
        is_old = any(moment is not None and answer.moment < moment for moment in (since, self.fresh_since))
        return None if is_old else answer

    def _tell(self, what: str, done: int, total: int) -> None:
        self._share_done = done / max(total, 1)
        self.report(f"{what} | {what}: {done} of {total} answers", self._share_done)

    def _ask_patiently(self, question: Question, fetch: Fetch, what: str, stop: threading.Event) -> Answer:
        from dataretrieval.exceptions import DataRetrievalError

        for attempt in range(1, self.manners.attempts + 1):
            self._hold_back(stop)
            if stop.is_set():
                raise CancelledError
            try:
                content, url, *also = fetch()
            except DataRetrievalError as error:
                wait = self._wait_after(error, attempt)
                if wait is None or stop.is_set():
                    raise _in_plain_words(error, question, self.cache) from error
                with self._lock:  # everybody pauses: the quota and the disturbance are common to all
                    self._not_before = max(self._not_before, self._clock.now() + wait)
                self.report(f"{what} | {what}: the service needs a pause of {wait:.0f} s", self._share_done)
            else:
                self._was_answered = True
                return self.cache.keep(question, content, url, tuple(also))
        raise AssertionError("the last attempt either answers or raises")

    def _hold_back(self, stop: threading.Event) -> None:
        while (left := self._not_before - self._clock.now()) > 0 and not stop.is_set():
            self._clock.wait(left, stop)

    def _wait_after(self, error: "DataRetrievalError", attempt: int) -> float | None:
        """Returns the seconds to wait before asking again, or None where that is of no use."""
        is_without_network = _was_never_connected(error) and not self._was_answered
        if not error.retryable or attempt == self.manners.attempts or is_without_network:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.manners.longest_wait else None
        if error.status_code == _TOO_MANY_REQUESTS:
            return self.manners.quota_wait
        return self.manners.first_wait * 2.0 ** (attempt - 1)


@contextmanager
def quiet_client() -> Iterator[None]:
    """Lets the client keep its own progress line to itself."""
    from dataretrieval import Configuration, configure

    with configure(Configuration(progress=False)):
        yield


def require_client() -> None:
    """Refuses to go on where the packages of the extra `river` are not installed."""
    with needing_packages("building a river", extra="river"):
        import pyproj  # noqa: F401


def _was_never_connected(error: BaseException) -> bool:
    """Returns whether no connection came about, as opposed to one that broke."""
    import httpx

    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout):
        cause = cause.__cause__
    return cause is not None


def _record_of(question: Question, answer: Answer) -> dict[str, Any]:
    record: dict[str, Any] = {
        "service": question.service,
        "operation": question.operation,
        "arguments": dict(question.arguments),
        "url": answer.url,
        "fetched": answer.fetched,
        "sha256": answer.sha256,
    }
    return record | ({"also": list(answer.also)} if answer.also else {})


def _not_on_disk(what: str, lacking: int, total: int, cache: AnswerCache) -> ServiceError:
    return ServiceError(
        f"{what}: {lacking} of {total} answers are not on disk, and nobody may be asked",
        where=str(cache.folder),
        hint="leave out --offline where there is a network, or name the folder of an earlier time with --cache",
    )


def _in_plain_words(error: "DataRetrievalError", question: Question, cache: AnswerCache) -> ServiceError:
    """Returns what went wrong and what can be done about it."""
    where, status = _SPOKEN_NAMES.get(question.service, question.service), error.status_code
    again = f"run the same command again later: what was answered so far is kept in {cache.folder}"
    key = f"a free key raises the limit: get one at {KEY_ADDRESS} and set the environment variable {KEY_VARIABLE}"
    detail = _first_sentence(error)
    if status == _TOO_MANY_REQUESTS:
        return ServiceError(
            "the service answers no more for now: too many requests", where=where, hint=f"{key}; {again}"
        )
    if status == 403:
        hint = f"check the key in {KEY_VARIABLE}, or unset it; {key}"
        return ServiceError(f"the service refuses to answer ({detail})", where=where, hint=hint)
    if status is not None and status < 500:
        return ServiceError(
            f"the service does not accept the request ({detail})", where=where, hint="check the options"
        )
    if status is not None:
        return ServiceError(f"the service is out of order ({detail})", where=where, hint=again)
    if error.retryable:
        hint = f"check the connection to the internet (a proxy is named in HTTPS_PROXY); {again}"
        return ServiceError(f"the service cannot be reached ({detail})", where=where, hint=hint)
    return ServiceError(f"the answer of the service cannot be read ({detail})", where=where, hint=again)


def _first_sentence(error: BaseException) -> str:
    """Returns what the deepest cause says, without the address."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error) or type(error).__name__).split(" (URL:")[0].splitlines()[0].rstrip(".")


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
