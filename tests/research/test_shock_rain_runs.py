"""Runs against rain: the activity is what explanations say, gauges serve the stations they are named for."""

import json
import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_runs import make_run
from pictures import without_paint
from tiny import tiny_recipe

from candor.cli import run as candor
from candor.core.errors import InputError
from candor.core.progress import silent
from candor.core.versions import versions
from candor.data.panel import Panel
from candor.data.protocol import Protocol
from candor.data.synthetic import generate_river
from candor.explain.forecast import find_past, look_into
from candor.render.figures.shock_rain import write_comparison
from candor.render.paper.studies import make_shock_rain
from candor.research.shock_rain_runs import LagChoice, RainChoice, RainComparison, activity_of, compare_runs, rain_of
from candor.runs.bundle import write_bundle
from candor.runs.fit import train_model
from candor.runs.run import load_run

LAGS = LagChoice(longest=8, step=2, shifts=200)


def river() -> Panel:
    return generate_river(sensors=4, steps=160, seed=19)[0]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run and its copy under another seed."""
    base, settings = tmp_path_factory.mktemp("runs"), {"recipe": tiny_recipe(epochs=1)}
    protocol = Protocol(history=12, horizon=4, shares=(0.6, 0.25, 0.15))
    train_model(river(), protocol, "candor", settings, base / "first", is_catalogued=False)
    shutil.copytree(base / "first", base / "second")
    record = json.loads((base / "second" / "run.json").read_text())
    (base / "second" / "run.json").write_text(json.dumps(record | {"seed": 1}))
    return [base / "first", base / "second"]


@pytest.fixture(scope="module")
def compared(folders: list[Path]) -> RainComparison:
    """Both of them against the rain that comes with the river."""
    return compare_runs(folders, lags=LAGS)


@pytest.fixture(scope="module")
def wet(folders: list[Path]) -> Path:
    """A run that reads rain (RainAdd)."""
    return train_wet(folders[0].parent / "added", "added")


@pytest.fixture(scope="module", params=["unread", "added"])
def asked(request: pytest.FixtureRequest, folders: list[Path]) -> Path:
    """A run that is given no rain, and one that reads it."""
    return folders[0] if request.param == "unread" else request.getfixturevalue("wet")


def train_wet(folder: Path, rain: str) -> Path:
    recipe = tiny_recipe(epochs=1)
    recipe["model"] = recipe["model"] | {"rain": rain}
    protocol = Protocol(history=12, horizon=4, shares=(0.6, 0.25, 0.15))
    train_model(river(), protocol, "candor", {"recipe": recipe}, folder, is_catalogued=False)
    return folder


def test_activity_is_the_mean_of_the_gates_that_explanations_show(asked: Path) -> None:
    run = load_run(asked)
    model, task = run.candor(), run.task()
    seen: dict[int, list[float]] = {}
    for origin in task.split.test.tolist():
        found = model.explain(task.panel, task.panel.sensor_ids[2], task.panel.times.local[origin])
        both = (found.gates.shock_current + found.gates.shock_following) / 2
        for patch, activity in zip(found.patches, both, strict=True):
            for row in range(task.panel.times.index_of(patch.start), task.panel.times.index_of(patch.end) + 1):
                seen.setdefault(row, []).append(float(activity))
    activities = activity_of(run, task)
    expected = [np.mean(seen[row]) if row in seen else np.nan for row in range(len(activities))]
    np.testing.assert_allclose(activities[:, 2], expected, atol=1e-6)
    covered = np.flatnonzero(~np.isnan(activities[:, 0]))
    assert covered[0] == task.split.test[0] - 12 and covered[-1] == task.split.test[-1] - 1


def test_a_run_whose_shocks_are_the_rain_has_no_gates_to_ask(tmp_path: Path) -> None:
    run = load_run(train_wet(tmp_path / "alone", "alone"))
    with pytest.raises(InputError, match="no shock gates"):
        activity_of(run, run.task())
    model = run.candor()
    past = find_past(look_into(model, run.task().panel, 0, 150))
    assert any("no shock gates" in sentence for sentence in past.sentences)
    assert list(past.pictures["forecast-components"].gates) == ["accumulation", "release"]


@pytest.mark.usefixtures("no_pictures")
def test_a_file_of_gauges_gives_what_the_covariate_gives(
    folders: list[Path], compared: RainComparison, tmp_path: Path
) -> None:
    panel = river()
    times = panel.times.local.tz_localize(None)
    table = pd.DataFrame(panel.covariates["rain"].values[:, ::-1], columns=["w", "x", "y", "z"])
    table.insert(0, "time", times)
    table.iloc[20:].to_csv(tmp_path / "rain.csv", index=False)  # a gauge may begin later than the readings
    names = dict(zip(panel.sensor_ids, ("z", "y", "x", "w"), strict=True))
    pd.DataFrame({"Gauge": names.values(), "Station": names.keys()}).to_csv(tmp_path / "gauges.csv", index=False)
    choice = RainChoice(rainfall=tmp_path / "rain.csv", gauges=tmp_path / "gauges.csv")
    by_file = compare_runs(folders, choice, LAGS)
    assert [row["gauge"] for row in by_file.content["stations"]] == ["z", "y", "x", "w"] and by_file.content[
        "steps"
    ] < 60
    np.testing.assert_allclose(by_file.null, compared.null, atol=1e-12)
    assert np.isnan(rain_of(panel, choice)[0][:20]).all()
    files = ["--rain", str(tmp_path / "rain.csv"), "--gauges", str(tmp_path / "gauges.csv")]
    options = ["--longest-lag", "8", "--shifts", "200", "--out", str(tmp_path / "out")]
    assert candor(["shock-rain", *map(str, folders), *files, *options]) == 0
    content = json.loads((tmp_path / "out" / "shock-rain.json").read_text())
    assert {key: content[key] for key in content if key not in ("made", "versions")} == json.loads(
        json.dumps(by_file.content)
    )


def test_the_command_writes_table_json_and_figure(folders: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--longest-lag", "8", "--shifts", "200", "--out", str(folders[0].parent / "out")]
    with without_paint(but=("shock-rain.png",)):
        assert candor(["shock-rain", *map(str, folders), *options]) == 0
    shown = capsys.readouterr().out
    heard: list[tuple[str, float | None]] = []
    expected = compare_runs(folders, lags=LAGS, report=lambda *said: heard.append(said))
    words, shares = zip(*heard[:-1], strict=True)  # the rain is turned last
    assert words[0] == "reading all runs | run 1 of 2: reading the shock gates" and "run 2 of 2" in words[-1]
    assert list(shares) == sorted(shares) and shares[0] <= 0.5 and shares[-1] == 1.0
    assert f"{expected.content['rho']:.4f}" in shown and "river-1 by rain of river-1" in shown
    out = folders[0].parent / "out"
    content = json.loads((out / "shock-rain.json").read_text())
    assert content["versions"] == versions() and datetime.fromisoformat(content["made"]).tzinfo is not None
    assert {key: content[key] for key in content if key not in ("made", "versions")} == json.loads(
        json.dumps(expected.content)
    )
    assert [row["seed"] for row in content["checkpoints"]] == [0, 1] and content["lags_hours"][0] == -8
    table = pd.read_csv(out / "shock-rain.csv")
    pd.testing.assert_frame_equal(table, expected.curves)
    assert (out / "shock-rain.png").stat().st_size > 10_000 and (out / "shock-rain.svg").exists()
    shifts = pd.read_csv(out / "shock-rain-shifts.csv")["largest_correlation"]
    assert (1 + (shifts >= expected.content["rho"] - 1e-9).sum()) / (1 + len(shifts)) == content["p"]


@pytest.mark.usefixtures("no_pictures")
def test_a_bundle_is_asked_as_its_run_is_and_stays_as_it_was(folders: list[Path], tmp_path: Path) -> None:
    bundle = write_bundle(load_run(folders[0]), tmp_path / "given", "all")
    before = {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()}
    assert candor(["shock-rain", str(bundle), "--longest-lag", "8", "--shifts", "20"]) == 0
    assert {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()} == before
    content = json.loads((tmp_path / "given-results" / "figures" / "shock-rain.json").read_text())
    assert content["rho"] == pytest.approx(compare_runs(folders[:1], lags=LAGS).content["rho"])


@pytest.mark.usefixtures("no_pictures")
def test_runs_that_were_given_rain_are_told_from_those_that_were_not(
    compared: RainComparison, wet: Path, tmp_path: Path
) -> None:
    for found, given in ((compared, [False, False]), (compare_runs([wet], lags=LAGS), [True])):
        *_, kept = write_comparison(found, tmp_path / "out")
        assert [row["reads_rain"] for row in json.loads(kept.read_text())["checkpoints"]] == given
        (entry,) = make_shock_rain(kept, tmp_path / "paper", silent)
        assert ("never saw" in entry.title) == ("not given" in entry.shows[0]) == (not any(given))
        assert ("given rain" in entry.tables[0].table.rows[0][0]) == any(given)


@pytest.mark.parametrize("longest", [8, 0])
def test_the_paper_draws_from_the_files_what_the_command_drew(
    folders: list[Path], tmp_path: Path, longest: float
) -> None:
    found = compare_runs(folders, lags=replace(LAGS, longest=longest))
    with without_paint(but=("shock-rain.svg",) if longest else ()):
        files = write_comparison(found, tmp_path / "runs" / "rain")
        (entry,) = make_shock_rain(files[-1], tmp_path / "paper" / "rain", silent)
    for file in files[:-1]:
        assert (tmp_path / "paper" / "rain" / file.name).read_bytes() == file.read_bytes(), file.name
    step = "--lag-step 2" if longest else "--shifts 200"
    assert f"--longest-lag {longest} {step}" in entry.origin.command
    assert entry.origin.made == json.loads(files[-1].read_text())["made"][:10]


def test_what_does_not_fit_is_refused_in_words(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no covariate called 'snow'"):
        compare_runs(folders, RainChoice("snow"), LAGS)
    with pytest.raises(InputError, match="named twice"):
        compare_runs([folders[0], folders[0]])
    with pytest.raises(InputError, match="no such file is given"):
        compare_runs(folders[:1], RainChoice(gauges=tmp_path / "gauges.csv"), LAGS)
    other = make_run(tmp_path / "linear")
    with pytest.raises(InputError, match="other stations or hours"):
        compare_runs([folders[0], other])
    with pytest.raises(InputError, match="this is a run of linear"):
        compare_runs([other])


def test_a_gauge_that_is_not_there_or_not_on_the_hour_is_refused(tmp_path: Path) -> None:
    panel = river()
    frame = pd.DataFrame({"time": panel.times.local.tz_localize(None), "a": 0.0})
    frame.to_csv(tmp_path / "rain.csv", index=False)
    with pytest.raises(InputError, match="no column called river-1"):
        rain_of(panel, RainChoice(rainfall=tmp_path / "rain.csv"))
    gauges = tmp_path / "gauges.csv"
    choice = RainChoice(rainfall=tmp_path / "rain.csv", gauges=gauges)
    gauges.write_text("station,gauge\nriver-1,a\n")
    with pytest.raises(InputError, match="no gauge is named for river-2"):
        rain_of(panel, choice)
    gauges.write_text("station,gauge\nriver-1,a\nriver-1,b\n")
    with pytest.raises(InputError, match="two gauges"):
        rain_of(panel, choice)
    gauges.write_text("station,gauge\n" + "".join(f"{sensor},a\n" for sensor in panel.sensor_ids))
    half = replace(panel, times=replace(panel.times, start=panel.times.start + panel.times.interval / 2))
    with pytest.raises(InputError, match="do not meet"):
        rain_of(half, choice)
