"""A newer model is taken up while clients ask; none of them is turned away, and a broken one changes nothing."""

import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from made_runs import PROTOCOL, make_run, river

from candor.runs.bundle import write_bundle
from candor.runs.run import load_run, model_checksum

TIMEOUT = 120


@pytest.fixture
def run(tmp_path: Path, linear_run: Path) -> Path:
    shutil.copytree(linear_run, tmp_path / "runs" / "mine")
    return tmp_path / "runs" / "mine"


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not is_so():
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.01)


def version(service) -> str:
    return service.get("/v1/models")["models"][0]["version"]


def metric(service, name: str) -> float:
    lines = [line for line in service.client.get("/metrics").text.splitlines() if line.startswith(f"{name}{{")]
    return float(lines[0].split()[-1]) if lines else 0.0


def test_a_newer_run_is_taken_up_and_no_request_is_lost(start, run: Path) -> None:
    service = start(run, reload_seconds=0.2)  # longer than replacing a run takes: each is opened once
    before, is_over, statuses = version(service), threading.Event(), []

    def ask() -> None:
        with httpx.Client(base_url=service.url, timeout=TIMEOUT, trust_env=False) as client:
            while not is_over.is_set():
                answer = client.get("/v1/forecast/latest")
                statuses.append(answer.status_code)
                seen.add(answer.json()["version"])

    seen: set[str] = set()
    with ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(ask) for _ in range(4)]
        try:
            wait_until(lambda: len(statuses) > 8)
            for penalty in (1e3, 1e5):  # the folder of the run is replaced twice
                make_run(run, penalty=penalty)
                newest = model_checksum(run)[:12]
                wait_until(lambda: newest in seen)  # noqa: B023 - looked at within this round
        finally:
            is_over.set()
        for client in clients:
            client.result()
    assert set(statuses) == {200}
    assert len(seen) == 3 and before in seen
    assert metric(service, "candor_reloads_total") == 2
    assert metric(service, "candor_reload_failures_total") == 0
    content = service.get("/v1/forecast/latest")
    forecast = np.array([row["forecast"] for row in content["forecasts"]]).reshape(PROTOCOL.horizon, -1)
    np.testing.assert_allclose(forecast, load_run(run).forecaster.predict(river())[0], rtol=1e-5)


def cut_weights(run: Path) -> None:
    path = run / "model" / "state.safetensors"
    path.write_bytes(path.read_bytes()[:100])


def remove_model(run: Path) -> None:
    shutil.rmtree(run / "model")


def garble_settings(run: Path) -> None:
    (run / "model" / "model.json").write_text("{")


def change_unit(run: Path) -> None:
    path = run / "model" / "model.json"
    path.write_text(path.read_text().replace('"unit": "m"', '"unit": "ft"'))


def test_a_broken_newer_model_is_reported_and_the_old_one_goes_on(start, run: Path, caplog) -> None:
    service = start(run, reload_seconds=0.02)
    # Something is stored, in the unit of the model.
    service.post("/v1/readings", readings=[{"time": "2024-01-20T00:00:00+00:00", "sensor": "g0", "value": None}])
    harms = {cut_weights: 1e3, remove_model: 1e4, garble_settings: 1e5, change_unit: 1e6}
    for harm, penalty in harms.items():
        before, forecast = version(service), service.get("/v1/forecast/latest")["forecasts"]
        failures = metric(service, "candor_reload_failures_total")
        caplog.clear()
        harm(run)
        wait_until(lambda: metric(service, "candor_reload_failures_total") > failures)  # noqa: B023
        assert version(service) == before, harm
        assert service.get("/v1/forecast/latest")["forecasts"] == forecast, harm
        assert any("the old one goes on" in record.message for record in caplog.records), harm
        make_run(run, penalty=penalty)  # and when it is mended, it is taken up
        wait_until(lambda: version(service) == model_checksum(run)[:12] != before)  # noqa: B023


def test_a_run_that_does_not_change_is_not_opened_again(start, run: Path) -> None:
    service = start(run, reload_seconds=0.01)
    (run / "evaluation.json").write_text("{}")
    wait_until(lambda: metric(service, "candor_requests_total") >= 10)
    assert metric(service, "candor_reloads_total") == 0


def test_stored_readings_outlive_a_newly_trained_run(start, tmp_path: Path, run: Path) -> None:
    service = start(run, store=None, reload_seconds=0.02)
    reading = {"time": "2024-01-26T05:00:00+01:00", "sensor": "g0", "value": 10.5}
    service.post("/v1/readings", readings=[reading])
    before = version(service)
    make_run(run, penalty=1e3)
    wait_until(lambda: version(service) != before)
    assert service.get("/v1/history", sensor="g0", steps=1)["values"] == [10.5]
    assert (run.parent / ".candor-service" / "mine.sqlite").is_file()


def test_a_bundle_is_served_like_the_run_it_came_from(start, tmp_path: Path, run: Path) -> None:
    bundle = write_bundle(load_run(run), tmp_path / "given.zip")
    service = start(run, bundle, reload_seconds=0.02)
    mine, given = service.get("/v1/models")["models"]
    assert (mine["name"], given["name"]) == ("mine", "given")
    assert mine["version"] == given["version"] and given["last_reading"] == mine["last_reading"]
    one, other = (service.get("/v1/forecast/latest", model=name)["forecasts"] for name in ("mine", "given"))
    assert one == other
    newer = make_run(tmp_path / "newer", penalty=1e3)
    write_bundle(load_run(newer), tmp_path / "next.zip")
    (tmp_path / "next.zip").replace(bundle)
    wait_until(lambda: service.get("/v1/models")["models"][1]["version"] == model_checksum(newer)[:12])
