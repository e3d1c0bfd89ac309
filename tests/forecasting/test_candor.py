"""CANDOR as a forecaster: it learns, remembers its recipe, and a run of it survives being killed."""

import itertools
import random
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from forked import Forked
from made_readings import made_trainable, made_windows, river_panel
from safetensors import SafetensorError
from safetensors.numpy import load_file
from tiny import PROTOCOL, SIZES, tiny_recipe

import candor.forecasting.published
from candor.core.errors import InputError
from candor.core.files import locked_folder, read_json, write_json
from candor.core.settings import parse_settings
from candor.data.alignment import align
from candor.data.panel import Covariate, Panel
from candor.data.protocol import make_task
from candor.forecasting import LastValue, forecasters, load_forecaster
from candor.forecasting.candor import Candor
from candor.forecasting.contract import sample_panel
from candor.forecasting.own_data import choose_recipe, choose_settings
from candor.nets.trainable import tensors_of
from candor.runs import evaluate
from candor.runs.fit import Limits, TrainingStoppedError, resume_run, train_model
from candor.runs.resumable import find_initial_weights, notes_on_refits
from candor.runs.run import load_record, load_run
from candor.training.batch_plan import BatchPlan
from candor.training.checkpoint import Checkpoint
from candor.training.loop import Stopped, Trainer


def few_readings() -> Panel:
    """Returns enough readings for all windows that a tiny recipe asks for."""
    return sample_panel().slice(0, 300)


def quick_recipe(**training: object) -> dict[str, Any]:
    """Returns a tiny recipe of two patches: what a step takes grows with their number."""
    recipe = tiny_recipe(**training)
    return recipe | {"model": recipe["model"] | {"patch_length": 6, "patch_stride": 6}}


def train(folder: Path, limits: Limits = Limits(), **training: object) -> None:  # noqa: B008 - frozen
    settings = {"recipe": quick_recipe(**training)}
    train_model(few_readings(), PROTOCOL, "candor", settings, folder, is_catalogued=False, limits=limits)


@contextmanager
def fed_as_those_that_are_killed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("candor.training.batch_plan._MEASURED", {})  # by other tests
        patch.setattr("candor.training.batch_plan._fastest", lambda *_: BatchPlan(micro_batch=16, workers=2))
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was trained in one go."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with fed_as_those_that_are_killed():
        train(folder)
    return folder


@pytest.mark.slow
def test_it_learns_a_daily_rhythm_that_the_last_reading_does_not_know() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    recipe = tiny_recipe(epochs=8, epoch_windows=None)
    ours = Candor(12, 4, recipe=recipe).fit(task.panel, task.split)
    simple = LastValue(12, 4).fit(task.panel, task.split)
    assert evaluate(ours, task).overall()["mae"] < 0.8 * evaluate(simple, task).overall()["mae"]


@pytest.fixture(scope="module")
def ours() -> Candor:
    """A forecaster that learned for an epoch, and was told nothing of a split."""
    return Candor(history=12, horizon=4, recipe=tiny_recipe(epochs=1)).fit(sample_panel())


def test_it_needs_no_split_and_knows_its_errors(ours: Candor) -> None:
    interval = ours.predict_interval(sample_panel())
    assert (interval.lower <= interval.forecast).all() and (interval.forecast <= interval.upper).all()


def test_it_reads_rain_before_the_forecast_and_none_after_it() -> None:
    panel = sample_panel()
    rain = np.random.default_rng(0).gamma(0.3, size=panel.values.shape).astype(np.float32)
    wet = replace(panel, covariates={"rain": Covariate(rain, "mm/h")})
    recipe = quick_recipe(epochs=1)
    recipe["model"] = recipe["model"] | {"rain": "added"}
    fitted = Candor(history=12, horizon=6, recipe=recipe).fit(wet)
    origins = np.array([100])
    (plain,) = fitted.predict(wet, origins)
    for row, is_read in ((99, True), (100, False)):
        changed = rain.copy()
        changed[row] += 50
        other = replace(wet, covariates={"rain": Covariate(changed, "mm/h")})
        assert np.array_equal(plain, fitted.predict(other, origins)[0]) != is_read
    with pytest.raises(InputError, match="no covariate called 'rain'"):
        fitted.predict(panel)
    known = fitted.trained_on_
    aligned = align(wet, known, 12, horizon=6).panel
    assert np.array_equal(fitted.predict(aligned), fitted.predict(wet))
    with pytest.raises(InputError, match="also reads rain"):
        align(panel, known, 12, horizon=6)


def test_without_a_recipe_it_chooses_what_the_command_would_and_remembers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shortened = {"epochs": 1, "epoch_windows": 64, "validation_windows": 16}
    choose = candor.forecasting.published.choose_recipe
    monkeypatch.setattr(
        candor.forecasting.published, "choose_recipe", lambda task, *_: choose(task, None, SIZES | shortened)
    )
    task = make_task(sample_panel(), PROTOCOL)
    expected, _ = choose_recipe(task, None, SIZES | shortened)
    made = Candor(history=12, horizon=4, stages=("network",))
    settings = made.settings()
    fitted = made.fit(task.panel, task.split)
    assert fitted is made and made.settings() == settings and settings["recipe"] is None
    assert made.used_recipe() == expected
    assert expected.anchor and expected.training.learning_rate == 1e-3 and expected.model["patch_length"] == 4
    told = Candor(history=12, horizon=4, recipe=expected).fit(task.panel, task.split)
    origins = task.split.test[:3]
    forecast = made.predict(task.panel, origins)
    assert np.array_equal(forecast, told.predict(task.panel, origins))
    made.save(tmp_path / "model")
    loaded = load_forecaster(tmp_path / "model")
    assert loaded.used_recipe() == expected and loaded.settings() == settings
    assert np.array_equal(forecast, loaded.predict(task.panel, origins))


@pytest.mark.slow
def test_role_maps_stay_the_identity_until_the_activation_epoch(tmp_path: Path) -> None:
    task = make_task(sample_panel(), PROTOCOL)
    recipe = tiny_recipe(epochs=2, epoch_windows=None, activation=1, batch=180, weight_decay=0.1)
    model = Candor(history=12, horizon=4, recipe=recipe)

    def maps_after(steps: int) -> list[np.ndarray]:
        asked = iter(range(steps, 0, -1))
        with suppress(Stopped):
            model.fit(task.panel, task.split, folder=tmp_path, stop_reason=lambda: "now" if next(asked) == 1 else None)
        weights = load_file(tmp_path / "last.safetensors")
        return [array for name, array in weights.items() if name.startswith("network/roles.")]

    waiting = maps_after(2)  # both steps of the first epoch
    assert len(waiting) == 6 and all(np.array_equal(role, np.eye(8)) for role in waiting)
    assert not any(np.array_equal(role, np.eye(8)) for role in maps_after(1))


def test_an_anchored_forecast_moves_with_the_level_of_the_readings(ours: Candor) -> None:
    panel = sample_panel()
    raised = replace(panel, values=panel.values + np.float32(3))
    origin, alive = np.array([400]), [0, 1, 2, 4]  # the dead sensor is filled with a mean, which does not move
    moved = ours.predict(raised, origin) - ours.predict(panel, origin)
    np.testing.assert_allclose(moved[..., alive], 3, atol=0.2)


def test_a_network_that_keeps_the_level_reads_it_and_adds_the_same_anchor() -> None:
    panel = river_panel()
    takes_off = made_trainable(panel)
    keeps = replace(takes_off, keeps_level=True)
    batch = tensors_of(made_windows(panel, takes_off, 5).batch(np.arange(5)))
    inputs, (read, anchor), (kept, same) = batch["inputs"], takes_off.anchored(batch), keeps.anchored(batch)
    assert torch.equal(kept, inputs) and torch.equal(anchor, same) and not torch.equal(read, inputs)
    network = keeps.network(inputs, batch["time_of_day"], batch["day_of_week"])
    expected = (network + same) * keeps.scaler.deviation + keeps.scaler.mean
    torch.testing.assert_close(keeps.forecast(batch), expected)
    raised = batch | {"inputs": inputs + 2.0}
    moved = [
        (learner.forecast(raised) - learner.forecast(batch)) / keeps.scaler.deviation for learner in (takes_off, keeps)
    ]
    torch.testing.assert_close(moved[0], torch.full_like(moved[0], 2.0), atol=1e-3, rtol=0)
    assert (moved[1] - 2.0).abs().max() > 0.1  # a higher level is another situation


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"model": {"patch_length": 99}}, "patch"),
        ({"model": {"wings": 2}}, "wings"),
        ({"training": {"epochs": 0}}, "epochs"),
        ({"size": "huge"}, "size"),
    ],
)
def test_impossible_recipes_are_refused_before_anything_is_read(recipe: dict[str, object], message: str) -> None:
    with pytest.raises(Exception, match=message):
        Candor(history=12, horizon=4, recipe=recipe)


def test_settings_of_a_baseline_find_their_place_and_keep_the_protocol_of_the_preset() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    found, _ = choose_settings("stid", task, "metr-la", {"epochs": 3, "width": 16, "recipe.loss": "squared"})
    stid = forecasters.get("stid")(history=12, horizon=4, **found)
    assert (stid.recipe.training.epochs, stid.sizes.width, stid.recipe.loss) == (3, 16, "squared")
    assert stid.recipe.training.milestones == (1, 50, 80)
    assert (stid.recipe.loss_space, stid.recipe.scaler, stid.recipe.selection) == ("original", "windows", "whole")
    found, _ = choose_settings("stid", task, None, {"wings": 2})
    with pytest.raises(InputError, match="wings"):
        parse_settings(forecasters.get("stid"), {"history": 12, "horizon": 4} | found, "settings")


def test_a_budget_ends_training_in_good_order_with_a_model_and_it_goes_on_later(tmp_path: Path, whole: Path) -> None:
    with fed_as_those_that_are_killed():
        train(tmp_path / "pieces", Limits(budget_minutes=0.0))
    assert load_run(tmp_path / "pieces").forecaster.predict(sample_panel()).shape == (1, 4, 5)
    anew = "refits learn by its settings as they are, 2 epochs each"
    assert notes_on_refits(tmp_path / "pieces") == [f"the training of this run was cut short in epoch 1: {anew}"]
    resume_run(tmp_path / "pieces")
    assert_same_weights(whole, tmp_path / "pieces")
    assert notes_on_refits(tmp_path / "pieces") == []
    training = tmp_path / "pieces" / "training"
    schedule = read_json(training / "settings.json")["recipe"]["training"] | {"epochs": 1}
    write_json(training / "schedule.json", schedule)
    shortened = [f"a budget shortened the schedules of this run: {anew}"]
    assert notes_on_refits(tmp_path / "pieces") == shortened
    write_json(training / "schedule.json", schedule | {"epochs": 2})
    assert notes_on_refits(tmp_path / "pieces") == []  # all of it seemed to fit in
    checkpoint = Checkpoint(training)
    checkpoint.log(1, checkpoint.read_log()[1] | {"windows": 96})  # and then less did
    assert notes_on_refits(tmp_path / "pieces") == shortened


def test_an_interruption_leaves_a_run_that_says_how_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(TrainingStoppedError, match=r"Ctrl-C(.|\n)*candor train --resume"):
        train(tmp_path / "run", Limits(interruption=lambda: "Ctrl-C was pressed"))
    with pytest.raises(InputError, match="unfinished"):
        load_run(tmp_path / "run")
    with pytest.raises(InputError, match="a run in this folder already"):
        train(tmp_path / "run")
    resume_run(tmp_path / "run")
    assert load_run(tmp_path / "run").forecaster.name == "candor"


def test_training_can_begin_with_the_weights_of_another_run(tmp_path: Path, whole: Path) -> None:
    settings = {"recipe": quick_recipe(epochs=1, learning_rate=1e-12)}
    more = {"is_catalogued": False, "start_from": whole}
    turned = few_readings().select(sample_panel().sensor_ids[::-1])
    with pytest.raises(InputError, match="other sensors, or of the same in another order"):
        train_model(turned, PROTOCOL, "candor", settings, tmp_path / "second", **more)
    started = train_model(few_readings(), PROTOCOL, "candor", settings, tmp_path / "second", **more)
    first = load_run(whole).forecaster.predict(sample_panel())
    np.testing.assert_allclose(started.forecaster.predict(sample_panel()), first, atol=1e-4)
    (note,) = notes_on_refits(tmp_path / "second")
    assert "--init" in note and "drawn by chance" in note


@pytest.mark.slow
def test_a_killed_training_that_began_with_the_weights_of_another_begins_with_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(Exception):
        pass

    def begin(folder: Path) -> None:
        settings = {"recipe": quick_recipe(epochs=1)}
        more = {"is_catalogued": False, "start_from": tmp_path / "first"}
        train_model(sample_panel(), PROTOCOL, "candor", settings, folder, **more)

    def be_killed_before_the_first_step(*_: object) -> None:
        raise KilledError

    train(tmp_path / "first", epochs=1)
    begin(tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(Trainer, "_train_batch", be_killed_before_the_first_step)
        begin(tmp_path / "killed")
    shutil.copy(tmp_path / "whole/training/machine.json", tmp_path / "killed/training/machine.json")
    first = load_file(tmp_path / "first/model/state.safetensors")
    shutil.rmtree(tmp_path / "first")  # by now nothing of it is needed
    for name in (".last.safetensors.abcd_123", ".machine.json.12345678", ".last.safetensors.of-mine"):
        (tmp_path / "killed" / "training" / name).write_bytes(b"half-written")
    start_file = tmp_path / "killed/training/start.safetensors"
    whole = start_file.read_bytes()
    start_file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match="were changed"):
        resume_run(tmp_path / "killed")
    start_file.write_bytes(whole)
    resume_run(tmp_path / "killed")
    assert_same_weights(tmp_path / "whole", tmp_path / "killed")
    hidden = [path.name for path in (tmp_path / "killed").rglob(".*")]
    assert hidden == [".last.safetensors.of-mine"]
    kept = load_file(tmp_path / "killed/training/start.safetensors")
    assert kept and all(np.array_equal(array, first[name]) for name, array in kept.items())
    start = load_record(tmp_path / "killed").start
    assert start is not None and (start.run, start.weights) == (str(tmp_path / "first"), "model")


def test_a_training_can_begin_with_the_best_weights_of_one_that_broke(tmp_path: Path) -> None:
    with pytest.raises(TrainingStoppedError):
        asked = iter(range(100))
        train(tmp_path / "broken", Limits(interruption=lambda: "enough" if next(asked) > 3 else None))
    best = Checkpoint(tmp_path / "broken" / "training").load_best()
    state, kind, sensors = find_initial_weights(tmp_path / "broken", "candor")
    assert kind == "best" and len(state) == len(best)
    assert sensors == sample_panel().sensor_ids
    assert all(np.array_equal(state[f"weights/{name}"], tensor.numpy()) for name, tensor in best.items())
    (tmp_path / "broken" / "training" / "last.safetensors").unlink()
    with pytest.raises(InputError, match="learned nothing yet"):
        find_initial_weights(tmp_path / "broken", "candor")


def test_a_disk_that_is_full_at_the_end_keeps_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    with monkeypatch.context() as patch, pytest.raises(InputError, match=r"No space left(.|\n)*candor train --resume"):
        patch.setattr("candor.forecasting.forecaster.save_file", full)
        train(tmp_path / "run", epochs=1)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["data", "run.json", "training"]
    before = (tmp_path / "run" / "training" / "last.safetensors").read_bytes()
    resume_run(tmp_path / "run")
    assert load_run(tmp_path / "run").forecaster.name == "candor"
    assert (tmp_path / "run" / "training" / "last.safetensors").read_bytes() == before


def test_a_second_session_is_kept_off_a_training(tmp_path: Path) -> None:
    refusals = []

    def resume_meanwhile() -> str:
        with pytest.raises(InputError, match="another session is training") as refused:
            resume_run(tmp_path / "run")
        refusals.append(refused.value.where)
        return "enough"

    with pytest.raises(TrainingStoppedError):
        train(tmp_path / "run", Limits(interruption=resume_meanwhile), epochs=1)
    assert set(refusals) == {str(tmp_path / "run")}
    resume_run(tmp_path / "run")


def test_of_two_trainings_that_begin_together_the_second_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with locked_folder(folder / "training"), pytest.raises(InputError, match="another session is training"):
        train(folder)
    assert list((folder / "training").iterdir()) == [] and not (folder / "run.json").exists()

    @contextmanager
    def locked_after_another(training: Path) -> Iterator[None]:
        (folder / "run.json").write_text("of the other")
        with locked_folder(training):
            yield

    monkeypatch.setattr("candor.runs.resumable.locked_folder", locked_after_another)
    with pytest.raises(InputError, match="a run in this folder already"):
        train(folder)
    assert list((folder / "training").iterdir()) == [] and (folder / "run.json").read_text() == "of the other"


def test_data_that_changed_under_a_stopped_training_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingStoppedError):
        train(tmp_path / "run", Limits(interruption=lambda: "enough"))
    record = (tmp_path / "run" / "run.json").read_text()
    fingerprint = few_readings().fingerprint
    assert fingerprint in record
    (tmp_path / "run" / "run.json").write_text(record.replace(fingerprint, "0" * 64))
    with pytest.raises(InputError, match="content has changed"):
        resume_run(tmp_path / "run")


def train_and_save_often(folder: Path) -> None:
    """Trains, or goes on, and saves after every step."""
    with pytest.MonkeyPatch.context() as patch, fed_as_those_that_are_killed():
        patch.setattr("candor.training.loop.SECONDS_BETWEEN_SAVES", 0.0)
        if (folder / "run.json").exists():
            resume_run(folder)
        else:
            train(folder)


def be_killed(folder: Path, kills: Iterable[float]) -> int:
    """Trains in processes that are killed so many seconds after they first saved something new, then to the end.

    Returns how many of them were killed while they trained.
    """
    done, checkpoint = 0, Checkpoint(folder / "training")
    for seconds in itertools.chain(kills, [None]):
        before = replace(checkpoint.progress(), seconds=0.0)
        with Forked(partial(train_and_save_often, folder)) as child:
            if seconds is None:
                assert child.wait() == 0, child.stderr.read()
                break
            while child.poll() is None and replace(checkpoint.progress(), seconds=0.0) == before:
                time.sleep(0.005)
            time.sleep(seconds)
            child.send_signal(signal.SIGKILL)
            done += child.wait() == -signal.SIGKILL and not checkpoint.progress().is_finished
    return done


def assert_same_weights(one: Path, other: Path) -> None:
    for file in ("training/last.safetensors", "training/best.safetensors", "model/state.safetensors"):
        first, second = load_file(one / file), load_file(other / file)
        assert first.keys() == second.keys()
        for name, array in first.items():
            np.testing.assert_array_equal(second[name], array, err_msg=f"{file}: {name}")


def test_a_killed_training_ends_with_the_same_weights_to_the_bit(tmp_path: Path, whole: Path) -> None:
    assert be_killed(tmp_path / "killed", [0.0]) == 1
    assert_same_weights(whole, tmp_path / "killed")


@pytest.mark.slow
def test_fifty_kills_change_nothing(tmp_path: Path) -> None:
    be_killed(tmp_path / "whole", [])
    chance, kills = random.Random(0), 0
    for trial in range(20):
        kills += be_killed(tmp_path / f"killed-{trial}", [chance.uniform(0.0, 0.15) for _ in range(8)])
        assert_same_weights(tmp_path / "whole", tmp_path / f"killed-{trial}")
        if kills >= 50:
            break
    assert kills >= 50
