"""Batching: requests of several clients that wait at the same time share a call of the model."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from candor.data.panel import Panel
from candor.data.windows import Batch
from candor.forecasting.forecaster import Forecaster
from candor.forecasting.inference import infer
from candor.forecasting.network import NetworkForecaster
from candor.service.metrics import Metrics
from candor.training.batches import Indices

Forecast = NDArray[np.float32]
Result = TypeVar("Result")
_CLOSING_SECONDS = 10.0


@dataclass(frozen=True, eq=False)
class Window:
    """What a forecast is made from: the readings before it, and for a network the batch that it reads of them."""

    panel: Panel
    batch: Batch | None


def open_window(forecaster: Forecaster, panel: Panel) -> Window:
    """Return the window at the end of a panel that fits the forecaster, read and scaled."""
    if not isinstance(forecaster, NetworkForecaster):
        return Window(panel, None)
    origins = np.array([panel.times.length], np.int64)
    return Window(panel, forecaster.windows(panel, origins).batch(np.array([0])))


def forecast_windows(forecaster: Forecaster, windows: Sequence[Window]) -> list[Forecast]:
    """Return the forecasts of windows of one forecaster, each step x sensor, in the sensors' units."""
    if not isinstance(forecaster, NetworkForecaster):
        return [forecaster.predict(window.panel)[0] for window in windows]
    stacked = _StackedWindows([window.batch for window in windows if window.batch is not None])
    # One thread: several models may forecast at once, and the threads of PyTorch are set for the whole process.
    found = infer(forecaster.trained(), stacked, lambda net, batch: net.forecast(batch), threads=1)
    return [forecast for forecasts in found for forecast in forecasts.numpy()]


class _StackedWindows(list[Batch]):
    """Windows of several panels, taken by index."""

    def batch(self, indices: Indices) -> Batch:
        """Return the windows at indices as one batch."""
        chosen = [vars(self[index]) for index in indices]
        arrays = {
            name: None if first is None else np.concatenate([one[name] for one in chosen])
            for name, first in chosen[0].items()
        }
        return Batch(**arrays)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class _Job:
    """Some work to run alone; if it is the forecast of a window, that may share a batch with others."""

    work: Callable[[], Any]
    forecaster: Forecaster | None = None
    window: Window | None = None
    future: Future[Any] = field(default_factory=Future)

    def run(self) -> None:
        """Set the result of the work, or its failure."""
        try:
            self.future.set_result(self.work())
        except Exception as error:
            self.future.set_exception(error)


class Worker:
    """A thread that does all the work of one model in order, with waiting windows of the same forecaster as one batch.

    It never waits for a batch to fill: the next one gathers while one is computed, of `most_windows` at most.
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
        """Queue a window; the future will hold its forecast, step x sensor."""
        return self._add(_Job(lambda: forecast_windows(forecaster, [window])[0], forecaster, window))

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Queue other work with the model; the future will hold its result."""
        return self._add(_Job(work))

    def close(self) -> None:
        """End after the work in the queue, at most some seconds later; new work raises ValueError."""
        with self._change:
            self._is_closed = True
            self._change.notify()
        self._thread.join(_CLOSING_SECONDS)

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
            # Clients that disconnect cancel their jobs. From here on none can be cancelled, so that results can be set.
            jobs = [job for job in taken if job.future.set_running_or_notify_cancel()]
            if len(jobs) == 1 and jobs[0].window is None:
                jobs[0].run()
            elif jobs:
                self._batch_size.observe(len(jobs))
                _forecast(jobs)

    def _take(self) -> list[_Job]:
        """Wait for a job; returns it with further windows of the same forecaster, or nothing once closed."""
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
    """Forecast all windows together; if that fails, one by one, so that the failure of one stays its own."""
    forecaster, windows = jobs[0].forecaster, [job.window for job in jobs if job.window is not None]
    assert forecaster is not None
    try:
        forecasts = forecast_windows(forecaster, windows)
    except Exception:
        for job in jobs:
            job.run()
    else:
        for job, forecast in zip(jobs, forecasts, strict=True):
            job.future.set_result(forecast)
