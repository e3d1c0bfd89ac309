"""CANDOR as a forecaster: it learns, remembers its recipe, and a run of it survives being killed."""

import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny import PROTOCOL, tiny_recipe

from candor.data.alignment import align
from candor.data.panel import Covariate
from candor.data.protocol import make_task
from candor.errors import InputError
from candor.evaluation import evaluate
from candor.forecasting import LastValue, forecasters
from candor.forecasting.candor import Candor
from candor.forecasting.choices import choose_recipe, choose_settings
from candor.forecasting.contract import sample_panel
from candor.forecasting.runs import load_run
from candor.forecasting.train import Limits, TrainingStoppedError, resume_run, train_model
from candor.settings import parse_settings

SCRIPT = Path(__file__).parents[1] / "support" / "train_and_be_killed.py"


def train(folder: Path, limits: Limits = Limits(), **training: object) -> None:  # noqa: B008 - frozen
    settings = {"recipe": tiny_recipe(**training)}
    train_model(sample_panel(), PROTOCOL, "candor", settings, folder, is_catalogued=False, limits=limits)


def test_it_learns_a_daily_rhythm_that_the_last_reading_does_not_know() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    recipe = tiny_recipe(epochs=8)
    ours = Candor(12, 4, recipe=recipe).fit(task.panel, task.split)
    simple = LastValue(12, 4).fit(task.panel, task.split)
    assert evaluate(ours, task).overall()["mae"] < 0.8 * evaluate(simple, task).overall()["mae"]


def test_it_needs_no_split_and_knows_its_errors() -> None:
    panel = sample_panel()
    ours = Candor(history=12, horizon=4, recipe=tiny_recipe(epochs=1)).fit(panel)
    interval = ours.predict_interval(panel)
    assert (interval.lower <= interval.forecast).all() and (interval.forecast <= interval.upper).all()


def test_it_reads_rain_before_the_forecast_and_none_after_it() -> None:
    panel = sample_panel()
    rain = np.random.default_rng(0).gamma(0.3, size=panel.values.shape).astype(np.float32)
    wet = replace(panel, covariates={"rain": Covariate(rain, "mm/h")})
    recipe = tiny_recipe(epochs=1)
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


def test_an_anchored_forecast_moves_with_the_level_of_the_readings() -> None:
    panel = sample_panel()
    ours = Candor(history=12, horizon=4, recipe=tiny_recipe(epochs=1)).fit(panel)
    raised = replace(panel, values=panel.values + np.float32(3))
    origin, alive = np.array([400]), [0, 1, 2, 4]  # the dead sensor is filled with a mean, which does not move
    moved = ours.predict(raised, origin) - ours.predict(panel, origin)
    np.testing.assert_allclose(moved[..., alive], 3, atol=0.2)


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


def test_what_is_chosen_for_own_data_is_said_and_can_be_overruled() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    recipe, reasons = choose_recipe(task, None, {"epochs": 3, "training.batch": 7, "hidden": 16, "loss.branch": 0.5})
    assert (recipe.training.epochs, recipe.training.batch, recipe.loss.branch) == (3, 7, 0.5)
    assert recipe.model == {"hidden": 16} and recipe.anchor
    assert any("patches of 4 steps" in reason for reason in reasons)
    with pytest.raises(InputError, match="no setting called 'wings'"):
        choose_recipe(task, None, {"wings": 2})


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


def test_a_budget_ends_training_in_good_order_with_a_model_and_it_goes_on_later(tmp_path: Path) -> None:
    train(tmp_path / "whole")
    train(tmp_path / "pieces", Limits(budget_minutes=0.0))
    assert load_run(tmp_path / "pieces").forecaster.predict(sample_panel()).shape == (1, 4, 5)
    machine = tmp_path / "whole" / "training" / "machine.json"
    (tmp_path / "pieces" / "training" / "machine.json").write_bytes(machine.read_bytes())
    resume_run(tmp_path / "pieces")
    assert_same_weights(tmp_path / "whole", tmp_path / "pieces", rtol=1e-3)


def test_an_interruption_leaves_a_run_that_says_how_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(TrainingStoppedError, match=r"Ctrl-C(.|\n)*candor train --resume"):
        train(tmp_path / "run", Limits(interruption=lambda: "Ctrl-C was pressed"))
    with pytest.raises(InputError, match="unfinished"):
        load_run(tmp_path / "run")
    with pytest.raises(InputError, match="a run in this folder already"):
        train(tmp_path / "run")
    resume_run(tmp_path / "run")
    assert load_run(tmp_path / "run").forecaster.name == "candor"


def test_training_can_begin_with_the_weights_of_another_run(tmp_path: Path) -> None:
    train(tmp_path / "first")
    settings = {"recipe": tiny_recipe(epochs=1, learning_rate=1e-12)}
    started = train_model(
        sample_panel(), PROTOCOL, "candor", settings, tmp_path / "second", is_catalogued=False,
        start_from=tmp_path / "first",
    )  # fmt: skip
    first = load_run(tmp_path / "first").forecaster.predict(sample_panel())
    np.testing.assert_allclose(started.forecaster.predict(sample_panel()), first, atol=1e-4)


def test_data_that_changed_under_a_stopped_training_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingStoppedError):
        train(tmp_path / "run", Limits(interruption=lambda: "enough"))
    record = (tmp_path / "run" / "run.json").read_text()
    fingerprint = sample_panel().fingerprint
    assert fingerprint in record
    (tmp_path / "run" / "run.json").write_text(record.replace(fingerprint, "0" * 64))
    with pytest.raises(InputError, match="content has changed"):
        resume_run(tmp_path / "run")


def be_killed(folder: Path, kills: list[float]) -> int:
    """Trains in processes that are killed so many seconds after they began, then to the end; returns the kills."""
    done = 0
    for seconds in [*kills, None]:
        with subprocess.Popen([sys.executable, str(SCRIPT), str(folder)], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "begun\n"
            if seconds is None:
                assert child.wait() == 0
            else:
                time.sleep(seconds)
                child.send_signal(signal.SIGKILL)
                done += child.wait() == -signal.SIGKILL
    return done


def assert_same_weights(one: Path, other: Path, rtol: float = 0.0) -> None:
    for file in ("training/last.safetensors", "training/best.safetensors", "model/state.safetensors"):
        first, second = load_file(one / file), load_file(other / file)
        assert first.keys() == second.keys()
        for name, array in first.items():
            np.testing.assert_allclose(second[name], array, rtol=rtol, atol=rtol, err_msg=f"{file}: {name}")


def test_a_killed_training_ends_with_the_same_weights_to_the_bit(tmp_path: Path) -> None:
    be_killed(tmp_path / "whole", [])
    assert be_killed(tmp_path / "killed", [0.4, 1.0, 1.6]) >= 2
    assert_same_weights(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.slow
def test_fifty_kills_change_nothing(tmp_path: Path) -> None:
    be_killed(tmp_path / "whole", [])
    chance = random.Random(0)
    for trial in range(5):
        be_killed(tmp_path / f"killed-{trial}", [chance.uniform(0.0, 1.5) for _ in range(10)])
        assert_same_weights(tmp_path / "whole", tmp_path / f"killed-{trial}")
