"""Requests that are repeated where a failure may pass: one policy for all services."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from candor.core.errors import InputError

Result = TypeVar("Result")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and after what pauses a request is repeated.

    Waits are in seconds. Where a service names no time, the wait doubles with each attempt, but not over a quota: the
    USGS counts by the hour, and five such waits outlast the longest one.
    """

    at_once: int = 4  # most requests under way at a time
    attempts: int = 6  # of one request
    first_wait: float = 5.0
    quota_wait: float = 780.0
    longest_wait: float = 3900.0  # a service that asks for more is not waited for


@dataclass(frozen=True)
class Failure:
    """Why a request failed."""

    error: InputError  # to raise if it is not repeated
    may_pass: bool
    wished: float | None = None  # seconds that the service asks to wait (Retry-After), if it does
    is_over_quota: bool = False


class Clock:
    """Time as it passes; something else in tests."""

    def now(self) -> float:
        """Return the seconds since some moment."""
        return time.monotonic()

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Wait, or stop waiting when told to."""
        stop.wait(seconds)


class Retries:
    """Repeats requests of several threads; all of them pause together, as quotas and disturbances are common to them.

    `tell` is called before each pause with its seconds; the clock is replaced in tests.
    """

    def __init__(
        self,
        policy: RetryPolicy,
        tell: Callable[[float], object] = lambda seconds: None,
        clock: Clock | None = None,
    ) -> None:
        self.tell = tell
        self._policy = policy
        self._clock = clock or Clock()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._not_before = 0.0

    def end(self) -> None:
        """End all pauses, for good: whoever waits gives up. Otherwise Ctrl-C would take as long as the pauses do."""
        self._stop.set()

    def call(self, send: Callable[[], Result], diagnose: Callable[[Exception], Failure | None]) -> Result:
        """Return what `send` returns, called again after a pause where a failure may pass.

        `diagnose` says what is behind an exception; None lets it through. Raises the error of a failure that does not
        pass, and CancelledError after `end`.
        """
        for attempt in count(1):
            self._wait()
            try:
                return send()
            except Exception as error:
                failure = diagnose(error)
                if failure is None:
                    raise
                seconds = self._pause_after(attempt, failure)
                if seconds is None or self._stop.is_set():
                    raise failure.error from error
            self.pause(seconds)
        raise AssertionError("unreachable: the last attempt either answers or raises")

    def pause(self, seconds: float) -> None:
        """Let all threads wait, after reporting it."""
        with self._lock:
            self._not_before = max(self._not_before, self._clock.now() + seconds)
        self.tell(seconds)
        self._wait()

    def _pause_after(self, attempt: int, failure: Failure) -> float | None:
        """Return the seconds to wait after a failed attempt, counted from 1; None if no further one makes sense."""
        policy, seconds = self._policy, failure.wished
        if seconds is None:
            seconds = policy.quota_wait if failure.is_over_quota else policy.first_wait * 2.0 ** (attempt - 1)
        is_in_vain = not failure.may_pass or attempt >= policy.attempts or seconds > policy.longest_wait
        return None if is_in_vain else seconds

    def _wait(self) -> None:
        while (left := self._not_before - self._clock.now()) > 0 and not self._stop.is_set():
            self._clock.wait(left, self._stop)
        if self._stop.is_set():
            raise CancelledError
