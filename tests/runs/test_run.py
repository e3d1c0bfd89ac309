"""A run directory is complete: from it and nothing else the model can be judged again."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from candor.core.errors import InputError
from candor.data.protocol import Protocol, make_task
from candor.forecasting import LastValue, Linear
from candor.forecasting.contract import sample_panel
from candor.forecasting.own_data import choose_protocol
from candor.presets import load_preset
from candor.runs.fit import check_run_place, resume_run, train_model
from candor.runs.run import RunRecord, load_run, model_checksum, save_run
from candor.runs.summary import RunState, find_runs, summarise_run

PROTOCOL = Protocol(history=24, horizon=6)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that no test changes."""
    task, folder = make_task(sample_panel(), PROTOCOL), tmp_path_factory.mktemp("made") / "run"
    model = Linear(history=24, horizon=6, seed=3, penalty=2.0).fit(task.panel, task.split)
    save_run(folder, model, task.panel, PROTOCOL, is_catalogued=False)
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of it for a test to do with what it likes."""
    return shutil.copytree(made, tmp_path / "run")


def test_a_run_moved_elsewhere_answers_the_same(run: Path, tmp_path: Path) -> None:
    here = load_run(run)
    shutil.move(run, tmp_path / "moved")
    there = load_run(tmp_path / "moved")
    task = there.task()
    assert task.panel.fingerprint == sample_panel().fingerprint
    assert there.record.protocol == PROTOCOL
    assert there.record.seed == there.forecaster.seed == 3
    assert there.forecaster.settings()["penalty"] == 2
    one, other = (run.forecaster.predict_interval(task.panel, task.split.test) for run in (here, there))
    for name in ("forecast", "lower", "upper"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_catalogued_run_names_its_data_instead_of_copying_them(tmp_path: Path) -> None:
    from candor.data.catalog import load_dataset

    panel = load_dataset("klamath-daily")
    protocol = load_preset("klamath-daily").protocol
    cut = make_task(panel, protocol)
    model = LastValue(protocol.history, protocol.horizon).fit(cut.panel, cut.split)
    save_run(tmp_path / "run", model, panel, protocol, is_catalogued=True)
    assert not (tmp_path / "run" / "data").exists()
    task = load_run(tmp_path / "run").task()
    assert task.panel.times.length == 1609


def test_changed_data_are_refused(run: Path) -> None:
    record = json.loads((run / "run.json").read_text())
    record["fingerprint"] = "0" * 64
    (run / "run.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="content has changed"):
        load_run(run).task()


@pytest.mark.parametrize(
    "file", ["run.json", "model/model.json", "model/state.safetensors", "model/calibration.safetensors"]
)
@pytest.mark.parametrize("damage", ["cut", "emptied", "removed", "replaced"])
def test_damaged_runs_are_refused_in_plain_words(run: Path, file: str, damage: str) -> None:
    path = run / file
    content = path.read_bytes()
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes({"cut": content[: len(content) // 2], "emptied": b"", "replaced": b"[1, 2]"}[damage])
    with pytest.raises(InputError):
        load_run(run)


@pytest.mark.parametrize("file", ["run.json", "model/model.json"])
def test_a_format_from_the_future_is_refused(run: Path, file: str) -> None:
    content = json.loads((run / file).read_text())
    content["format_version"] = 99
    (run / file).write_text(json.dumps(content))
    with pytest.raises(InputError, match="format version 99") as refused:
        load_run(run)
    assert "version of candor that made it" in refused.value.hint


def test_a_run_made_in_one_go_is_not_resumed(run: Path) -> None:
    with pytest.raises(InputError, match="a run of linear is made in one go") as refused:
        resume_run(run)
    assert "make another: candor train" in refused.value.hint
    record = json.loads((run / "run.json").read_text()) | {"model": "candor"}  # as of a bundle of a network
    (run / "run.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="the state of its training is not here") as refused:
        resume_run(run)
    assert "resume the run it was made from" in refused.value.hint


def test_overrides_go_to_the_protocol_first_and_the_rest_to_the_model() -> None:
    protocol, rest = choose_protocol(sample_panel(), None, {"horizon": 7, "penalty": 3})
    assert protocol.horizon == 7
    assert protocol.history == 48
    assert rest == {"penalty": 3}
    with pytest.raises(InputError, match="horizon"):
        choose_protocol(sample_panel(), None, {"horizon": -1})


def test_unknown_models_and_settings_leave_nothing_behind(tmp_path: Path) -> None:
    for model, settings in (("linaer", {}), ("linear", {"wings": 2})):
        with pytest.raises(InputError):
            train_model(sample_panel(), PROTOCOL, model, settings, tmp_path / "run", is_catalogued=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", ["last-value", "candor"])
def test_a_training_part_without_windows_or_readings_is_refused_and_leaves_nothing_behind(
    tmp_path: Path, model: str
) -> None:
    panel, values = sample_panel(), sample_panel().values.copy()
    values[:400] = np.nan
    no_windows = PROTOCOL.model_copy(update={"shares": (0.0, 0.5, 0.5)})
    for data, protocol, hint in (
        (panel, no_windows, "shares="),
        (replace(panel, values=values), PROTOCOL, "first=DATE"),
    ):
        with pytest.raises(InputError, match="nothing to learn from") as refused:
            train_model(data, protocol, model, {}, tmp_path / "run", is_catalogued=False)
        assert hint in refused.value.hint
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_beginning_left_is_begun_again_and_nothing_else_is(tmp_path: Path) -> None:
    left = tmp_path / "left"
    (left / "training").mkdir(parents=True)
    (left / "training" / "settings.json").write_text("{}")
    half_written = (".run.json.abcd1234", ".data.abcd1234", ".failure.json.abcd1234")
    for name in ("cell.json", "status.json", "threads.json", *half_written):
        (left / name).touch()
    for place in (tmp_path / "new", left):
        check_run_place(place, "candor")
    with pytest.raises(InputError, match="other things"):
        check_run_place(left, "last-value")  # would take the place of all of it
    (left / "training" / "last.safetensors").touch()
    with pytest.raises(InputError, match="other things"):
        check_run_place(left, "candor")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="this is a file"):
        check_run_place(tmp_path / "file", "linear")


def test_a_training_killed_at_its_first_word_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "run" / "training").mkdir(parents=True)
    (tmp_path / "run" / "training" / ".settings.json.abcd1234").touch()
    check_run_place(tmp_path / "run", "candor")
    (tmp_path / "run" / "data").mkdir()  # is written later, so this is somebody else's
    with pytest.raises(InputError, match="other things, such as data"):
        check_run_place(tmp_path / "run", "candor")


def test_a_model_is_not_saved_over_anything_else(run: Path, tmp_path: Path) -> None:
    model = load_run(run).forecaster
    model.save(tmp_path / "model")
    model.save(tmp_path / "model")
    (tmp_path / "models" / "other").mkdir(parents=True)
    (tmp_path / "file").write_text("kept")
    for place in (run, tmp_path / "models", tmp_path / "file"):
        with pytest.raises(InputError, match="something else than a model"):
            model.save(place)
    assert (run / "run.json").is_file() and (tmp_path / "file").read_text() == "kept"


def test_a_run_is_replaced_only_by_one_of_the_same_model_that_says_so(run: Path) -> None:
    check_run_place(run, "linear", replaces=True)
    for model, replaces in (("linear", False), ("last-value", True)):
        with pytest.raises(InputError, match="a run in this folder already"):
            check_run_place(run, model, replaces=replaces)


def test_a_run_that_was_begun_while_another_was_fitted_is_not_replaced(tmp_path: Path) -> None:
    def begin_another(what: str, share: float | None) -> None:
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / "run.json").write_text("of the other")

    with pytest.raises(InputError, match="a run in this folder already"):
        train_model(sample_panel(), PROTOCOL, "linear", {}, tmp_path / "run", is_catalogued=False, report=begin_another)
    assert (tmp_path / "run" / "run.json").read_text() == "of the other"


def test_a_run_says_when_it_was_made(run: Path) -> None:
    made = load_run(run).record.made
    assert made is not None
    assert made.utcoffset() == timedelta(0)
    assert timedelta(0) <= datetime.now(UTC) - made < timedelta(days=1)
    content = json.loads((run / "run.json").read_text())
    del content["made"]
    (run / "run.json").write_text(json.dumps(content))
    assert load_run(run).record.made is None


def judged(run: Path, **changes: object) -> None:
    """Writes what `candor evaluate` would, as far as a summary reads it."""
    record = load_run(run).record
    content = {"model": record.model, "protocol": record.protocol.model_dump(mode="json"), "overall": {"mae": 1.5}}
    (run / "evaluation.json").write_text(json.dumps(content | changes))


def test_a_summary_tells_how_far_a_run_has_come(run: Path) -> None:
    assert summarise_run(run).state is RunState.TRAINED
    assert summarise_run(run).score("mae") is None
    judged(run)
    summary = summarise_run(run)
    assert summary.state is RunState.EVALUATED
    assert summary.score("mae") == 1.5
    assert summary.score("rmse") is None
    shutil.rmtree(run / "model")
    summary = summarise_run(run)
    assert summary.state is RunState.UNFINISHED
    assert summary.record is not None
    assert summary.record.protocol == PROTOCOL
    (run / "run.json").write_text("{")
    summary = summarise_run(run)
    assert summary.state is RunState.DAMAGED
    assert "JSON" in summary.trouble
    (run / "run.json").unlink()
    with pytest.raises(InputError, match="not a run directory"):
        summarise_run(run)


@pytest.mark.parametrize(
    "content", ["", "[1, 2]", "{}", '{"model": "linear"}', '{"model": "linear", "protocol": {}, "overall": 3}']
)
def test_a_summary_does_not_choke_on_a_damaged_evaluation(run: Path, content: str) -> None:
    (run / "evaluation.json").write_text(content)
    summary = summarise_run(run)
    assert summary.state is RunState.TRAINED
    assert "evaluation.json" in summary.trouble


def test_the_scores_of_another_run_are_not_taken(run: Path) -> None:
    for change in ({"model": "last-value"}, {"protocol": {"history": 3}}, {"overall": [1]}, {"model_sha256": "0"}):
        judged(run, **change)
        assert summarise_run(run).evaluation is None
    judged(run, model_sha256=model_checksum(run))
    assert summarise_run(run).score("mae") == 1.5


def test_an_unfinished_run_cannot_be_used_yet(run: Path) -> None:
    shutil.rmtree(run / "model")
    with pytest.raises(InputError, match="unfinished"):
        load_run(run)


def test_runs_are_found_in_folders_of_folders_but_not_half_written(run: Path, tmp_path: Path) -> None:
    for place in ("a/b/deep", ".hidden.tmp1", "a/.run.tmp2", "z"):
        shutil.copytree(run, tmp_path / place)
    (tmp_path / "empty").mkdir()
    (tmp_path / "z" / "inner").mkdir()
    shutil.copy(run / "run.json", tmp_path / "z" / "inner")  # belongs to the run around it
    names = [str(path.relative_to(tmp_path)) for path in find_runs(tmp_path)]
    assert names == ["a/b/deep", "run", "z"]
    assert find_runs(run) == [run]
    assert find_runs(tmp_path / "empty") == []
    with pytest.raises(InputError, match="no such folder"):
        find_runs(tmp_path / "nowhere")


def test_a_record_can_be_written_before_the_training_ends(tmp_path: Path) -> None:
    record = RunRecord.of("linear", sample_panel(), PROTOCOL, seed=4, is_catalogued=False)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(json.dumps(record.model_dump(mode="json")))
    summary = summarise_run(tmp_path / "run")
    assert summary.record == record
    assert summary.state is RunState.UNFINISHED


def test_a_reconstruction_is_called_one_wherever_its_runs_are_shown() -> None:
    panel, protocol = sample_panel(), Protocol(history=12, horizon=4)
    record = RunRecord.of("msthg", panel, protocol, seed=0, is_catalogued=False)
    assert (record.model, record.label) == ("msthg", "msthg (reconstruction)")
    assert RunRecord.of("stid", panel, protocol, seed=0, is_catalogued=False).label == "stid"
