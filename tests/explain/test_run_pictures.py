"""The figures of a run show what its model says when it is asked in another way."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny import PROTOCOL, tiny_recipe

from candor.cli import run as candor
from candor.core.errors import InputError
from candor.explain.analyses.fusion import fusion_weights
from candor.explain.analyses.operator import mean_edge_weights, picture_edges
from candor.explain.forecast import picture_components, picture_forecast
from candor.explain.overview import Learned, find_learned
from candor.explain.run_pictures import run_pictures
from candor.forecasting.candor import Candor
from candor.forecasting.contract import sample_panel
from candor.runs.fit import train_model
from candor.runs.run import Run

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


def test_means_over_windows_are_those_of_what_explanations_say(model: Candor) -> None:
    panel = sample_panel()
    fusion, weights = fusion_weights(model, panel, ORIGINS), mean_edge_weights(model, panel, ORIGINS)
    for column, sensor in enumerate(panel.sensor_ids):
        found = [model.explain(panel, sensor, panel.times.local[origin]) for origin in ORIGINS]
        for window, one in enumerate(found):
            for branch, shares in fusion.weights.items():
                expected = [getattr(patch, branch) for patch in one.fusion]
                np.testing.assert_allclose(shares[window, column], expected, rtol=1e-5)
        for direction, edges in weights.items():
            for sender, receiver, weight in zip(edges.sender, edges.receiver, edges.weight, strict=True):
                if receiver == column:
                    heard = [
                        contribution.weight
                        for one in found
                        for contribution in one.contributions
                        if (contribution.direction, contribution.sensor) == (direction, panel.sensor_ids[sender])
                    ]
                    assert weight == pytest.approx(np.mean(heard), rel=1e-5)
    assert picture_edges(weights, panel, 3).places is None  # of which not all are known


def test_target_patches_cover_the_horizon_in_units_of_time(run: Run, model: Candor) -> None:
    learned: Learned = find_learned(model, run.task())
    assert learned.ahead_unit == "hours" and learned.ahead[-1] <= 4
    assert all(0 < middle <= 4 for middle in learned.ahead)
    np.testing.assert_allclose(sum(learned.fusion.values()), 1, rtol=1e-5)
    np.testing.assert_allclose(sum(learned.usual_fusion.values()), 1, rtol=1e-5)


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
    picture = picture_components(model.explain(panel, "s0", panel.times.local[400]), "s0")
    assert picture is not None
    assert list(picture.strengths) == ["background", "accumulation", "release", "shock"]
    assert len(picture.gates) == 4
    assert picture.ends[-1] + panel.times.interval == panel.times.local[400]


@pytest.mark.usefixtures("no_pictures")
def test_the_command_writes_the_figures_alone(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "figures"
    command = ["explain", str(run.folder), "--figures", str(folder)]
    assert candor([*command, "--sensor", "s1", "--time", "2024-01-06T12:00"]) == 0
    written = sorted(path.name for path in folder.iterdir())
    assert written == sorted(f"{name}.{ending}" for name in NAMES for ending in ("png", "svg", "csv"))
    assert "6 figures" in capsys.readouterr().err
    table = pd.read_csv(folder / "forecast.csv")
    assert table.time[table.forecast.first_valid_index()] == "2024-01-06T12:00:00+01:00"
    lines = [json.loads(line) for line in (run.folder / "training" / "metrics.jsonl").read_text().splitlines()]
    curve = pd.read_csv(folder / "training.csv")
    assert curve.validation_error.tolist() == pytest.approx([line["validation_error"] for line in lines])


def test_what_cannot_be_shown_is_refused(run: Run) -> None:
    with pytest.raises(InputError, match="no sensor called s9"):
        run_pictures(run, sensor="s9")
    with pytest.raises(InputError, match="12 steps before it"):
        run_pictures(run, time="1999-01-01")
