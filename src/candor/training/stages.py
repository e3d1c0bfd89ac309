"""Trainings in stages: a network may need what a search, a teacher or an autoencoder learned before it.

All stages go through the same loop, and each keeps its state in a folder of its own, so that a session resumes in the
stage that was interrupted:

training/NAME/...     the state of an earlier stage, see candor.training.checkpoint
training/found.json   what earlier stages found that the network is built from, if anything
training/...          the state of the last stage, which is the only one of most networks
"""

import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from candor.core.files import read_json, write_json
from candor.core.progress import Report, silent
from candor.core.settings import parse_settings
from candor.nets.recipe import Stage, TrainingSettings
from candor.nets.trainable import Trainable
from candor.training.batch_plan import BatchPlan, find_batch_plan
from candor.training.batches import Pacing
from candor.training.checkpoint import Checkpoint, Weights
from candor.training.loop import Stopped, StopReason, Trainer, TrainingData
from candor.training.processes import in_main_process, join_processes

_SHARE_IS_USED_UP = "its share of the budget is used up"
_SHARE_OF_MEASURING = 0.1  # of the time of a stage; a little more where two passes take longer than that


@dataclass(frozen=True)
class Session:
    """A stretch of training over all stages, from the beginning or from where the one before it stopped."""

    data: TrainingData
    seed: int
    folder: Path | None = None
    """Where state is kept; None keeps it in memory only."""
    report: Report = silent
    stop_reason: StopReason = lambda: None
    trains_on: bool = True
    """Whether to go on with the training in the folder, or to take its best weights as they are."""
    budget_seconds: float | None = None
    """Shortens all schedules so that training takes about this long; None leaves them."""
    is_divisible: bool = True
    """Whether a batch may be cut into micro-batches."""
    began: float = field(default_factory=time.monotonic)
    """On the monotonic clock in seconds."""

    def train(self, trainable: Trainable, stage: Stage) -> Weights:
        """Return the best weights of a stage, once it is trained to its end; raises `Stopped` before that if asked to.

        A stage before the last also ends when its share of the budget is used up, so that something is left for those
        that come after it.
        """
        checkpoint = None if self.folder is None else Checkpoint(self.folder / stage.name)
        make = partial(
            Trainer, trainable, self.data, seed=self.seed, checkpoint=checkpoint, report=self.report, stage=stage.name
        )
        if not self.trains_on:
            return make(settings=stage.training, plan=BatchPlan(1, 1)).saved_weights()
        seconds, now = self._seconds_for(stage, checkpoint), time.monotonic()
        plan = find_batch_plan(
            trainable, self.data.training, stage.training.batch, checkpoint, self.report,
            is_divisible=self.is_divisible, seconds=None if seconds is None else _SHARE_OF_MEASURING * seconds,
        )  # fmt: skip
        left = None if seconds is None else max(0.0, seconds - (time.monotonic() - now))  # measuring took some of it
        path = None if checkpoint is None else checkpoint.folder / "schedule.json"
        settings = in_main_process(lambda: self._schedule(stage.training, left, plan, trainable.horizon, path))
        deadline = None if seconds is None or not stage.name else now + seconds
        there = len(self.data.training)
        trainer = make(
            settings=settings,
            plan=plan.sharing(settings.batch),
            stop_reason=self._stopping_at(deadline),
            pacing=None if left is None else Pacing.over(left, min(there, stage.training.epoch_windows or there)),
        )
        try:
            return trainer.run()
        except Stopped as stopped:
            if str(stopped) != _SHARE_IS_USED_UP:
                raise
            return trainer.end()

    def has_reached_the_last(self) -> bool:
        """Return whether the last stage has begun in an earlier session: its state holds all that came before it."""
        folder = self.folder
        return folder is not None and in_main_process(lambda: Checkpoint(folder).exists)

    def save_found(self, found: dict[str, Any]) -> None:
        """Keep what earlier stages found, if anything, for sessions that begin with the last one."""
        if self.folder is not None and found:
            in_main_process(partial(write_json, self.folder / "found.json", found))

    def load_found(self) -> dict[str, Any]:
        """Return what earlier stages found; empty if nothing is kept."""
        path = None if self.folder is None else self.folder / "found.json"
        return in_main_process(lambda: read_json(path) if path is not None and path.is_file() else {})

    def _seconds_for(self, stage: Stage, checkpoint: Checkpoint | None) -> float | None:
        """Return how long a stage may take from now on; what earlier sessions gave to it counts as its own."""
        if self.budget_seconds is None:
            return None
        left = self.budget_seconds - (time.monotonic() - self.began)
        spent = 0.0 if checkpoint is None or not stage.name else checkpoint.progress().seconds
        return max(0.0, stage.share * (left + spent) - spent)

    def _schedule(
        self, training: TrainingSettings, seconds: float | None, plan: BatchPlan, horizon: int, path: Path | None
    ) -> TrainingSettings:
        """Return the schedules of a stage, or those that a budget was given when the stage began."""
        if path is not None and path.is_file():
            return parse_settings(TrainingSettings, read_json(path), str(path))
        if seconds is None:
            return training
        fit, processes = (
            partial(training.within, len(self.data.training), horizon=horizon),
            join_processes().num_processes,
        )
        shortened = fit(int(processes * seconds / plan.seconds_per_window))
        if shortened.batch < training.batch:  # a window takes longer in smaller batches
            shortened = fit(int(processes * seconds / plan.seconds_in(shortened.batch)))
        if path is not None:
            write_json(path, shortened.model_dump(mode="json"))
        return shortened

    def _stopping_at(self, deadline: float | None) -> StopReason:
        def reason() -> str | None:
            is_over = deadline is not None and time.monotonic() >= deadline
            return self.stop_reason() or (_SHARE_IS_USED_UP if is_over else None)

        return reason
