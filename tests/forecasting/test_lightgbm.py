"""LightGBM: what it learns, that it reads its neighbours, and that it keeps to a budget."""

from dataclasses import replace
from importlib import import_module
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from candor.data.panel import Edges
from candor.data.protocol import Protocol, make_task
from candor.forecasting import LastValue, forecasters
from candor.forecasting.contract import sample_panel
from candor.runs import evaluate

pytest.importorskip("lightgbm", reason="the extra `trees` is not installed")


def test_it_learns_a_daily_rhythm_that_the_last_reading_does_not_know() -> None:
    task = make_task(sample_panel(), Protocol(history=12, horizon=6))
    sizes = {"trees": 60, "leaves": 15, "rows": 8000}
    ours = forecasters.get("lightgbm")(history=12, horizon=6, sizes=sizes).fit(task.panel, task.split)
    simple = LastValue(history=12, horizon=6).fit(task.panel, task.split)
    assert evaluate(ours, task).overall()["mae"] < 0.6 * evaluate(simple, task).overall()["mae"]


def test_a_sensor_downstream_follows_the_one_upstream() -> None:
    panel = sample_panel()
    chance = np.random.default_rng(0)
    values = np.zeros_like(panel.values)
    values[:, 0] = chance.standard_normal(len(values))
    values[1:, 1] = values[:-1, 0]  # what the first reports, one step later; nothing else tells of it
    task = make_task(replace(panel, values=values), Protocol(history=3, horizon=1))
    sizes = {"trees": 100, "leaves": 31, "rows": 20_000}
    ours = forecasters.get("lightgbm")(history=3, horizon=1, sizes=sizes).fit(task.panel, task.split)
    forecast = ours.predict(task.panel, task.split.test)[:, 0, 1]
    assert np.corrcoef(forecast, task.panel.values[task.split.test, 1])[0, 1] > 0.9


@pytest.mark.parametrize("scale", [1.0, 1e-36])  # edges of nearly the same length are all that light
def test_what_surrounds_a_sensor_are_its_senders_by_weight_and_itself_only_where_there_are_none(scale: float) -> None:
    edges = Edges(np.array([0, 2, 1]), np.array([1, 1, 1]), weight=scale * np.array([1.0, 3.0, 9.0]))
    panel = replace(sample_panel(), edges=edges)
    around = import_module("candor.forecasting.lightgbm")._neighbours(panel)
    expected = np.eye(len(panel.sensors), dtype=np.float32)
    expected[1] = 0
    expected[1, [0, 2]] = 0.25, 0.75
    np.testing.assert_allclose(around, expected, rtol=1e-6)


def test_it_is_judged_by_what_it_learns_from_where_validation_holds_no_reading() -> None:
    task = make_task(sample_panel(), Protocol(history=6, horizon=2))
    values = task.panel.values.copy()
    values[task.split.validation[0] : task.split.validation[-1] + 2] = np.nan
    sizes = {"trees": 5, "leaves": 4, "rows": 500}
    ours = forecasters.get("lightgbm")(history=6, horizon=2, sizes=sizes)
    ours.fit(replace(task.panel, values=values), task.split)
    assert np.isfinite(ours.predict(task.panel, task.split.test)).all()


def test_a_budget_ends_growth_with_the_forest_that_so_many_trees_make(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=count().__next__)  # a second passes whenever somebody looks at it
    for module in ("lightgbm", "forecaster"):
        monkeypatch.setattr(f"candor.forecasting.{module}.time", clock)
    task = make_task(sample_panel(), Protocol(history=6, horizon=2))

    def fit(trees: int, budget_seconds: float | None = None) -> np.ndarray:
        sizes = {"trees": trees, "leaves": 4, "rows": 500, "rate": 0.05}
        ours = forecasters.get("lightgbm")(history=6, horizon=2, sizes=sizes)
        return ours.fit(task.panel, task.split, budget_seconds=budget_seconds).predict(task.panel, task.split.test)

    whole = fit(30)
    for seconds, trees in ((0, 1), (7, 7)):
        stopped = fit(30, seconds)
        assert np.array_equal(stopped, fit(trees)) and not np.array_equal(stopped, whole)
    assert np.array_equal(fit(30, 1000), whole)


def test_it_tells_how_many_trees_are_grown() -> None:
    told: list[float] = []
    ours = forecasters.get("lightgbm")(history=6, horizon=2, sizes={"trees": 4, "leaves": 4, "rows": 500})
    ours.fit(sample_panel(), report=lambda what, share: told.append(share) if "growing" in what and share else None)
    assert told == [0.25, 0.5, 0.75, 1.0]
