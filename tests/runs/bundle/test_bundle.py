"""A bundle is a run to give away: complete, checked, and the same model to the bit."""

import json
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_runs import PROTOCOL, make_run, river
from tiny import tiny_recipe

from candor.cli import run as candor
from candor.core.errors import InputError
from candor.core.files import sha256_of_file
from candor.data.panel import Covariate, Panel
from candor.data.protocol import Protocol
from candor.data.synthetic import generate_river
from candor.forecasting.contract import sample_panel
from candor.forecasting.forecaster import load_forecaster
from candor.runs import evaluate
from candor.runs.bundle import is_bundle, open_bundle, open_run, write_bundle
from candor.runs.bundle.card import _numbers, _scores
from candor.runs.bundle.manifest import write_manifest
from candor.runs.fit import train_model
from candor.runs.onnx import check_exportable
from candor.runs.run import MANIFEST, Run, load_run, save_run
from candor.runs.summary import RunState, summarise_run

SPAN = PROTOCOL.history + PROTOCOL.horizon


def assert_same_answers(one: Run, other: Run) -> None:
    panel, origins = river(), np.array([50, 300, 600])
    ours, theirs = (opened.forecaster.predict_interval(panel, origins, 0.8) for opened in (one, other))
    for name in ("forecast", "lower", "upper"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


@pytest.mark.parametrize("name", ["bundle", "bundle.zip"])
@pytest.mark.parametrize("rows", [None, 40, "all", "none"])
def test_the_model_in_a_bundle_is_the_same_to_the_bit(run: Run, tmp_path: Path, name: str, rows: object) -> None:
    path = write_bundle(run, tmp_path / "elsewhere" / name, rows)
    assert path.is_file() == (name == "bundle.zip")
    opened = open_bundle(path)
    assert_same_answers(opened, run)
    assert opened.folder.name == "bundle"
    assert opened.record.model == run.record.model


@pytest.mark.parametrize("rows", [None, 40, "all"])
def test_the_end_of_the_record_is_inside_and_gives_the_same_forecast(run: Run, tmp_path: Path, rows: object) -> None:
    task = run.task()
    inside = open_bundle(write_bundle(run, tmp_path / "bundle.zip", rows)).task().panel
    length = {None: 4 * SPAN, 40: 40, "all": 600}[rows]
    assert inside.times == task.panel.times.slice(600 - length, 600)
    assert inside.sensors == task.panel.sensors
    np.testing.assert_array_equal(inside.values, task.panel.values[600 - length :])
    # Two sensors have been silent for longer than the bundle reaches back; the others do not know of the difference.
    reported = [0, 1, 4]
    ours, theirs = (run.forecaster.predict(panel)[..., reported] for panel in (inside, task.panel))
    np.testing.assert_array_equal(ours, theirs)


def test_gaps_stay_gaps_even_where_the_filled_series_is_judged(tmp_path: Path) -> None:
    protocol = PROTOCOL.model_copy(update={"fill": "forward-backward", "targets": "filled"})
    run = load_run(make_run(tmp_path / "run", protocol=protocol))
    opened = open_bundle(write_bundle(run, tmp_path / "bundle.zip"))
    np.testing.assert_array_equal(opened.task().panel.values, river().values[-4 * SPAN :])
    reported = [0, 1, 4]
    ours, theirs = (one.forecaster.predict(one.task().panel)[..., reported] for one in (opened, run))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_network_travels_too_and_another_one_is_not_taken_for_it(make_candor, panel: Panel, tmp_path: Path) -> None:
    small = Protocol(history=12, horizon=4)
    run = save_run(tmp_path / "run", make_candor(season=True), panel, small, is_catalogued=False)
    opened = open_bundle(write_bundle(run, tmp_path / "bundle.zip"))
    np.testing.assert_array_equal(opened.forecaster.predict(panel), run.forecaster.predict(panel))
    folder = write_bundle(run, tmp_path / "bundle")
    other = save_run(tmp_path / "other", make_candor(season=True, hidden=16), panel, small, is_catalogued=False)
    shutil.copy(other.folder / "model" / "state.safetensors", folder / "model")
    (folder / MANIFEST).unlink()
    write_manifest(folder)
    with pytest.raises(InputError, match="do not fit"):
        open_bundle(folder)


def test_an_unpacked_bundle_is_a_run_directory(run: Run, tmp_path: Path) -> None:
    folder = write_bundle(run, tmp_path / "bundle")
    opened = load_run(folder)
    assert_same_answers(opened, run)
    assert not opened.record.is_catalogued
    assert opened.task().panel.times.length == 4 * SPAN
    np.testing.assert_array_equal(load_forecaster(folder / "model").predict(river()), run.forecaster.predict(river()))


def test_a_whole_record_keeps_its_scores(run: Run, tmp_path: Path) -> None:
    assert candor(["evaluate", str(run.folder)]) == 0
    summary = summarise_run(write_bundle(run, tmp_path / "bundle", "all"))
    assert summary.state is RunState.EVALUATED
    assert summary.score("mae") == summarise_run(run.folder).score("mae")
    again = open_bundle(tmp_path / "bundle")
    assert evaluate(again.forecaster, again.task()).overall()["mae"] == pytest.approx(summary.score("mae"))


def test_a_part_of_a_record_is_never_judged_as_if_it_were_the_test_part(run: Run, tmp_path: Path) -> None:
    assert candor(["evaluate", str(run.folder)]) == 0
    opened = open_bundle(write_bundle(run, tmp_path / "bundle"))
    with pytest.raises(InputError, match="nothing to evaluate"):
        evaluate(opened.forecaster, opened.task())
    kept = json.loads((tmp_path / "bundle" / "source" / "evaluation.json").read_text())
    assert kept == json.loads((run.folder / "evaluation.json").read_text())
    source = json.loads((tmp_path / "bundle" / "source" / "run.json").read_text())
    assert source == json.loads((run.folder / "run.json").read_text())


def test_without_readings_the_bundle_says_so(run: Run, tmp_path: Path) -> None:
    opened = open_bundle(write_bundle(run, tmp_path / "bundle.zip", "none"))
    assert not (opened.folder / "data").exists()
    with pytest.raises(InputError, match="holds no readings"):
        opened.task()


def test_without_readings_a_dataset_of_the_catalogue_is_still_named(tmp_path: Path) -> None:
    from candor.data.catalog import load_dataset
    from candor.data.protocol import make_task
    from candor.forecasting import LastValue
    from candor.presets import load_preset

    panel, protocol = load_dataset("klamath-daily"), load_preset("klamath-daily").protocol
    task = make_task(panel, protocol)
    model = LastValue(protocol.history, protocol.horizon).fit(task.panel, task.split)
    run = save_run(tmp_path / "run", model, panel, protocol, is_catalogued=True)
    opened = open_bundle(write_bundle(run, tmp_path / "bundle", "none"))
    assert opened.task().panel.fingerprint == task.panel.fingerprint


def test_the_card_tells_what_it_is_and_how_good(run: Run, tmp_path: Path) -> None:
    card = (write_bundle(run, tmp_path / "before") / "README.md").read_text()
    assert "not evaluated" in card
    assert candor(["evaluate", str(run.folder)]) == 0
    score = summarise_run(run.folder).score("mae")
    card = (write_bundle(run, tmp_path / "after") / "README.md").read_text()
    for words in (
        "# linear on river", "MAE [m]", f"| {score:.3f} |", "historical-average", "Europe/Berlin", "Intended use",
        "Limits", "360 rows", "Upper weir", r"Old mill \[broken\]", run.record.fingerprint, "90 %", "5 sensors, 4 dir",
    ):  # fmt: skip
        assert words in card, words


def test_the_card_shows_small_errors_and_no_model_beside_itself(run: Run) -> None:
    errors = dict.fromkeys(("mae", "rmse", "mape"), 0.00042)
    evaluation = {
        "windows": 7, "mask": "observed targets only", "overall": errors,
        "by_step": {name: [value] * PROTOCOL.horizon for name, value in errors.items()},
        "simple_forecasters": {name: {"overall": errors, "skill": 0.1} for name in ("linear", "last-value")},
    }  # fmt: skip
    card = _scores(run.record, run.task(), evaluation)
    assert card.count("0.000420") >= 3 * 2 and "0.000 " not in card
    assert card.count("| linear |") == 1 and card.count("| last-value |") == 1
    assert "mix" not in card


def test_the_card_does_not_take_one_unit_for_another(tmp_path: Path) -> None:
    panel, units = river(), ("m", "m", "m3/s", "ppm", "m")
    sensors = tuple(replace(sensor, unit=unit) for sensor, unit in zip(panel.sensors, units, strict=True))
    values = panel.values * np.array([1, 1, 1000, 1, 1], np.float32)
    run = load_run(make_run(tmp_path / "run", panel=replace(panel, values=values, sensors=sensors)))
    assert candor(["evaluate", str(run.folder)]) == 0
    card = (write_bundle(run, tmp_path / "bundle") / "README.md").read_text()
    found = re.search(r"lay between (\S+) and (\S+) m, between (\S+) and (\S+) m3/s, between – and – ppm", card)
    assert found is not None
    shallow, deep, low, high = (float(number.replace(",", "")) for number in found.groups())
    assert 8 < shallow < deep < 12 and 8_000 < low < high < 12_000
    assert "different units" in card


def test_the_card_counts_the_numbers_of_the_network_alone(make_candor) -> None:
    model = make_candor()
    weights = [array for name, array in model.state_.items() if name.startswith("weights/")]
    assert _numbers(model) == sum(array.size for array in weights) < sum(array.size for array in model.state_.values())


def test_covariates_travel_with_the_record(tmp_path: Path) -> None:
    panel = replace(sample_panel(), covariates={"rain, at night": Covariate(np.ones((600, 5), np.float32), "mm")})
    run = load_run(make_run(tmp_path / "run", panel=panel))
    inside = open_bundle(write_bundle(run, tmp_path / "bundle.zip")).task().panel
    np.testing.assert_array_equal(inside.covariates["rain, at night"].values, np.ones((4 * SPAN, 5)))


def test_a_rule_that_looks_back_over_seasons_has_them_in_its_bundle(tmp_path: Path) -> None:
    run = load_run(make_run(tmp_path / "run", "seasonal-naive", season=120))
    opened = open_bundle(write_bundle(run, tmp_path / "bundle.zip"))
    inside = opened.task().panel
    assert inside.times.length == 4 * 120
    assert (opened.folder / "README.md").read_text().count("their last 5 d") == 1
    with pytest.raises(InputError, match="119 rows are too few"):
        write_bundle(run, tmp_path / "short.zip", 119)
    np.testing.assert_array_equal(opened.forecaster.predict(inside), run.forecaster.predict(run.task().panel))


def test_a_network_that_reads_rain_travels_but_not_as_onnx(tmp_path: Path) -> None:
    panel, recipe = generate_river(sensors=4, steps=160, seed=19)[0], tiny_recipe(epochs=1)
    recipe["model"] = recipe["model"] | {"rain": "added"}
    protocol = Protocol(history=12, horizon=4)
    run = train_model(panel, protocol, "candor", {"recipe": recipe}, tmp_path / "run", is_catalogued=False)
    opened = open_bundle(write_bundle(run, tmp_path / "bundle.zip"))
    ours, theirs = (model.predict(opened.task().panel) for model in (run.forecaster, opened.forecaster))
    np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(InputError, match=r"reads covariates \(rain\)"):
        check_exportable(run.forecaster)


def test_a_bundle_that_nobody_could_open_is_not_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("candor.runs.bundle.bundle.MOST_BYTES", 4 * 600 * 5 - 1)
    with pytest.raises(InputError, match="too large") as refused:
        write_bundle(run, tmp_path / "bundle.zip", "all")
    assert "--rows" in refused.value.hint and list(tmp_path.iterdir()) == [run.folder]
    write_bundle(run, tmp_path / "bundle.zip", 40)


def test_the_same_run_makes_the_same_file(run: Run, tmp_path: Path) -> None:
    first, second = (write_bundle(run, tmp_path / name) for name in ("one.zip", "two.zip"))
    assert sha256_of_file(first) == sha256_of_file(second)


def test_nothing_but_a_bundle_is_replaced(run: Run, tmp_path: Path) -> None:
    folder = write_bundle(run, tmp_path / "bundle", 40)
    write_bundle(run, folder, 50)
    assert open_bundle(folder).task().panel.times.length == 50
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "manifest.json").write_text('{"name": "a page of the web"}')
    (tmp_path / "report.html").write_text("<p>by hand</p>")
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as photos:
        photos.writestr("cat.jpg", b"meow")
    packed = write_bundle(run, tmp_path / "bundle.zip")
    shutil.copy(packed, tmp_path / "bundle.of-mine")
    places = [tmp_path / name for name in ("thesis", "page", "report.html", "photos.zip", "bundle.of-mine")]
    before = {file: file.read_bytes() for place in places for file in (place, *place.rglob("*")) if file.is_file()}
    for place in (*places, run.folder, run.folder.parent):
        with pytest.raises(InputError):
            write_bundle(run, place)
    assert {file: file.read_bytes() for file in before} == before and len(before) == 5
    (folder / "data" / "notes.txt").write_text("what I found out")
    with pytest.raises(InputError, match=r"'data/notes\.txt' in it is not of candor"):
        write_bundle(run, folder)
    assert (folder / "data" / "notes.txt").read_text() == "what I found out"
    damaged = bytearray(packed.read_bytes())
    damaged[200] ^= 1
    packed.write_bytes(damaged)  # one that was damaged may be made anew
    assert_same_answers(open_bundle(write_bundle(run, packed)), run)
    assert_same_answers(load_run(run.folder), run)


@pytest.mark.parametrize("rows", [1, SPAN - 1])
def test_too_few_rows_are_refused_and_nothing_is_left_behind(run: Run, tmp_path: Path, rows: int) -> None:
    for name in ("bundle", "bundle.zip"):
        with pytest.raises(InputError, match="too few"):
            write_bundle(run, tmp_path / "new" / name, rows)
        assert not list((tmp_path / "new").iterdir())


def test_a_bundle_is_not_bundled_again(run: Run, tmp_path: Path) -> None:
    opened = open_bundle(write_bundle(run, tmp_path / "bundle"))
    with pytest.raises(InputError, match="a bundle already"):
        write_bundle(opened, tmp_path / "again")


def test_runs_and_bundles_are_opened_alike(run: Run, tmp_path: Path) -> None:
    for path in (run.folder, write_bundle(run, tmp_path / "bundle"), write_bundle(run, tmp_path / "bundle.zip")):
        assert is_bundle(path) == (path != run.folder)
        assert_same_answers(open_run(path), run)
    with pytest.raises(InputError, match="not a run directory"):
        open_run(tmp_path / "nowhere")


def test_a_file_packed_by_hand_opens_too(run: Run, tmp_path: Path) -> None:
    folder = write_bundle(run, tmp_path / "bundle")
    with zipfile.ZipFile(tmp_path / "mine.zip", "w", zipfile.ZIP_STORED) as archive:
        archive.mkdir("model")
        for file in folder.rglob("*"):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    assert_same_answers(open_bundle(tmp_path / "mine.zip"), run)


def test_what_was_unpacked_goes_with_the_run(run: Run, tmp_path: Path) -> None:
    opened = open_bundle(write_bundle(run, tmp_path / "bundle.zip"))
    folder = opened.folder
    assert folder.is_dir()
    del opened
    assert not folder.exists()
    shutil.copy(tmp_path / "bundle.zip", tmp_path / "...zip")  # a name that would lead out of the temporary folder
    assert open_bundle(tmp_path / "...zip").folder.name == "bundle"
