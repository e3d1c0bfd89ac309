"""Initial weights that come from another run: read before a training begins, and kept with it.

training/start.safetensors   the weights, and what earlier stages of training found, as in a forecaster's state
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from candor.core.errors import InputError
from candor.core.files import atomic_file, read_json, sha256_of_file
from candor.forecasting.forecaster import State
from candor.forecasting.network import FOUND, WEIGHTS, found_state
from candor.runs.run import TRAINING, Start, is_finished, load_record, load_run, load_task
from candor.training.checkpoint import Checkpoint

START = "start.safetensors"


@dataclass(frozen=True, eq=False)
class InitialWeights:
    """What a training begins with."""

    state: State
    """Weights and what earlier stages found, as in a forecaster's state."""
    run: Path
    """The run directory they come from."""
    weights: Literal["model", "best", "last"]
    """Which of its weights they are."""
    sensors: tuple[str, ...]
    """Ids of the sensors they were learned for: embeddings have a row for each."""

    def save(self, folder: Path) -> Start:
        """Keeps them in the folder of a training, so that it begins with them whenever it has to begin again."""
        with atomic_file(folder / START) as temporary:
            save_file({name: np.ascontiguousarray(array) for name, array in self.state.items()}, temporary)
        return Start(run=str(self.run), weights=self.weights, sha256=sha256_of_file(folder / START))


def find_initial_weights(run: Path, model: str) -> InitialWeights:
    """Returns the weights of a run for a model of the same name.

    They are those of its fitted model; of an unfinished run the best, or the last before any epoch has ended.
    """
    record, checkpoint = load_record(run), Checkpoint(run / TRAINING)
    if record.model != model:
        raise InputError(
            f"this is a run of {record.model}, and {model} cannot begin with its weights",
            where=str(run),
            hint=f"name a run of {model}, or train {record.model}",
        )
    if is_finished(run):
        forecaster = load_run(run).forecaster
        state = {name: part for name, part in forecaster.state_.items() if name.startswith((WEIGHTS, FOUND))}
        return InitialWeights(state, run, "model", forecaster.trained_on_.panel.sensor_ids)
    if not checkpoint.exists:
        raise InputError(
            "this run has learned nothing yet that another could begin with",
            where=str(run),
            hint="wait for its training, or go on with it: candor train --resume RUN",
        )
    has_best = checkpoint.progress().best_epoch is not None
    learned = checkpoint.load_best() if has_best else checkpoint.load_last()
    found = checkpoint.folder / "found.json"
    state = found_state(read_json(found) if found.is_file() else {})
    state |= {f"{WEIGHTS}{name}": tensor.numpy() for name, tensor in learned.items()}
    return InitialWeights(state, run, "best" if has_best else "last", load_task(run, record).panel.sensor_ids)


def load_initial_weights(folder: Path, start: Start | None) -> State | None:
    """Returns the weights that the training in a folder began with, by its run's record; None if drawn at random."""
    path = folder / START
    if start is None:
        return None
    try:
        if sha256_of_file(path) != start.sha256:
            raise InputError("the first weights of this training were changed", where=str(path), hint="begin it anew")
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"the first weights of this training cannot be read ({error})", where=str(path)) from None
