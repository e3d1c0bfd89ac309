"""Every address gives what the model itself says, in the shape that was agreed."""

import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from made_runs import make_run
from tiny import PROTOCOL, TINY_STAGES

from candor.data.panel import Panel, adjacency_of
from candor.runs.run import load_run, model_checksum
from candor.service import schemas

NOW = "2024-01-26T00:30:00+01:00"  # half an hour after the last reading
SEVEN_DIGITS = {"rtol": 2e-6, "atol": 1e-6}


def longer(panel: Panel, rows: np.ndarray) -> Panel:
    values = np.concatenate([panel.values, rows.astype(np.float32)])
    return replace(panel, values=values, times=panel.times.slice(0, len(values)))


def table(content, name: str = "forecast") -> np.ndarray:
    """Returns the rows of a forecast as step x sensor."""
    steps = max(row["step"] for row in content["forecasts"])
    return np.array([row[name] for row in content["forecasts"]]).reshape(steps, -1)


def test_models_say_what_they_need_and_where_their_record_ends(live, panel: Panel, candor_run: Path) -> None:
    content = live.get("/v1/models")
    schemas.ModelList.model_validate(content)
    small, plain = content["models"]
    assert (small["name"], small["model"], small["explains"]) == ("small", "candor", True)
    assert (plain["name"], plain["model"], plain["explains"]) == ("plain", "linear", False)
    assert (small["unit"], small["zone"], small["interval"], small["interval_seconds"]) == (
        "m", "Europe/Berlin", "1 h", 3600,
    )  # fmt: skip
    assert (small["history"], small["horizon"], small["sensors"], small["edges"]) == (12, 4, 5, 4)
    assert small["last_reading"] == "2024-01-26T00:00:00+01:00"
    assert small["last_origin"] == "2024-01-26T01:00:00+01:00"
    assert small["first_origin"] == panel.times.local[12].isoformat()
    assert model_checksum(candor_run).startswith(small["version"])
    assert datetime.fromisoformat(small["made"]).utcoffset().total_seconds() in (3600, 7200)


def test_sensors_come_with_the_edges_of_the_panel_and_a_place_on_the_drawing(live, panel: Panel) -> None:
    content = live.get("/v1/sensors", model="small")
    schemas.SensorList.model_validate(content)
    assert [sensor["id"] for sensor in content["sensors"]] == list(panel.sensor_ids)
    assert [sensor["name"] for sensor in content["sensors"]] == [sensor.name for sensor in panel.sensors]
    assert all(0 <= sensor[axis] <= 1 for sensor in content["sensors"] for axis in ("x", "y"))
    assert len({(sensor["x"], sensor["y"]) for sensor in content["sensors"]}) == 5
    assert not content["has_coordinates"]
    weights = adjacency_of(panel).toarray()
    for edge, distance in zip(content["edges"], panel.edges.distance, strict=True):
        ends = (panel.sensor_ids.index(edge["from"]), panel.sensor_ids.index(edge["to"]))
        assert ends[1] == ends[0] + 1
        assert edge["weight"] == pytest.approx(weights[ends], rel=1e-6)
        assert edge["distance"] == pytest.approx(distance)


def test_a_forecast_from_sent_readings_is_that_of_the_model(live, panel: Panel, candor_run: Path, sendable) -> None:
    content = live.post("/v1/forecast", model="small", readings=sendable(panel), coverage=0.8, above=10.2, now=NOW)
    schemas.ForecastResponse.model_validate(content)
    model = load_run(candor_run).forecaster
    made = model.predict_interval(panel, coverage=0.8)
    for name in ("forecast", "lower", "upper"):
        np.testing.assert_allclose(table(content, name), getattr(made, name)[0], **SEVEN_DIGITS)
    chance = 1 - model.probability_below(panel, 10.2)[0]
    np.testing.assert_allclose(table(content, "probability"), chance, **SEVEN_DIGITS)
    assert (content["coverage"], content["zone"], content["units"]["g0"]) == (0.8, "Europe/Berlin", "m")
    assert content["forecasts"][0]["time"] == "2024-01-26T01:00:00+01:00"
    assert content["last_reading"] == "2024-01-26T00:00:00+01:00"


def test_below_and_above_are_two_sides_of_one_coin(live, panel: Panel, sendable) -> None:
    request = {"model": "small", "readings": sendable(panel.slice(560, 600)), "now": NOW}
    below, above = (table(live.post("/v1/forecast", **request, **{side: 10.2}), "probability") for side in (
        "below", "above",
    ))  # fmt: skip
    np.testing.assert_allclose(below + above, 1.0, atol=1e-6)


@pytest.mark.parametrize("name", ["small", "plain"])
def test_the_latest_forecast_is_that_after_the_runs_own_record(live, panel: Panel, name, request) -> None:
    content = live.get("/v1/forecast/latest", model=name, coverage=0.5)
    run = request.getfixturevalue("candor_run" if name == "small" else "linear_run")
    made = load_run(run).forecaster.predict_interval(panel, coverage=0.5)
    for part in ("forecast", "lower", "upper"):
        np.testing.assert_allclose(table(content, part), getattr(made, part)[0], **SEVEN_DIGITS)
    assert content["model"] == name and content["coverage"] == 0.5


@pytest.mark.parametrize("origin", [12, 100, 550, 598, 600])
def test_a_past_forecast_stands_beside_what_happened(live, panel: Panel, candor_run: Path, origin: int) -> None:
    time = panel.times.slice(origin, origin + 1).local[0].isoformat()
    content = live.get("/v1/forecast/at", model="small", time=time, coverage=0.6)
    schemas.PastForecast.model_validate(content)
    assert content["time"] == time == content["steps"][0] and content["coverage"] == 0.6
    made = load_run(candor_run).forecaster.predict_interval(panel.slice(0, origin), coverage=0.6)
    observed = np.full((4, 5), np.nan)
    observed[: 600 - origin] = panel.values[origin : origin + 4]
    for column, sensor in enumerate(panel.sensor_ids):
        series = content["sensors"][sensor]
        for name in ("forecast", "lower", "upper"):
            np.testing.assert_allclose(series[name], getattr(made, name)[0, :, column], **SEVEN_DIGITS)
        np.testing.assert_allclose(np.array(series["observed"], float), observed[:, column], **SEVEN_DIGITS)


@pytest.mark.parametrize(("coverage", "is_told"), [(0.9, False), (0.9999, True)])
def test_it_is_said_where_intervals_cannot_hold_what_is_asked_of_them(
    live, panel: Panel, sendable, coverage: float, is_told: bool
) -> None:
    asked = {"model": "plain", "coverage": coverage}
    for content in (
        live.post("/v1/forecast", readings=sendable(panel.slice(540, 600)), now=NOW, **asked),
        live.get("/v1/forecast/latest", **asked),
        live.get("/v1/forecast/at", time="2024-01-20", **asked),
    ):
        told = [finding for finding in content["findings"] if "too few errors of the model" in finding["what"]]
        assert bool(told) == is_told and not any("--" in finding["hint"] for finding in told)


def test_between_two_steps_the_later_one_is_taken(live) -> None:
    content = live.get("/v1/forecast/at", model="small", time="2024-01-20T05:20")
    assert content["time"] == "2024-01-20T06:00:00+01:00"


def test_the_overview_sums_up_the_past_forecast(live, panel: Panel) -> None:
    time = "2024-01-25T12:00:00+01:00"
    content, past = live.get("/v1/overview", model="small", time=time), live.get(
        "/v1/forecast/at", model="small", time=time
    )  # fmt: skip
    schemas.OverviewResponse.model_validate(content)
    assert content["time"] == time
    for row, sensor in zip(content["sensors"], panel.sensors, strict=True):
        series = past["sensors"][sensor.id]
        assert (row["id"], row["unit"]) == (sensor.id, "m")
        assert row["forecast"] == pytest.approx(np.mean(series["forecast"]), rel=1e-5)
        assert row["width"] == pytest.approx(np.mean(np.subtract(series["upper"], series["lower"])), rel=1e-4)
        history = live.get("/v1/history", model="small", sensor=sensor.id, until=time, steps=12)["values"]
        known = [value for value in history if value is not None]
        if not known:  # the dead gauge, and the one that fell silent
            assert row["last"] is row["change"] is row["change_end"] is None
            continue
        assert row["last"] == known[-1]
        # Levels are about 10 m: differences are told to the six digits that both numbers have.
        assert row["change"] == pytest.approx(row["forecast"] - row["last"], abs=6e-5)
        assert row["change_end"] == pytest.approx(series["forecast"][-1] - row["last"], abs=6e-5)


def test_no_change_is_told_as_zero(start, tmp_path: Path, panel: Panel) -> None:
    service = start(make_run(tmp_path / "still", "last-value"))
    for origin in (100, 300, 555):
        rows = service.get("/v1/overview", time=panel.times.local[origin].isoformat())["sensors"]
        told = [row for row in rows if row["last"] is not None]
        assert len(told) >= 3
        assert [(row["change"], row["change_end"]) for row in told] == [(0.0, 0.0)] * len(told)


def test_the_overview_without_a_time_is_that_of_the_end(live) -> None:
    assert live.get("/v1/overview", model="small")["time"] == "2024-01-26T01:00:00+01:00"


def test_history_is_the_record_before_a_time(live, panel: Panel) -> None:
    content = live.get("/v1/history", model="small", sensor="g1", until="2024-01-20T06:00:00+01:00", steps=30)
    schemas.History.model_validate(content)
    stop = panel.times.index_of("2024-01-20T06:00")
    np.testing.assert_allclose(np.array(content["values"], float), panel.values[stop - 30 : stop, 1], **SEVEN_DIGITS)
    assert content["times"] == [moment.isoformat() for moment in panel.times.local[stop - 30 : stop]]
    whole = live.get("/v1/history", model="small", sensor="g1", steps=10_000)
    assert len(whole["values"]) == 600
    assert live.get("/v1/history", model="small", sensor="g1", until="2020-01-01")["values"] == []


@pytest.mark.parametrize("time", [None, "2024-01-22T10:00:00+01:00"])
def test_an_explanation_is_that_of_the_model(live, panel: Panel, candor_run: Path, time: str | None) -> None:
    question = {"model": "small", "sensor": "g1"} | ({} if time is None else {"time": time})
    content = live.post("/v1/explain", **question)
    schemas.ExplanationResponse.model_validate(content)
    found = load_run(candor_run).forecaster.explain(panel, "g1", time)
    assert content["time"] == found.time.isoformat()
    np.testing.assert_allclose(content["forecast"], found.forecast, **SEVEN_DIGITS)
    assert set(content["components"]) == {"background", "accumulation", "release", "shock"}
    for name, strengths in content["components"].items():
        np.testing.assert_allclose(strengths, found.components[name].raw_strength, rtol=1e-4, atol=1e-5)
        assert len(strengths) == len(content["patches"])
    assert set(content["gates"]) == {"accumulation", "release", "shock_current", "shock_following"}
    sizes = [one["size"] for one in content["contributions"]]
    assert sizes == sorted(sizes, reverse=True) and 0 < len(sizes) <= 200
    assert {one["sensor"] for one in content["contributions"]} == {"g0", "g2"}
    assert sum(peer["weight"] for peer in content["peers"]) == pytest.approx(1, abs=1e-4)
    for patch in content["fusion"]:
        assert patch["functional"] + patch["forward"] + patch["reverse"] == pytest.approx(1, abs=1e-4)


def test_an_explanation_can_be_of_sent_readings(live, panel: Panel, sendable) -> None:
    readings = sendable(panel.slice(400, 560))
    own = live.post("/v1/explain", model="small", sensor="g0", time=panel.times.local[540].isoformat())
    sent = live.post(
        "/v1/explain", model="small", sensor="g0", readings=readings, time=panel.times.local[540].isoformat()
    )
    np.testing.assert_allclose(sent["forecast"], own["forecast"], rtol=1e-5)
    last = live.post("/v1/explain", model="small", sensor="g0", readings=readings)
    assert last["time"] == panel.times.local[560].isoformat()


def test_readings_that_are_sent_continue_the_record(start, panel: Panel, candor_run: Path, sendable) -> None:
    service = start(candor_run)
    rows = np.array([[10.1, 9.9, np.nan, np.nan, 10.4], [10.3, np.nan, 8.8, np.nan, 10.0]])
    whole = longer(panel, rows)
    new = sendable(whole.slice(600, 602))
    receipt = service.post("/v1/readings", readings=new[:7])
    schemas.ReadingsResponse.model_validate(receipt)
    assert receipt == {"accepted": 7, "replaced": 0, "last_reading": "2024-01-26T02:00:00+01:00"}
    assert service.post("/v1/readings", readings=new)["replaced"] == 7
    made = load_run(candor_run).forecaster.predict_interval(whole)
    content = service.get("/v1/forecast/latest")
    for name in ("forecast", "lower", "upper"):
        np.testing.assert_allclose(table(content, name), getattr(made, name)[0], **SEVEN_DIGITS)
    assert content["last_reading"] == "2024-01-26T02:00:00+01:00"
    assert any("old" in finding["what"] for finding in content["findings"])  # it is not 2024 any more
    assert service.get("/v1/history", sensor="g2", steps=2)["values"] == [None, 8.8]
    assert service.get("/v1/models")["models"][0]["last_origin"] == "2024-01-26T03:00:00+01:00"


def test_a_reading_again_replaces_and_null_withdraws(start, panel: Panel, candor_run: Path) -> None:
    service = start(candor_run)
    last = {"time": panel.times.local[-1].isoformat(), "sensor": "g0"}
    assert service.post("/v1/readings", readings=[last | {"value": 7.5}])["replaced"] == 0
    assert service.get("/v1/history", sensor="g0", steps=1)["values"] == [7.5]
    assert service.post("/v1/readings", readings=[last | {"value": None}])["replaced"] == 1
    assert service.get("/v1/history", sensor="g0", steps=1)["values"] == [None]
    values = panel.values.copy()
    values[-1, 0] = np.nan
    made = load_run(candor_run).forecaster.predict(replace(panel, values=values))[0]
    np.testing.assert_allclose(table(service.get("/v1/forecast/latest")), made, **SEVEN_DIGITS)
    whole_row = [last | {"sensor": sensor, "value": None} for sensor in panel.sensor_ids]
    receipt = service.post("/v1/readings", readings=whole_row)
    assert receipt["last_reading"] == panel.times.local[-2].isoformat()
    latest, overview = service.get("/v1/forecast/latest"), service.get("/v1/overview")
    assert latest["forecasts"][0]["time"] == overview["time"] == last["time"]


def test_a_model_without_its_record_learns_of_the_present_from_clients(
    start, tmp_path: Path, panel: Panel, candor_run: Path, sendable
) -> None:
    run = tmp_path / "bare"
    shutil.copytree(candor_run, run)
    shutil.rmtree(run / "data")
    service = start(run)
    (summary,) = service.get("/v1/models")["models"]
    assert summary["last_reading"] is summary["first_origin"] is summary["last_origin"] is None
    status, error = service.refusal("GET", "/v1/forecast/latest")
    assert (status, error["code"]) == (400, "bad_input") and "POST" in error["hint"]
    recent = panel.slice(500, 600)
    made = load_run(candor_run).forecaster.predict(recent)[0]
    sent = service.post("/v1/forecast", readings=sendable(recent), now=NOW)
    np.testing.assert_allclose(table(sent), made, **SEVEN_DIGITS)
    service.post("/v1/readings", readings=sendable(recent))
    np.testing.assert_allclose(table(service.get("/v1/forecast/latest")), made, **SEVEN_DIGITS)
    assert len(service.get("/v1/history", sensor="g0", steps=1000)["values"]) == 100


def test_a_model_that_does_not_know_its_errors_forecasts_without_intervals(start, tmp_path: Path, panel: Panel) -> None:
    from made_runs import PROTOCOL

    from candor.forecasting import LastValue
    from candor.runs.run import save_run

    model = LastValue(history=24, horizon=6).fit(panel)
    save_run(tmp_path / "unsure", model, panel, PROTOCOL, is_catalogued=False)
    service = start(tmp_path / "unsure")
    content = service.get("/v1/forecast/latest")
    schemas.ForecastResponse.model_validate(content)
    assert content["coverage"] is None and {row["lower"] for row in content["forecasts"]} == {None}
    assert {row["width"] for row in service.get("/v1/overview")["sensors"]} == {None}
    past = service.get("/v1/forecast/at", time="2024-01-20")
    assert past["coverage"] is None and past["sensors"]["g0"]["upper"] == [None] * 6


def test_probes_answer(live) -> None:
    assert live.get("/healthz") == {"status": "ok"}
    assert live.get("/readyz") == {"status": "ready", "models": ["small", "plain"]}


def test_metrics_count_requests_batches_and_versions(live) -> None:
    live.get("/v1/forecast/latest", model="small")
    live.client.get("/v1/forecast/latest", params={"model": "nobody"})
    live.client.get("/no/such/place/1")
    text = live.client.get("/metrics").text
    version = live.get("/v1/models")["models"][0]["version"]
    for words in (
        'candor_requests_total{path="/v1/forecast/latest",status="200"}',
        'candor_requests_total{path="/v1/forecast/latest",status="404"}',
        'candor_requests_total{path="other",status="404"}',
        'candor_request_seconds_bucket{le="0.1",path="/v1/forecast/latest"}',
        'candor_queue_length{model="small"}',
        'candor_batch_windows_count{model="small"}',
        f'candor_model_info{{kind="candor",model="small",version="{version}"}} 1.0',
        'candor_reload_failures_total{model="small"} 0.0',
    ):
        assert words in text
    assert "/no/such/place" not in text


def test_the_account_of_a_forecast_is_that_of_the_run(start, panel: Panel, tmp_path: Path) -> None:
    run = make_run(tmp_path / "stages", "candor", PROTOCOL, stages=["account", "shared"], shared=TINY_STAGES)
    served, time = start(run), panel.times.local[540].isoformat()
    assert served.get("/v1/models")["models"][0]["explains"]
    told = served.post("/v1/explain", sensor="g1", time=time)
    forecaster = load_run(run).forecaster
    found = forecaster.break_down(panel, "g1", time)
    assert [part["kind"] for part in told["account"]["parts"]] == [part.kind for part in found.parts]
    for part, expected in zip(told["account"]["parts"], found.parts, strict=True):
        np.testing.assert_allclose(part["values"], expected.values, rtol=1e-4, atol=1e-4)
    total = np.sum([part["values"] for part in told["account"]["parts"]], axis=0)
    np.testing.assert_allclose(total, told["forecast"], rtol=1e-3)
    assert told["patches"] == told["peers"] == [] and told["gates"] is None
