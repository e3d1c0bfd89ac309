"""A rolling origin knows at every step what was known by then, and nothing else."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from candor.core.errors import InputError
from candor.data.panel import Panel
from candor.data.protocol import Protocol, Task, make_task, split_origins
from candor.forecasting import HistoricalAverage, LastValue, Linear
from candor.forecasting import forecaster as module
from candor.forecasting.contract import sample_panel
from candor.runs import Pace, backtest, evaluate
from candor.runs.backtesting import Stretch, walk

PROTOCOL = Protocol(history=24, horizon=6)


def fitted(task: Task) -> Linear:
    return Linear(24, 6).fit(task.panel, task.split)


def changed_from(panel: Panel, row: int) -> Panel:
    """Returns the panel with other readings from a row on, and readings where there were none."""
    values = panel.values.copy()
    values[row:] = np.where(np.isnan(values[row:]), 50.0, values[row:] + 3.0)
    return replace(panel, values=values)


def joined(stretches: Sequence[Stretch]) -> dict[str, np.ndarray]:
    parts = [stretch.intervals for stretch in stretches if stretch.intervals is not None]
    ends = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ("forecast", "lower", "upper")}
    return ends | {"origins": np.concatenate([stretch.origins for stretch in stretches])}


@pytest.mark.parametrize("kind", ["time", "windows"])
@pytest.mark.parametrize("refit", [None, 7])
@pytest.mark.parametrize("is_adaptive", [True, False])
def test_changing_readings_from_a_row_on_changes_nothing_before_it(kind, refit, is_adaptive) -> None:
    task = make_task(sample_panel(), PROTOCOL.model_copy(update={"split": kind}))
    row = int(task.split.test[len(task.split.test) // 2])
    other = make_task(changed_from(sample_panel(), row), task.protocol)
    pace = Pace(every=3, refit=refit, is_adaptive=is_adaptive)
    one, two = (joined(list(walk(fitted(each), each, "test", pace))) for each in (task, other))
    np.testing.assert_array_equal(one["origins"], two["origins"])
    before = one["origins"] <= row
    assert 10 < before.sum() < len(before) - 10
    for name in ("forecast", "lower", "upper"):
        np.testing.assert_array_equal(one[name][before], two[name][before], f"{name} saw what was to come")
        assert (one[name][~before] != two[name][~before]).any(), f"{name} ignores what it could know"


def test_a_refit_learns_from_all_rows_before_its_forecast_and_no_other() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    model = fitted(task)
    stretches = list(walk(model, task, "test", Pace(every=2, refit=10)))
    assert [stretch.refits for stretch in stretches] == list(range(len(stretches)))
    np.testing.assert_array_equal(stretches[0].forecast, model.predict(task.panel, stretches[0].origins))
    for stretch in stretches[1:]:
        first = int(stretch.origins[0])
        known = task.panel.slice(0, first)
        split = split_origins(first, 24, 6, "time", (0.75, 0.25, 0.0))
        again = Linear(24, 6).fit(known, split).predict_interval(task.panel, stretch.origins)
        assert stretch.intervals is not None
        np.testing.assert_array_equal(stretch.forecast, again.forecast)
        np.testing.assert_array_equal(stretch.intervals.upper, again.upper)


def test_a_refit_is_given_no_rows_from_its_forecast_on(monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(sample_panel(), PROTOCOL)
    model, given, learn = fitted(task), [], Linear._learn

    def remember(self, panel, split, report):
        given.append(panel.times.length)
        return learn(self, panel, split, report)

    monkeypatch.setattr(Linear, "_learn", remember)
    stretches = list(walk(model, task, "test", Pace(refit=30)))
    assert given == [int(stretch.origins[0]) for stretch in stretches[1:]]
    assert len(stretches) == 4


def test_without_refits_and_at_every_step_it_is_the_evaluation() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    model = fitted(task)
    rolled, judged = backtest(model, task).evaluation, evaluate(model, task)
    assert rolled.overall() == pytest.approx(judged.overall(), nan_ok=True)
    assert rolled.intervals is not None and judged.intervals is not None
    assert rolled.intervals.scores() == judged.intervals.scores()
    assert rolled.windows == judged.windows


def test_every_kth_origin_is_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(sample_panel(), PROTOCOL)
    model = fitted(task)
    rolled = backtest(model, task, pace=Pace(every=5)).evaluation
    origins = task.split.test[::5]
    error = model.predict(task.panel, origins) - task.panel.values[origins[:, None] + np.arange(6)]
    assert rolled.windows == len(origins)
    assert rolled.overall()["mae"] == pytest.approx(np.nanmean(np.abs(error)), rel=1e-5)


@pytest.mark.parametrize("is_adaptive", [True, False])
def test_batches_make_no_difference(monkeypatch: pytest.MonkeyPatch, is_adaptive: bool) -> None:
    task = make_task(sample_panel(), PROTOCOL)
    model, pace = fitted(task), Pace(every=2, refit=20, is_adaptive=is_adaptive)
    whole = joined(list(walk(model, task, "test", pace)))
    monkeypatch.setattr(module, "_NUMBERS_PER_BATCH", 3 * 30 * 5)
    parts = list(walk(model, task, "test", pace))
    assert max(len(stretch.origins) for stretch in parts) == 3
    for name, array in joined(parts).items():
        np.testing.assert_allclose(array, whole[name], rtol=1e-5)


def test_adaptive_intervals_follow_errors_that_grow() -> None:
    chance = np.random.default_rng(3)
    spread = np.where(np.arange(4000) < 2400, 1.0, 3.0)[:, None]
    values = (spread * chance.standard_normal((4000, 5))).astype(np.float32)
    panel = replace(sample_panel(), values=values, times=replace(sample_panel().times, length=4000))
    task = make_task(panel, Protocol(history=2, horizon=2, shares=(0.3, 0.3, 0.4)))
    model = HistoricalAverage(2, 2).fit(task.panel, task.split)
    paces = {"fixed": Pace(), "adaptive": Pace(is_adaptive=True), "refitted": Pace(is_adaptive=True, refit=300)}
    held = {}
    for name, pace in paces.items():
        intervals = backtest(model, task, pace=pace).evaluation.intervals
        assert intervals is not None
        held[name] = intervals.scores()["coverage"]
    assert held["fixed"] < 0.55
    # They reach no further than the residuals of calmer times did, so not all of it comes back before a refit.
    assert held["fixed"] + 0.1 < held["adaptive"] < 0.8
    assert held["refitted"] > held["adaptive"] + 0.05


def test_the_model_that_is_given_is_left_alone() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    model = fitted(task)
    before = {name: array.copy() for name, array in model.state_.items()}
    backtest(model, task, pace=Pace(every=4, refit=5, is_adaptive=True))
    for name, array in before.items():
        np.testing.assert_array_equal(model.state_[name], array)


def test_a_model_calibrated_on_validation_has_no_intervals_there_before_it_is_refitted() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    assert backtest(fitted(task), task, "validation").evaluation.intervals is None
    rolled = backtest(fitted(task), task, "validation", Pace(refit=40))
    assert rolled.evaluation.intervals is not None
    counted = rolled.evaluation.intervals.scores()["count"]
    assert 0 < counted < rolled.evaluation.overall()["count"]
    assert rolled.to_json()["intervals"]["overall"]["count"] == counted


def test_json_states_the_pace_and_when_the_model_learned_anew() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    rolled = backtest(fitted(task), task, pace=Pace(every=10, refit=4, is_adaptive=True))
    content = json.loads(json.dumps(rolled.to_json(), allow_nan=False))
    assert content["backtest"]["every"] == 10
    assert content["backtest"]["refit_after"] == 4
    expected = [task.panel.times.local[row].isoformat() for row in task.split.test[::10][4::4]]
    assert content["backtest"]["refits"] == expected
    assert "adaptive" in content["intervals"]["method"]
    assert "borrowing" not in content["intervals"]  # each model has a calibration of its own
    assert backtest(fitted(task), task).to_json()["intervals"]["borrowing"]["cells"] == 30
    assert content["protocol"] == PROTOCOL.model_dump(mode="json")
    assert content["windows"] == len(task.split.test[::10])


def test_progress_ends_at_one_and_names_the_refits() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    heard: list[tuple[str, float | None]] = []
    backtest(fitted(task), task, pace=Pace(every=10, refit=4), report=lambda *said: heard.append(said))
    assert heard[-1] == ("backtesting linear | backtesting linear, model 3 of 3", 1.0)
    assert any(what.startswith("backtesting linear | refit 2 of 2: fitting") for what, _ in heard)
    shares = [share for _, share in heard if share is not None]
    assert len(shares) == len(heard) and shares == sorted(shares)  # of the whole
    heard.clear()
    backtest(fitted(task), task, report=lambda *said: heard.append(said))
    assert heard[-1] == ("backtesting linear", 1.0)


@pytest.mark.parametrize("pace", [{"every": 0}, {"refit": 0}, {"coverage": 1.0}, {"coverage": float("nan")}])
def test_an_impossible_pace_is_refused(pace: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Pace(**pace)  # type: ignore[arg-type]


def test_training_windows_and_empty_parts_are_refused() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    with pytest.raises(InputError, match="train part"):
        backtest(fitted(task), task, "train")
    no_test = make_task(sample_panel(), PROTOCOL.model_copy(update={"shares": (0.8, 0.2, 0.0)}))
    with pytest.raises(InputError, match="no windows"):
        backtest(LastValue(24, 6).fit(no_test.panel, no_test.split), no_test)
