"""`candor explain` on a small run: files, words on the screen, and plain refusals."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_readings import made_run
from made_runs import make_run
from tiny import PROTOCOL, TINY_STAGES

from candor.forecasting.contract import sample_panel
from candor.runs.fit import train_model

FIGURES = ("reconstruction", "embedding", "propagation", "roles", "operator", "edges", "relations", "fusion")
STORY = ("readings", "next", "past", "components", "arrivals", "peers", "branches")


@pytest.mark.slow
def test_a_run_is_explained_in_figures_numbers_and_pages(candor) -> None:
    run = made_run(Path("run"))
    shown = candor("explain", "run", "--sensor", "g2", "--time", "2024-01-07T12:00", "--windows", 6)
    assert shown.code == 0, shown.err
    folder = run.folder / "explained"
    names = [*FIGURES, *(f"forecast-{part}" for part in STORY)]
    expected = {f"{name}.{ending}" for name in names for ending in ("png", "svg", "csv")}
    assert {path.name for path in folder.iterdir()} == expected | {"index.html", "forecast.html", "summary.json"}
    summary = json.loads((folder / "summary.json").read_text())
    said = " ".join(shown.out.split())
    for finding in summary["findings"].values():
        assert finding["title"] in said
        for sentence in finding["sentences"]:
            assert sentence in said
    assert "index.html" in said and "forecast.html" in said
    forecast = pd.read_csv(folder / "forecast-readings.csv")
    assert forecast.time[forecast.forecast.first_valid_index()] == "2024-01-07T12:00:00+01:00"
    for name in names:
        assert (folder / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert len(pd.read_csv(folder / f"{name}.csv")) > 0


def test_other_models_and_wrong_questions_are_refused_in_plain_words(candor) -> None:
    make_run(Path("linear"))
    refused = candor("explain", "linear")
    assert refused.code == 2 and "a run of linear" in " ".join(refused.err.split())
    made_run(Path("run"))
    assert "no sensor called g9" in candor("explain", "run", "--sensor", "g9").err
    assert candor("explain", "run", "--windows", 1).code == 2
    assert candor("explain", "nowhere").code == 2
    assert "Traceback" not in refused.err and not Path("run/explained").exists()


def test_a_forecast_of_the_stages_is_told_in_a_sentence_and_in_parts_that_sum_to_it(candor) -> None:
    settings = {"stages": ["account", "shared"], "shared": TINY_STAGES}
    train_model(sample_panel(), PROTOCOL, "candor", settings, Path("run"), is_catalogued=False)
    shown = candor("explain", "run", "--sensor", "s1")
    assert shown.code == 0, shown.err
    folder = Path("run/explained")
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["sentence"] in " ".join(shown.out.split())
    parts = pd.read_csv(folder / "account.csv").drop(columns="time")
    changes = parts.pop("forecast") - summary["numbers"]["last"]
    np.testing.assert_allclose(parts.sum(axis=1), changes, atol=1e-4)
    names = {"account", "forecast", "training"}
    assert {path.stem for path in folder.glob("*.png")} == names
    figures = candor("explain", "run", "--figures", "drawn")
    assert figures.code == 0 and {path.stem for path in Path("drawn").glob("*.png")} == names
