"""Every forecaster knows how far it is off, from windows it neither learned from nor was chosen by."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.dataclasses import dataclass
from safetensors.numpy import load_file, save_file

from candor.core.errors import InputError, NotFittedError
from candor.data.alignment import align
from candor.data.panel import Panel, Sensor
from candor.data.protocol import Split, split_origins
from candor.data.times import TimeAxis
from candor.forecasting import HistoricalAverage, LastValue, Linear, forecasters, load_forecaster
from candor.forecasting import forecaster as module
from candor.forecasting.contract import sample_panel
from candor.forecasting.forecaster import REFUSE_UNKNOWN, halve_validation
from candor.forecasting.intervals import calibrate

HISTORY, HORIZON = 24, 6
SHARES = (0.6, 0.2, 0.2)
SPLIT = split_origins(600, HISTORY, HORIZON, "time", SHARES)


def targets_of(origins: np.ndarray, horizon: int) -> set[int]:
    return {int(row) for origin in origins for row in range(origin, origin + horizon)}


def with_values(panel: Panel, rows: slice, value: float) -> Panel:
    values = panel.values.copy()
    values[rows] = value
    return replace(panel, values=values)


@given(
    length=st.integers(60, 400),
    history=st.integers(1, 12),
    horizon=st.integers(1, 20),
    kind=st.sampled_from(["windows", "time"]),
    shares=st.sampled_from([SHARES, (0.7, 0.1, 0.2), (0.8, 0.2, 0.0), (0.5, 0.05, 0.45), (0.8, 0.0, 0.2)]),
)
def test_the_two_halves_of_validation_serve_two_masters(length, history, horizon, kind, shares) -> None:
    try:
        split = split_origins(length, history, horizon, kind, shares)
    except InputError:
        return
    choosing, telling = halve_validation(split, horizon)
    assert set(choosing) <= set(split.validation)
    assert set(telling) <= set(split.validation)
    assert not targets_of(telling, horizon) & targets_of(split.test, horizon)
    if len(split.validation):
        assert len(choosing)
    if not len(telling):
        # Nothing is set aside only where nothing could be: the windows reach into the test part, or there is one.
        assert len(choosing) == len(split.validation)
        blind = [o for o in split.validation if not len(split.test) or o + horizon <= split.test[0]]
        assert len(blind) <= 1
        return
    assert choosing[-1] < telling[0]
    shared = targets_of(choosing, horizon) & targets_of(telling, horizon)
    assert len(shared) < horizon
    if len(telling) > 2 * horizon:
        assert not shared
        assert len(telling) - horizon <= len(choosing) <= len(telling) + 1


@pytest.mark.parametrize("name", ["last-value", "seasonal-naive", "historical-average", "linear"])
def test_the_intervals_are_those_of_the_residuals_of_the_second_half(name: str) -> None:
    panel = sample_panel()
    model = forecasters.get(name)(history=HISTORY, horizon=HORIZON).fit(panel, SPLIT)
    middle = len(SPLIT.validation) - len(SPLIT.validation) // 2
    origins = SPLIT.validation[middle:]
    observed = np.stack([panel.values[origin : origin + HORIZON] for origin in origins])
    by_hand = calibrate(observed - model.predict(panel, origins))
    made = model.predict_interval(panel, SPLIT.test, 0.8)
    for end, expected in zip((made.lower, made.upper), by_hand.interval(made.forecast, 0.8), strict=True):
        np.testing.assert_array_equal(end, expected)
    np.testing.assert_array_equal(
        model.probability_below(panel, 10.3, SPLIT.test), by_hand.probability_below(made.forecast, 10.3)
    )


def noise(rows: int, sensors: int = 3) -> Panel:
    """Returns readings in which every moment is like any other, so that errors are exchangeable."""
    values = np.random.default_rng(1).gamma(2.0, size=(rows, sensors)).astype(np.float32)
    times = TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), rows)
    return Panel(values, times, tuple(Sensor(f"s{i}") for i in range(sensors)), name="noise")


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_hold_what_they_promise_where_every_moment_is_like_any_other(coverage: float) -> None:
    panel = noise(6000)
    split = split_origins(6000, 12, 4, "time", (0.3, 0.3, 0.4))
    model = HistoricalAverage(12, 4).fit(panel, split)
    made = model.predict_interval(panel, split.test, coverage)
    observed = panel.values[split.test[:, None] + np.arange(4)]
    held = ((made.lower <= observed) & (observed <= made.upper)).mean()
    assert held == pytest.approx(coverage, abs=0.025)
    below = model.probability_below(panel, 1.5, split.test)
    assert below.mean() == pytest.approx((observed < 1.5).mean(), abs=0.03)


def test_the_second_half_changes_intervals_and_no_forecast() -> None:
    panel = sample_panel()
    telling = halve_validation(SPLIT, HORIZON)[1]
    other = with_values(panel, slice(int(telling[0]), int(SPLIT.test[0])), 30.0)
    first, second = (Linear(HISTORY, HORIZON).fit(data, SPLIT) for data in (panel, other))
    one, two = (model.predict_interval(panel, SPLIT.test[30:]) for model in (first, second))
    np.testing.assert_array_equal(one.forecast, two.forecast)
    spoke = [0, 1, 2, 4]  # the other one was dead in training: its last value is as good as it gets
    assert (one.upper < two.upper)[..., spoke].all()


@dataclass(config=REFUSE_UNKNOWN)
class Listener(LastValue):
    """Remembers by which windows it was told to choose."""

    def _learn(self, panel, split, report):
        self.chosen_by_ = split
        return super()._learn(panel, split, report)


@dataclass(config=REFUSE_UNKNOWN)
class Demanding(Listener):
    """Asks for the whole validation part."""

    def selection(self, split: Split) -> Split:
        return split


def test_learning_gets_the_first_half_unless_it_asks_for_all() -> None:
    model = Listener(HISTORY, HORIZON).fit(sample_panel(), SPLIT)
    np.testing.assert_array_equal(model.chosen_by_.validation, halve_validation(SPLIT, HORIZON)[0])
    np.testing.assert_array_equal(model.chosen_by_.train, SPLIT.train)
    demanding = Demanding(HISTORY, HORIZON).fit(sample_panel(), SPLIT)
    np.testing.assert_array_equal(demanding.chosen_by_.validation, SPLIT.validation)
    assert demanding.calibration_ is not None


@pytest.mark.parametrize("case", ["no split", "no validation", "nothing measured"])
def test_without_anything_to_calibrate_on_there_are_forecasts_but_no_intervals(case: str, tmp_path: Path) -> None:
    panel, split = sample_panel(), SPLIT
    if case == "nothing measured":
        panel = with_values(panel, slice(int(SPLIT.validation[0]), int(SPLIT.test[0])), np.nan)
    if case == "no validation":
        split = split_origins(600, HISTORY, HORIZON, "time", (0.8, 0.0, 0.2))
    model = LastValue(HISTORY, HORIZON).fit(panel, None if case == "no split" else split)
    assert model.predict(panel).shape == (1, HORIZON, 5)
    model.save(tmp_path / "model")
    for one in (model, load_forecaster(tmp_path / "model")):
        assert one.calibration_ is None
        with pytest.raises(NotFittedError, match="how far its forecasts are off"):
            one.predict_interval(panel)
        with pytest.raises(InputError, match="validation"):
            one.probability_below(panel, 5.0)


def test_fitting_again_forgets_the_errors_of_before() -> None:
    model = LastValue(HISTORY, HORIZON).fit(sample_panel(), SPLIT)
    assert model.calibration_ is not None
    assert model.fit(sample_panel()).calibration_ is None


def test_batches_do_not_change_the_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = sample_panel()
    whole = LastValue(HISTORY, HORIZON).fit(panel, SPLIT).calibration_
    monkeypatch.setattr(module, "_NUMBERS_PER_BATCH", 1000)
    parts = LastValue(HISTORY, HORIZON).fit(panel, SPLIT).calibration_
    assert whole is not None and parts is not None
    np.testing.assert_array_equal(whole.residuals, parts.residuals)


def test_many_windows_are_thinned_evenly_before_they_are_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_RESIDUALS", 20 * HORIZON * 3)
    monkeypatch.setattr(module, "_LEAST_WINDOWS", 1)
    split = split_origins(600, HORIZON, HORIZON, "time", SHARES)
    # Readings that count the rows: the residuals of the last value are then 1, 2, .., and the spread can be seen.
    values = np.arange(600, dtype=np.float32)[:, None] ** 2 * np.ones((1, 3), np.float32)
    model = LastValue(HORIZON, HORIZON).fit(replace(noise(600), values=values), split)
    assert model.calibration_ is not None
    assert (model.calibration_.counts == 20).all()
    rows = (model.calibration_.residuals[0, 0] + 1) / 2  # o^2 - (o - 1)^2 = 2 o - 1
    telling = halve_validation(split, HORIZON)[1]
    assert rows[0] == telling[0]
    assert rows[-1] == telling[-1]
    assert np.ptp(np.diff(rows)) <= 1


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1.0, float("nan")])
def test_an_impossible_coverage_is_refused(coverage: float) -> None:
    model = LastValue(HISTORY, HORIZON).fit(sample_panel(), SPLIT)
    with pytest.raises(InputError, match="between 0 and 1"):
        model.predict_interval(sample_panel(), coverage=coverage)


def test_a_saved_model_needs_nothing_else_to_forecast_new_readings(tmp_path: Path) -> None:
    panel = sample_panel()
    Linear(HISTORY, HORIZON).fit(panel, SPLIT).save(tmp_path / "model")
    model = load_forecaster(tmp_path / "model")
    assert model.fingerprint_ == panel.fingerprint
    assert model.trained_on_.panel.sensors == panel.sensors
    assert np.nanmax(panel.values[: SPLIT.train_end, 4]) == np.float32(model.trained_on_.highest[4])
    assert np.isnan(model.trained_on_.highest[3])
    shuffled = panel.select(panel.sensor_ids[::-1])
    aligned = align(shuffled, model.trained_on_, HISTORY).panel
    np.testing.assert_array_equal(model.predict(aligned), model.predict(panel))


def damaged(folder: Path, how: str) -> None:
    path = folder / "calibration.safetensors"
    arrays = load_file(path)
    if how == "removed":
        path.unlink()
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif how == "of other sensors":
        save_file({name: np.ascontiguousarray(array[:, :3]) for name, array in arrays.items()}, path)
    elif how == "unsorted":
        save_file(arrays | {"residuals": np.ascontiguousarray(arrays["residuals"][..., ::-1])}, path)
    elif how == "unsaid":
        content = json.loads((folder / "model.json").read_text())
        del content["is_calibrated"]
        (folder / "model.json").write_text(json.dumps(content))


@pytest.mark.parametrize("how", ["removed", "cut", "of other sensors", "unsorted", "unsaid"])
def test_a_damaged_calibration_is_refused_in_plain_words(tmp_path: Path, how: str) -> None:
    LastValue(HISTORY, HORIZON).fit(sample_panel(), SPLIT).save(tmp_path / "model")
    damaged(tmp_path / "model", how)
    with pytest.raises(InputError, match="damaged"):
        load_forecaster(tmp_path / "model")
