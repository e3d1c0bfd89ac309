"""The figures of a run show what its model says when it is asked in another way."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_runs import make_run
from tiny import PROTOCOL, tiny_recipe

from candor.cli import run as candor
from candor.core.errors import InputError
from candor.data.protocol import Split
from candor.forecasting.candor import Candor
from candor.forecasting.contract import sample_panel
from candor.render.figures.runs import draw_run, picture_components, picture_edges, picture_forecast, picture_fusion
from candor.render.figures.survey import Survey, choose_windows, survey
from candor.runs.fit import train_model
from candor.runs.run import Run, load_run

NAMES = ("forecast", "forecast-next", "components", "fusion", "edges", "training")
ORIGINS = np.array([300, 407, 520])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = {"recipe": tiny_recipe(epochs=2)}
    folder = tmp_path_factory.mktemp("runs") / "candor"
    return train_model(sample_panel().slice(0, 160), PROTOCOL, "candor", settings, folder, is_catalogued=False)


@pytest.fixture(scope="module")
def model(run: Run) -> Candor:
    assert isinstance(run.forecaster, Candor)
    return run.forecaster


@pytest.fixture(scope="module")
def surveyed(model: Candor) -> Survey:
    return survey(model, sample_panel(), ORIGINS)


def test_a_survey_is_the_mean_of_what_explanations_say(model: Candor, surveyed: Survey) -> None:
    panel = sample_panel()
    for column, sensor in enumerate(panel.sensor_ids):
        found = [model.explain(panel, sensor, panel.times.local[origin]) for origin in ORIGINS]
        for window, one in enumerate(found):
            for branch, weights in surveyed.fusion.items():
                expected = [getattr(patch, branch) for patch in one.fusion]
                np.testing.assert_allclose(weights[window, column], expected, rtol=1e-5)
        for direction, edges in surveyed.edges.items():
            for sender, receiver, weight in zip(edges.sender, edges.receiver, edges.weight, strict=True):
                if receiver == column:
                    heard = [
                        contribution.weight
                        for one in found
                        for contribution in one.contributions
                        if (contribution.direction, contribution.sensor) == (direction, panel.sensor_ids[sender])
                    ]
                    assert weight == pytest.approx(np.mean(heard), rel=1e-5)
    assert surveyed.windows == 3


def test_the_picture_of_fusion_covers_the_horizon_in_units_of_time(surveyed: Survey) -> None:
    picture = picture_fusion(surveyed, sample_panel())
    assert (picture.ahead_unit, picture.horizon) == ("hours", 4)
    assert all(0 < middle <= 4 for middle in picture.ahead)
    np.testing.assert_allclose(sum(picture.weights.values()), 1, rtol=1e-5)


def test_edges_need_all_places_for_a_map(surveyed: Survey) -> None:
    assert picture_edges(surveyed, sample_panel()).places is None


def test_the_picture_of_a_forecast_is_what_the_model_predicts_and_the_panel_holds(model: Candor) -> None:
    panel, origin, column = sample_panel(), 400, 1
    picture = picture_forecast(model, panel, column, origin)
    made = model.predict_interval(panel, np.array([origin]))
    for name in ("forecast", "lower", "upper"):
        np.testing.assert_array_equal(getattr(picture, name), getattr(made, name)[0, :, column])
    readings = pd.Series(panel.values[:, column], index=panel.times.local)
    np.testing.assert_array_equal(picture.past, readings[picture.past_times])
    assert picture.happened is not None
    np.testing.assert_array_equal(picture.happened, readings[picture.times])
    assert picture.past_times[-1] + panel.times.interval == picture.times[0] == panel.times.local[origin]
    ahead = picture_forecast(model, panel, column, panel.times.length)
    assert ahead.happened is not None and np.isnan(ahead.happened).all()
    assert ahead.times[0] == panel.times.end


def test_the_picture_of_components_has_them_all_by_patch(model: Candor) -> None:
    panel = sample_panel()
    picture = picture_components(model, panel, 0, 400)
    assert list(picture.strengths) == ["background", "accumulation", "release", "shock"]
    assert len(picture.gates) == 4
    assert picture.ends[-1] + panel.times.interval == panel.times.local[400]


def test_windows_are_spread_over_the_test_part_or_the_last_part_there_is() -> None:
    empty, some = np.empty(0, np.int64), np.arange(1000)
    chosen = choose_windows(Split(some, some + 1000, some + 2000, 3000), 4000)
    assert (len(chosen), chosen[0], chosen[-1]) == (200, 2000, 2999)
    assert np.ptp(np.diff(chosen)) <= 1
    assert choose_windows(Split(some, some + 1000, empty, 3000), 4000)[0] == 1000
    assert choose_windows(Split(empty, empty, empty, 0), 4000).tolist() == [4000]


@pytest.mark.usefixtures("no_pictures")
def test_the_command_writes_all_figures_into_the_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert candor(["plot", str(run.folder), "--sensor", "s1", "--time", "2024-01-06T12:00"]) == 0
    written = sorted(path.name for path in (run.folder / "figures").iterdir())
    assert written == sorted(f"{name}.{ending}" for name in NAMES for ending in ("png", "svg", "csv"))
    assert "6 figures" in capsys.readouterr().err
    table = pd.read_csv(run.folder / "figures" / "forecast.csv")
    assert table.time[table.forecast.first_valid_index()] == "2024-01-06T12:00:00+01:00"
    lines = [json.loads(line) for line in (run.folder / "training" / "metrics.jsonl").read_text().splitlines()]
    curve = pd.read_csv(run.folder / "figures" / "training.csv")
    assert curve.validation_error.tolist() == pytest.approx([line["validation_error"] for line in lines])


def test_what_cannot_be_drawn_is_refused_before_anything_is_written(run: Run, tmp_path: Path) -> None:
    simple = load_run(make_run(tmp_path / "linear"))
    with pytest.raises(InputError, match="a run of linear"):
        draw_run(simple, tmp_path / "figures")
    with pytest.raises(InputError, match="no sensor called s9"):
        draw_run(run, tmp_path / "figures", sensor="s9")
    with pytest.raises(InputError, match="12 steps before it"):
        draw_run(run, tmp_path / "figures", time="1999-01-01")
    assert not (tmp_path / "figures").exists()
