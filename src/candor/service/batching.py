"""One worker for each model: requests of several clients that wait at the same time share a call of the model."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from candor.forecasting.forecaster import Forecaster
from candor.service.metrics import Metrics
from candor.service.stacking import Forecast, Window, forecast_windows

Result = TypeVar("Result")
_LAST_SECONDS = 10.0


@dataclass(frozen=True, eq=False)
class _Job:
    """A window of a forecaster, to be forecast with others; or some other work, to be done alone."""

    forecaster: Forecaster | None = None
    window: Window | None = None
    work: Callable[[], Any] | None = None
    future: Future[Any] = field(default_factory=Future)


class Worker:
    """A thread that does all the work of one model, in order, windows of the same forecaster together.

    Nothing waits for a batch to fill: while one is computed, the next gathers.

    Args:
        name: of the model.
        most_windows: windows that are forecast in one go.
        metrics: is told how long the queue is and how large batches are.
    """

    def __init__(self, name: str, most_windows: int, metrics: Metrics) -> None:
        self._most = most_windows
        self._queue_length = metrics.queue.labels(name)
        self._batch_size = metrics.batch.labels(name)
        self._jobs: deque[_Job] = deque()
        self._change = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=f"model {name}", daemon=True)
        self._thread.start()

    def forecast(self, forecaster: Forecaster, window: Window) -> Future[Forecast]:
        """Returns what will hold the forecast of a window, step x sensor, once its turn has come."""
        return self._add(_Job(forecaster=forecaster, window=window))

    def do(self, work: Callable[[], Result]) -> Future[Result]:
        """Returns what will hold the result of other work with the model, once its turn has come."""
        return self._add(_Job(work=work))

    def close(self) -> None:
        """Does what is in the queue and ends, unless that takes too long; new work is a mistake."""
        with self._change:
            self._is_closed = True
            self._change.notify()
        self._thread.join(_LAST_SECONDS)

    def _add(self, job: _Job) -> Future[Any]:
        with self._change:
            if self._is_closed:
                raise ValueError("the worker has been closed")
            self._jobs.append(job)
            self._queue_length.set(len(self._jobs))
            self._change.notify()
        return job.future

    def _run(self) -> None:
        while taken := self._take():
            # A client that has gone cancels its job. From here on none can, so that every result finds its place.
            jobs = [job for job in taken if job.future.set_running_or_notify_cancel()]
            if not jobs:
                continue
            if jobs[0].work is not None:
                _settle(jobs[0], jobs[0].work)
            else:
                self._batch_size.observe(len(jobs))
                _forecast(jobs)

    def _take(self) -> list[_Job]:
        """Returns the job that has waited longest, with windows of the same forecaster; none at the end."""
        with self._change:
            self._change.wait_for(lambda: self._jobs or self._is_closed)
            if not self._jobs:
                return []
            taken = [self._jobs.popleft()]
            if taken[0].window is not None:
                like = [job for job in self._jobs if job.forecaster is taken[0].forecaster]
                taken += like[: self._most - 1]
                self._jobs = deque(job for job in self._jobs if job not in taken)
            self._queue_length.set(len(self._jobs))
            return taken


def _forecast(jobs: list[_Job]) -> None:
    """Forecasts all windows together; if that fails, one by one, so that one client's trouble is not another's."""
    forecaster, windows = jobs[0].forecaster, [job.window for job in jobs if job.window is not None]
    assert forecaster is not None
    try:
        forecasts = forecast_windows(forecaster, windows)
    except Exception:
        for job, window in zip(jobs, windows, strict=True):
            _settle(job, lambda window=window: forecast_windows(forecaster, [window])[0])  # type: ignore[misc]
        return
    for job, forecast in zip(jobs, forecasts, strict=True):
        job.future.set_result(forecast)


def _settle(job: _Job, work: Callable[[], Any]) -> None:
    try:
        job.future.set_result(work())
    except Exception as error:
        job.future.set_exception(error)
