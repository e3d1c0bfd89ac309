"""Stages follow one another, each within its share of a budget, and whatever ends a session changes nothing."""

import itertools
import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from slope import Slope, slope_data
from tiny import PROTOCOL

import candor.training.loop
import candor.training.stages
from candor.core.errors import InputError
from candor.core.files import write_json
from candor.forecasting import forecasters
from candor.forecasting.contract import sample_panel
from candor.nets.recipe import Stage, TrainingSettings
from candor.runs.fit import Limits, TrainingStoppedError, resume_run, train_model
from candor.training.batch_plan import BatchPlan
from candor.training.checkpoint import Checkpoint, Progress
from candor.training.loop import Stopped, Trainer
from candor.training.stages import Session

MODELS = {"latenttsf": "autoencoder", "rstib-mlp": "teacher", "autostf": "search"}
RATIOS = {"latenttsf": {"autoencoder_epochs": 1.0}, "rstib-mlp": {"teacher_epochs": 1.0}, "autostf": {}}


class Killed(BaseException):
    """Ends a training where it stands, as a kill does: nothing is saved any more."""


def train(folder: Path, model: str, learning_rate: float = 1e-3, **more: Any) -> None:
    """Trains two epochs of two batches each: enough for a kill between two steps, after an epoch that was saved."""
    schedule = {"epochs": 2, "batch": 64, "epoch_windows": 96, "validation_windows": 32}
    recipe = {"training": schedule | {"learning_rate": learning_rate}} | RATIOS[model]
    settings = {"sizes": forecasters.get(model).tiny, "recipe": recipe}
    train_model(sample_panel().slice(0, 300), PROTOCOL, model, settings, folder, is_catalogued=False, **more)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns what makes the run of a model that nothing interrupts, once; `said` tells what was reported."""
    folder = tmp_path_factory.mktemp("whole")

    @cache
    def whole(model: str) -> Path:
        said: list[str] = []
        train(folder / model, model, report=lambda what, _: said.append(what))
        (folder / model / "said").write_text("\n".join(said))
        return folder / model

    return whole


def learned(run: Path) -> dict[str, Any]:
    return load_file(run / "model" / "state.safetensors")


def assert_same(one: Path, other: Path) -> None:
    first, second = learned(one), learned(other)
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(second[name], array, err_msg=name)


def be_killed(monkeypatch: pytest.MonkeyPatch, folder: Path, model: str, stage: str) -> None:
    """Trains until the second batch of the second epoch of a stage."""
    learn = Trainer._train_batch

    def learn_or_die(self: Trainer, *arguments: Any) -> None:
        if (self.stage, self.progress.epoch, self.progress.batch) == (stage, 1, 1):
            raise Killed
        learn(self, *arguments)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Trainer, "_train_batch", learn_or_die)
        train(folder, model)


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize(
    "model", [pytest.param(name, marks=pytest.mark.slow) if name == "autostf" else name for name in MODELS]
)
def test_a_training_that_is_killed_in_any_stage_goes_on_to_the_same_weights(
    trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, is_last: bool
) -> None:
    if is_last:  # a kill finds what the last step saved; else what the last epoch did
        monkeypatch.setattr(candor.training.loop, "SECONDS_BETWEEN_SAVES", 0.0)
    be_killed(monkeypatch, tmp_path / "run", model, "" if is_last else MODELS[model])
    assert Checkpoint(tmp_path / "run" / "training").exists == is_last
    if is_last:  # by then nothing of the stages before is needed any more
        shutil.rmtree(tmp_path / "run" / "training" / MODELS[model])
    resume_run(tmp_path / "run")
    assert_same(trained(model), tmp_path / "run")
    assert (tmp_path / "run" / "training" / MODELS[model]).exists() != is_last


def test_a_budget_that_ends_in_an_earlier_stage_leaves_a_run_to_go_on_with(trained: Any, tmp_path: Path) -> None:
    with pytest.raises(TrainingStoppedError, match="budget"):
        train(tmp_path / "run", "latenttsf", limits=Limits(budget_minutes=0.0))
    assert not (tmp_path / "run" / "model").exists()  # nothing has learned to forecast yet
    assert not (tmp_path / "run" / "training" / "machine.json").exists()  # the last stage has not begun
    resume_run(tmp_path / "run")
    assert_same(trained("latenttsf"), tmp_path / "run")


def test_what_a_window_takes_in_smaller_batches_is_what_a_budget_counts_with() -> None:
    found = BatchPlan(64, 2, 0.01, {"4": 0.05, "16": 0.02, "32": 0.015, "64": 0.01, "128": 0.011})
    assert [found.seconds_in(batch) for batch in (128, 126, 64, 40, 8, 4)] == [0.01, 0.015, 0.015, 0.02, 0.05, 0.05]
    assert BatchPlan(64, 2, 0.01).seconds_in(16) == 0.01  # of an earlier version, which kept one number
    windows, training = SimpleNamespace(training=range(10_000)), TrainingSettings(epochs=100, batch=64)
    session = Session(windows, 0, budget_seconds=100.0)
    short = session._schedule(training, 100.0, replace(found, workers=1), 12, None)
    assert short.batch == 16 and 8 * short.epoch_windows <= 0.8 * 100 / 0.02 < 8 * (short.epoch_windows + 16)


@pytest.mark.parametrize("model", MODELS)
def test_a_budget_that_schedules_were_fitted_to_never_makes_a_model_that_learned_nothing(
    tmp_path: Path, model: str
) -> None:
    with pytest.raises(InputError, match="before the network itself began to learn"):
        train(tmp_path / "run", model, limits=Limits(budget_minutes=0.0, fits_schedule=True))
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.parametrize("model", MODELS)
def test_reports_name_the_stage_and_the_last_one_comes_last(trained: Any, model: str) -> None:
    said = (trained(model) / "said").read_text().splitlines()
    works = [work for work, _ in itertools.groupby(what.partition(" | ")[0] for what in said)]
    training = [work for work in works if work.startswith("training")]
    assert training == [f"training, stage {MODELS[model]}", "training"]
    details = [what.partition(" | ")[2] for what in said if what.startswith("training, stage")]
    assert all(detail.startswith(f"{MODELS[model]}: epoch ") for detail in details)
    stage, last = (Checkpoint(trained(model) / "training" / name) for name in (MODELS[model], ""))
    assert [len(checkpoint.read_log()) for checkpoint in (stage, last)] == [2, 2]


@pytest.mark.parametrize("model", MODELS)
def test_a_run_that_begins_with_the_weights_of_another_needs_no_stages(
    trained: Any, tmp_path: Path, model: str
) -> None:
    train(tmp_path / "run", model, learning_rate=1e-30, start_from=trained(model))
    assert not (tmp_path / "run" / "training" / MODELS[model]).exists()
    first, second = learned(trained(model)), learned(tmp_path / "run")
    assert first.keys() == second.keys()
    for name in (name for name in first if "running" not in name and "num_batches" not in name):
        np.testing.assert_allclose(second[name], first[name], atol=1e-6, err_msg=name)


class Clock(SimpleNamespace):
    """A clock that goes only when it is told to, and by `step` seconds whenever it is asked."""

    now, step = 0.0, 0.0

    def monotonic(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(candor.training.stages, "time", made)
    return made


def session(folder: Path, **more: Any) -> Session:
    return Session(slope_data(), 0, folder, is_divisible=False, **{"began": 0.0} | more)


def epochs_in(folder: Path) -> int:
    return json.loads((folder / "schedule.json").read_text())["epochs"]


def test_a_stage_gets_its_share_of_a_budget_and_the_last_one_all_that_is_left(tmp_path: Path, clock: Clock) -> None:
    many = TrainingSettings(epochs=10_000, batch=400)
    stages = (Stage(many, "first", share=0.25), Stage(many))
    for stage in stages:
        write_json(tmp_path / stage.name / "machine.json", {"micro_batch": 400, "workers": 1, "seconds_per_window": 1})
    limits = {"budget_seconds": 40_000.0, "stop_reason": lambda: "enough"}
    with pytest.raises(Stopped):
        session(tmp_path, **limits).train(Slope(), stages[0])
    assert epochs_in(tmp_path / "first") == 0.8 * 10_000 / 400  # the rest of the time is for validation
    clock.now = 16_000.0  # whatever the first stage took
    with pytest.raises(Stopped):
        session(tmp_path, **limits).train(Slope(), stages[1])
    assert epochs_in(tmp_path) == 0.8 * 24_000 / 400


def test_a_stage_whose_share_is_used_up_ends_for_good(tmp_path: Path, clock: Clock) -> None:
    stage = Stage(TrainingSettings(epochs=10_000, batch=100, learning_rate=0.01), "first", share=0.5)
    write_json(tmp_path / "first" / "machine.json", {"micro_batch": 100, "workers": 1, "seconds_per_window": 1e-9})
    clock.step = 1.0
    found = session(tmp_path, budget_seconds=30.0).train(Slope(), stage)
    progress = Checkpoint(tmp_path / "first").progress()
    assert progress.is_finished and 1 <= (progress.learned + progress.windows) / 100 <= 15  # batches
    again = session(tmp_path, budget_seconds=1e9).train(Slope(), stage)
    assert torch.equal(found["weight"], again["weight"]) and float(found["weight"]) != 0
    assert Checkpoint(tmp_path / "first").progress().epoch == progress.epoch


def test_time_that_earlier_sessions_gave_to_a_stage_counts_as_its_own(tmp_path: Path, clock: Clock) -> None:
    slope = Slope()
    checkpoint = Checkpoint(tmp_path / "first")
    checkpoint.save(Progress(seconds=60.0), slope.network, torch.optim.Adam(slope.network.parameters()))
    write_json(tmp_path / "first" / "machine.json", {"micro_batch": 100, "workers": 1, "seconds_per_window": 1e-9})
    clock.step = 1.0
    stage = Stage(TrainingSettings(epochs=10_000, batch=100), "first", share=0.5)
    session(tmp_path, budget_seconds=60.0).train(slope, stage)  # half of 120 seconds are 60
    progress = checkpoint.progress()
    assert progress.is_finished and (progress.epoch, progress.batch) == (0, 1)


def test_the_time_of_all_stages_is_the_time_of_the_training(tmp_path: Path) -> None:
    slope = Slope()
    optimiser = torch.optim.Adam(slope.network.parameters())
    for name, seconds in (("first", 3.0), ("second", 4.0)):
        Checkpoint(tmp_path / name).save(Progress(seconds=seconds), slope.network, optimiser)
    training = Checkpoint(tmp_path)
    assert not training.exists and training.progress().seconds == 7.0
    training.save(Progress(seconds=5.0, epoch=2), slope.network, optimiser)
    assert (training.progress().seconds, training.progress().epoch) == (12.0, 2)
