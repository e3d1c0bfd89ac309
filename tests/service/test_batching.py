"""Clients that ask at the same time share a call of the model, and none of them can tell."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from candor.core.errors import InputError
from candor.data.panel import Panel
from candor.forecasting.forecaster import State, refuse_unbounded
from candor.forecasting.network import NetworkForecaster
from candor.runs.run import load_run
from candor.service import batching
from candor.service.batching import Worker, forecast_windows, open_window
from candor.service.metrics import Metrics

NOW = "2024-01-26T00:30:00+01:00"


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def worker(metrics: Metrics) -> Iterator[Worker]:
    working = Worker("some", 16, metrics)
    yield working
    working.close()


@pytest.fixture(scope="module")
def forecaster(candor_run: Path) -> NetworkForecaster:
    return load_run(candor_run).forecaster


def panels(panel: Panel, count: int) -> list[Panel]:
    """Returns the recent past of several clients, each another one."""
    generator = np.random.default_rng(1)
    ends = generator.integers(40, 600, count)
    return [
        replace(part := panel.slice(end - 30, end), values=part.values + generator.normal(0, 0.2, part.values.shape))
        for end in ends.tolist()
    ]


def with_other_weights(state: State) -> State:
    return {name: array * np.float32(1.01) if name.startswith("weights/") else array for name, array in state.items()}


class Gate:
    """Holds the worker until all jobs of a test are in its queue."""

    def __init__(self, worker: Worker) -> None:
        self._worker, self.opens, self._is_held = worker, threading.Event(), threading.Event()
        self._held = worker.submit(self._hold)
        assert self._is_held.wait(60)

    def _hold(self) -> None:
        self._is_held.set()
        assert self.opens.wait(60)

    def open_for(self, jobs: int) -> None:
        assert len(self._worker._jobs) == jobs
        self.opens.set()
        self._held.result()


@pytest.mark.parametrize("run", ["candor_run", "linear_run"])
def test_a_forecast_in_company_is_that_alone(panel: Panel, run: str, request, monkeypatch) -> None:
    model = load_run(request.getfixturevalue(run)).forecaster
    clients, sizes = panels(panel, 37), list[int]()
    windows = [open_window(model, client) for client in clients]
    with monkeypatch.context() as patched:
        if isinstance(model, NetworkForecaster):
            real = model.trained().forecast
            record = lambda batch: sizes.append(len(batch["inputs"])) or real(batch)  # noqa: E731
            patched.setattr(model.trained(), "forecast", record)
        together = forecast_windows(model, windows)
    if isinstance(model, NetworkForecaster):
        assert sizes == [16, 16, 5]  # few calls of the model, and each window in one of them
    assert len(together) == 37
    for place in (0, 1, 15, 16, 17, 31, 32, 36):  # the ends of each call, and some between
        np.testing.assert_allclose(together[place], model.predict(clients[place])[0], rtol=1e-5, atol=1e-5)


def test_windows_that_wait_together_are_forecast_together(worker, metrics, forecaster, panel, monkeypatch) -> None:
    sizes: list[int] = []
    real = batching.forecast_windows
    monkeypatch.setattr(batching, "forecast_windows", lambda model, w: sizes.append(len(w)) or real(model, w))
    gate, clients = Gate(worker), panels(panel, 20)
    found = [worker.forecast(forecaster, open_window(forecaster, one)) for one in clients]
    gate.open_for(20)
    for client, future in zip(clients, found, strict=True):
        np.testing.assert_allclose(future.result(), forecaster.predict(client)[0], rtol=1e-5, atol=1e-5)
    assert sizes == [16, 4]  # as many as allowed, then the rest
    assert 'candor_batch_windows_sum{model="some"} 20.0' in metrics.text().decode()


def test_windows_of_an_older_and_a_newer_model_do_not_mix(worker, forecaster, candor_run, panel) -> None:
    newer = load_run(candor_run).forecaster
    newer.state_ = with_other_weights(newer.state_)
    gate, clients = Gate(worker), panels(panel, 8)
    models = [forecaster, newer] * 4
    found = [worker.forecast(model, open_window(model, one)) for model, one in zip(models, clients, strict=True)]
    gate.open_for(8)
    for model, client, future in zip(models, clients, found, strict=True):
        np.testing.assert_allclose(future.result(), model.predict(client)[0], rtol=1e-5, atol=1e-5)


def test_the_trouble_of_one_client_is_not_that_of_others(worker, forecaster, panel, monkeypatch) -> None:
    gate, clients = Gate(worker), panels(panel, 5)
    windows = [open_window(forecaster, client) for client in clients]
    real = batching.forecast_windows

    def fail_at_the_third(model, some):
        if windows[2] in some:
            raise ZeroDivisionError("the third")
        return real(model, some)

    monkeypatch.setattr(batching, "forecast_windows", fail_at_the_third)
    found = [worker.forecast(forecaster, window) for window in windows]
    gate.open_for(5)
    for number, future in enumerate(found):
        if number == 2:
            with pytest.raises(ZeroDivisionError):
                future.result()
        else:
            expected = forecaster.predict(clients[number])[0]
            np.testing.assert_allclose(future.result(), expected, rtol=1e-5, atol=1e-5)


def test_a_client_that_has_gone_stops_no_other(worker, metrics, forecaster, panel) -> None:
    gate, clients = Gate(worker), panels(panel, 4)
    found = [worker.forecast(forecaster, open_window(forecaster, client)) for client in clients]
    done: list[str] = []
    work = [worker.submit(lambda name=name: done.append(name)) for name in ("first", "second")]
    assert found[0].cancel() and found[2].cancel() and work[0].cancel()
    gate.open_for(6)
    for number in (1, 3):
        expected = forecaster.predict(clients[number])[0]
        np.testing.assert_allclose(found[number].result(60), expected, rtol=1e-5, atol=1e-5)
    work[1].result(60)
    assert done == ["second"]
    assert 'candor_batch_windows_sum{model="some"} 2.0' in metrics.text().decode()  # only what is wanted is computed


def test_readings_that_lead_nowhere_spoil_no_other_forecast(forecaster, panel) -> None:
    usual, wild = panels(panel, 2)
    wild = replace(wild, values=np.full_like(wild.values, 1e37))
    found = forecast_windows(forecaster, [open_window(forecaster, one) for one in (usual, wild)])
    np.testing.assert_allclose(refuse_unbounded(found[0]), forecaster.predict(usual)[0], rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match="not a number"):
        refuse_unbounded(np.full((4, 5), np.nan, np.float32))


def test_a_closed_worker_has_done_its_work(metrics, forecaster, panel) -> None:
    worker = Worker("other", 16, metrics)
    gate, window = Gate(worker), open_window(forecaster, panel)
    found = worker.forecast(forecaster, window)
    gate.open_for(1)
    worker.close()
    assert found.result(0).shape == (4, 5)
    with pytest.raises(ValueError, match="closed"):
        worker.submit(lambda: None)


def test_answers_over_http_do_not_depend_on_company(live, panel: Panel, sendable) -> None:
    bodies = [{"model": "small", "readings": sendable(one), "now": NOW} for one in panels(panel, 6)]
    alone = [live.post("/v1/forecast", **body)["forecasts"] for body in bodies]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda body: live.post("/v1/forecast", **body)["forecasts"], bodies))
    for one, other in zip(alone, together, strict=True):
        for name in ("forecast", "lower", "upper"):
            pair = ([row[name] for row in rows] for rows in (one, other))
            np.testing.assert_allclose(*pair, rtol=1e-5, atol=1e-5)


def test_the_network_is_built_once_and_anew_after_learning(candor_run: Path, panel: Panel) -> None:
    model = load_run(candor_run).forecaster
    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(lambda _: model.trained(), range(8)))
    assert all(one is built[0] for one in built)
    before = model.predict(panel)
    assert model.trained() is built[0]
    model.state_ = with_other_weights(model.state_)
    assert model.trained() is not built[0]
    assert np.abs(model.predict(panel) - before).max() > 1e-4
    fresh = load_run(candor_run).forecaster
    fresh.state_ = model.state_
    np.testing.assert_array_equal(fresh.predict(panel), model.predict(panel))
