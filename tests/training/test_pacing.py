"""Under a budget schedules come to their end, however wrong the guess was that they began with."""

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from slope import Slope, slope_data
from torch import Tensor

import candor.training.batch_plan
import candor.training.batches
import candor.training.loop
import candor.training.stages
from candor.core.files import write_json
from candor.nets.recipe import Stage, TrainingSettings
from candor.nets.trainable import Objective, StepContext
from candor.training.batch_plan import find_batch_plan
from candor.training.batches import Pacing
from candor.training.checkpoint import Checkpoint
from candor.training.loop import Trainer
from candor.training.stages import Session

BUDGET = 1000.0
WHOLE = TrainingSettings(epochs=40, batch=80, milestones=(20, 36), patience=100)
seconds, counts = st.floats(0.001, 1e4), st.integers(1, 10_000)


class Clock:
    """A clock that goes only when somebody works."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    perf_counter = monotonic


class SlowSlope(Slope):
    """A slope that takes its time: so many seconds for each window it learns from, a third of it to forecast."""

    def __init__(self, clock: Clock, of_window: float) -> None:
        super().__init__()
        self.clock, self.of_window = clock, of_window

    def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
        self.clock.now += 2 / 3 * self.of_window * len(batch["inputs"])
        return super().objective(batch, step)

    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        self.clock.now += self.of_window * len(batch["inputs"]) / 3
        return super().forecast(batch)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (candor.training.loop, candor.training.batch_plan, candor.training.batches, candor.training.stages):
        monkeypatch.setattr(module, "time", made)
    return made


def train(folder: Path, clock: Clock, guess: float, of_window: float = 0.1) -> Checkpoint:
    """Trains within the budget after a window was guessed to take so many seconds."""
    write_json(folder / "machine.json", {"micro_batch": 80, "workers": 1, "seconds_per_window": guess})
    began = clock.now
    limits: dict[str, Any] = {
        "budget_seconds": BUDGET,
        "stop_reason": lambda: "time is over" if clock.now > began + BUDGET else None,
    }
    session = Session(slope_data(), 0, folder, is_divisible=False, began=began, **limits)
    session.train(SlowSlope(clock, of_window), Stage(WHOLE))
    return Checkpoint(folder)


@pytest.mark.parametrize("guess", [0.02, 2.0])
def test_a_training_ends_its_schedule_within_its_budget_and_uses_it(tmp_path: Path, clock: Clock, guess: float) -> None:
    checkpoint = train(tmp_path, clock, guess)
    log = checkpoint.read_log()
    assert checkpoint.progress().is_finished and clock.now <= BUDGET
    assert clock.now > 0.85 * BUDGET or {line["windows"] for line in log[1:]} == {400}  # all there are
    assert log[-1]["learning_rate"] == pytest.approx(0.25 * log[0]["learning_rate"])  # both falls came
    assert sum(line["windows"] for line in log) == checkpoint.progress().learned
    assert all(16 <= line["windows"] <= 400 for line in log)


def test_where_all_fits_in_no_epoch_is_cut(tmp_path: Path, clock: Clock) -> None:
    log = train(tmp_path, clock, guess=0.002, of_window=0.01).read_log()
    assert [line["windows"] for line in log] == [400] * 40


def test_how_many_windows_an_epoch_takes_outlasts_a_kill(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = Trainer._train_batch

    def learn_or_die(self: Trainer, *arguments: Any) -> None:
        if (self.progress.epoch, self.progress.batch) == (3, 1):
            raise KeyboardInterrupt
        learn(self, *arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "_train_batch", learn_or_die)
        train(tmp_path, clock, guess=0.5)
    settled = Checkpoint(tmp_path).progress().epoch_windows
    clock.now += 1e6  # the next session is another day
    lines = train(tmp_path, clock, guess=0.5).read_log()
    assert lines[3]["windows"] == settled != lines[0]["windows"]


@given(
    last=st.tuples(counts, seconds, seconds),
    left=seconds,
    epochs=st.integers(1, 100),
    batch=st.integers(1, 64),
)
def test_epochs_fit_into_the_time_left_or_are_as_short_as_may_be(
    last: tuple[int, float, float], left: float, epochs: int, batch: int
) -> None:
    pacing, (learned, learning, validating) = Pacing(time.monotonic() + left, most=5000), last
    found = pacing.windows(*last, epochs, batch)
    assert batch <= found <= 5000 and (found == 5000 or found % batch == 0)
    taken = epochs * (validating + found * learning / learned)
    assert found == batch or taken <= left + 1e-6
    a_batch_more = taken + epochs * batch * learning / learned
    assert found == 5000 or a_batch_more >= left - 0.5  # the clock went on meanwhile


@pytest.mark.parametrize(("allowed", "tried"), [(None, [4, 8, 16, 32, 64]), (6.5, [4, 8]), (0.0, [4])])
def test_finding_out_what_suits_a_machine_keeps_to_its_time(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, allowed: float | None, tried: list[int]
) -> None:
    monkeypatch.setattr(candor.training.batch_plan, "_FIRST_SIZE", 4)
    monkeypatch.setattr(candor.training.batch_plan, "_MEASURED", {})

    class Heavy(SlowSlope):
        """Takes half a second for a pass, and a tenth more for each window."""

        def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
            self.clock.now += 0.5
            return super().objective(batch, step)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = find_batch_plan(Heavy(clock, 0.1), slope_data().training, 64, seconds=allowed)
    finally:
        torch.set_num_threads(threads)
    assert [int(size) for size in found.tried] == tried
    assert found.micro_batch == tried[-1] and found.seconds_per_window == pytest.approx(0.1 + 0.5 / tried[-1])
