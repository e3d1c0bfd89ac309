"""The model that comes with the package: whole, small, and enough for a look at the past."""

import numpy as np

from candor.data.catalog import load_dataset
from candor.runs.bundle import demo_bundle, open_bundle
from candor.runs.bundle.card import model_card
from candor.runs.run import load_run, model_checksum
from candor.runs.summary import summarise_run


def test_it_opens_and_forecasts_every_station_with_intervals() -> None:
    run = open_bundle(demo_bundle())
    made = run.forecaster.predict_interval(run.task().panel)
    assert made.forecast.shape == (1, 14, 11)
    assert ((made.lower <= made.forecast) & (made.forecast <= made.upper)).all()
    assert (made.forecast > 0).all() and (made.forecast < 25).all()  # mg/L of oxygen in a river in March


def test_its_record_is_the_one_that_comes_with_the_package() -> None:
    run = load_run(demo_bundle())
    assert run.record.fingerprint == load_dataset("klamath-daily").fingerprint
    panel, origins = run.task().panel, run.task().panel.times.length - np.arange(14, 14 + 120)
    assert panel.mask[origins].mean() > 0.9  # there is something to compare forecasts with
    forecast = run.forecaster.predict(panel, origins)
    error = np.nanmean(np.abs(forecast[:, 0] - panel.values[origins]))
    naive = np.nanmean(np.abs(panel.values[origins - 1] - panel.values[origins]))
    assert error < 1.1 * naive


def test_its_scores_are_its_own() -> None:
    summary = summarise_run(demo_bundle())
    assert summary.evaluation is not None and summary.trouble == ""
    assert summary.evaluation["model_sha256"] == model_checksum(demo_bundle())
    card = (demo_bundle() / "README.md").read_text(encoding="utf-8")
    assert f"| all |  | {summary.score('mae'):.3f} |" in card
    assert "public domain" in card
    run = load_run(demo_bundle())  # which was of the catalogue before its whole record went along
    record = run.record.model_copy(update={"is_catalogued": True})
    assert card == model_card(record, run.forecaster, run.task(), summary.evaluation)


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in demo_bundle().rglob("*") if path.is_file()) < 1_000_000
