"""CANDOR as a forecaster: fit, predict, save and load like every other."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import model_validator
from pydantic.dataclasses import dataclass

from candor.data.adjacency import adjacency_of
from candor.data.calendar import calendar_of
from candor.data.missing import Fill, fill
from candor.data.panel import Panel
from candor.data.scaling import Scaler, fit_scaler
from candor.data.splits import Origins, Split
from candor.data.windows import Windows, count_inputs
from candor.forecasting.forecaster import REFUSE_UNKNOWN, Forecaster, State, forecasters
from candor.forecasting.simple import training_means
from candor.forecasting.trainable import CandorTrainable
from candor.model.candor import CandorNetwork
from candor.model.propagation import EdgeArrays
from candor.progress import Report, silent
from candor.training.batches import micro_batches
from candor.training.checkpoint import Checkpoint
from candor.training.crew import Crew
from candor.training.loop import StopReason, Trainer, TrainingData
from candor.training.machine import find_machine
from candor.training.recipe import Recipe
from candor.training.trainable import Trainable

_WINDOWS_AT_A_TIME = 16
_WEIGHTS = "weights/"
_TRAINED_WITHOUT_SPLIT = 0.8


@forecasters.register("candor")
@dataclass(config=REFUSE_UNKNOWN)
class Candor(Forecaster):
    """Component-Aware Network Dynamics with Ordered Relations.

    Args:
        fill: how gaps in what is read are filled.
        recipe: sizes, training and objective.
    """

    fill: Fill = "last"
    recipe: Recipe = Recipe()

    name = "candor"

    @model_validator(mode="after")
    def _refuse_impossible_sizes(self) -> Self:
        self.recipe.model_settings(1, self.history, self.horizon)
        return self

    def fit(
        self,
        panel: Panel,
        split: Split | None = None,
        report: Report = silent,
        *,
        folder: Path | None = None,
        stop_reason: StopReason = lambda: None,
        start_from: State | None = None,
        trains_on: bool = True,
    ) -> Self:
        """Trains the network; without a split the last fifth of the panel chooses weights and calibrates intervals.

        Args:
            panel: the readings.
            split: which origins are for training and for validation.
            report: is told how far training has come.
            folder: where the state of training is kept; training goes on from there if something is there.
            stop_reason: is asked after every step whether to stop.
            start_from: what another Candor learned, to begin with its weights.
            trains_on: whether to go on with the training in `folder`, or to take its best weights as they are.
        """
        self._session: dict[str, Any] = {
            "folder": folder,
            "stop_reason": stop_reason,
            "start_from": start_from,
            "trains_on": trains_on,
        }
        try:
            return super().fit(panel, split if split is not None else self._own_split(panel), report)
        finally:
            del self._session

    def _own_split(self, panel: Panel) -> Split:
        origins = np.arange(self.history, panel.times.length - self.horizon + 1, dtype=np.int64)
        end = int(_TRAINED_WITHOUT_SPLIT * panel.times.length)
        train = origins[origins + self.horizon <= end]
        return Split(train, origins[origins >= end], origins[:0], end) if len(train) else Split(
            origins, origins, origins[:0], panel.times.length
        )  # fmt: skip

    def selection(self, split: Split) -> Split:
        """Returns the split whose validation part chooses the best weights."""
        return split if self.recipe.selection == "whole" else super().selection(split)

    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        means = training_means(panel, split)
        filled = fill(panel.values, self.fill, means)
        scaler = self._fit_scaler(panel, filled, split)
        inputs = scaler.scale(filled)
        spans = self.history, self.horizon
        data = TrainingData(
            training=Windows(panel, inputs, split.train, *spans),
            validation=Windows(panel, inputs, split.validation, *spans),
            sensors=panel.sensor_ids,
            unit=panel.unit,
        )
        state = _edge_state(panel) | {
            "means": means,
            "scaler": np.array([scaler.mean, scaler.deviation]),
        }
        torch_state = torch.random.get_rng_state()
        torch.manual_seed(self.seed)
        trainable = self._trainable(state, len(panel.sensors))
        torch.random.set_rng_state(torch_state)
        if self._session["start_from"] is not None:
            trainable.network.load_state_dict(_weights(self._session["start_from"]))
        trainer = self._trainer(trainable, data, report)
        weights = trainer.run() if self._session["trains_on"] else trainer.saved_weights()
        return state | {f"{_WEIGHTS}{name}": tensor.numpy() for name, tensor in weights.items()}

    def _fit_scaler(self, panel: Panel, filled: NDArray[np.float32], split: Split) -> Scaler:
        if self.recipe.scaler == "windows":
            return fit_scaler(filled, count_inputs(split.train, self.history, len(filled)))
        return fit_scaler(panel.values[: split.train_end])

    def _trainer(self, trainable: CandorTrainable, data: TrainingData, report: Report) -> Trainer:
        folder, settings = self._session["folder"], self.recipe.training
        checkpoint = None if folder is None else Checkpoint(folder)
        machine = find_machine(trainable, data.training, settings.batch, checkpoint, report)
        return Trainer(trainable, data, settings, self.seed, machine, checkpoint, report, self._session["stop_reason"])

    def _trainable(self, state: State, nodes: int) -> CandorTrainable:
        edges = EdgeArrays(state["edges/source"], state["edges/target"], state["edges/weight"])
        network = CandorNetwork(self.recipe.model_settings(nodes, self.history, self.horizon), edges)
        mean, deviation = (float(number) for number in state["scaler"])
        recipe = self.recipe
        return CandorTrainable(
            network, Scaler(mean, deviation), recipe.loss, recipe.loss_space == "original", recipe.anchor
        )

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        with torch.random.fork_rng(devices=[]):  # building a network draws its first weights
            trainable = self._trainable(self.state_, len(panel.sensors))
        trainable.network.load_state_dict(_weights(self.state_))
        trainable.network.eval()
        inputs = trainable.scaler.scale(fill(panel.values, self.fill, self.state_["means"]))
        calendar = calendar_of(panel.times.slice(0, panel.times.length + self.horizon))

        @torch.no_grad()
        def forecast_of(member: Trainable, some: Origins) -> NDArray[np.float32]:
            seen = some[:, None] + np.arange(-self.history, 0)
            whole = some[:, None] + np.arange(-self.history, self.horizon)
            batch = {
                "inputs": torch.from_numpy(inputs[seen]),
                "input_mask": torch.from_numpy(panel.mask[seen]),
                "time_of_day": torch.from_numpy(calendar.time_of_day[whole]).long(),
                "day_of_week": torch.from_numpy(calendar.day_of_week[whole]).long(),
            }
            return member.forecast(batch).numpy()

        parts = list(micro_batches(origins, _WINDOWS_AT_A_TIME))
        with Crew(trainable, min(torch.get_num_threads(), max(1, len(parts)))) as crew:
            found = crew.run(forecast_of, parts)
        return np.concatenate(found) if found else np.empty((0, self.horizon, len(panel.sensors)), np.float32)


def _edge_state(panel: Panel) -> State:
    matrix = adjacency_of(panel).tocoo()
    source, target = (ends.astype(np.int64) for ends in matrix.coords)
    return {"edges/source": source, "edges/target": target, "edges/weight": matrix.data.astype(np.float64)}


def _weights(state: State) -> dict[str, torch.Tensor]:
    chosen = {name.removeprefix(_WEIGHTS): array for name, array in state.items() if name.startswith(_WEIGHTS)}
    return {name: torch.from_numpy(array) for name, array in chosen.items()}
