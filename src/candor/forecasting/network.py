"""Any network as a forecaster: one place for scaling, filling, masks, windows, units, weights and their training."""

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass

from candor.data.adjacency import adjacency_of
from candor.data.missing import Fill, fill
from candor.data.panel import Panel
from candor.data.scaling import Scaler, fit_scaler
from candor.data.splits import Origins, Split
from candor.data.windows import Windows, count_inputs, future_windows
from candor.files import read_json, write_json
from candor.forecasting.forecaster import REFUSE_UNKNOWN, Forecaster, State
from candor.forecasting.simple import training_means
from candor.model.propagation import EdgeArrays
from candor.progress import Report, silent
from candor.settings import parse_settings
from candor.training.batches import micro_batches
from candor.training.checkpoint import Checkpoint
from candor.training.crew import Crew
from candor.training.loop import StopReason, Trainer, TrainingData
from candor.training.machine import Machine, find_machine
from candor.training.processes import in_main_process, join_processes
from candor.training.recipe import NetworkRecipe
from candor.training.settings import TrainingSettings
from candor.training.trainable import Trainable

_WINDOWS_AT_A_TIME = 16
_WEIGHTS = "weights/"
_TRAINED_WITHOUT_SPLIT = 0.8


@dataclass(config=REFUSE_UNKNOWN)
class NetworkForecaster(Forecaster):
    """A forecaster that is a network with a recipe.

    Args:
        fill: how gaps in what is read are filled.
        recipe: how the network learns.
    """

    needs_whole_batches: ClassVar[bool] = False
    """Whether the network compares the windows of a batch, so that it cannot be cut into micro-batches."""

    fill: Fill = "last"
    recipe: NetworkRecipe = NetworkRecipe()

    @abstractmethod
    def _trainable(self, state: State, scaler: Scaler, nodes: int) -> Trainable:
        """Returns the network with first weights, for the graph and the scaler of a state."""

    def _prepare(self, trainable: Trainable, training: Windows) -> None:
        """Lets the network look at the training windows once before it learns; by default it does not."""

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
        budget_seconds: float | None = None,
    ) -> Self:
        """Trains the network; without a split the last fifth of the panel chooses weights and calibrates intervals.

        Args:
            panel: the readings.
            split: which origins are for training and for validation.
            report: is told how far training has come.
            folder: where the state of training is kept; training goes on from there if something is there.
            stop_reason: is asked after every step whether to stop.
            start_from: what another forecaster of this kind learned, to begin with its weights.
            trains_on: whether to go on with the training in `folder`, or to take its best weights as they are.
            budget_seconds: shortens all schedules so that training takes about this long; None leaves them.
        """
        self._session: dict[str, Any] = {
            "folder": folder,
            "stop_reason": stop_reason,
            "start_from": start_from,
            "trains_on": trains_on,
            "budget_seconds": budget_seconds,
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
        state = _edge_state(panel) | self._learn_covariates(panel, split)
        state |= {"means": means, "scaler": np.array([scaler.mean, scaler.deviation])}
        state |= {"interval": np.array([panel.times.interval.total_seconds()])}
        inputs, covariates, spans = scaler.scale(filled), self._covariates(panel, state), (self.history, self.horizon)
        data = TrainingData(
            training=Windows(panel, inputs, split.train, *spans, covariates),
            validation=Windows(panel, inputs, split.validation, *spans, covariates),
            sensors=panel.sensor_ids,
            unit=panel.unit,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            trainable = self._trainable(state, scaler, len(panel.sensors))
            self._prepare(trainable, data.training)
        if self._session["start_from"] is not None:
            trainable.network.load_state_dict(_weights(self._session["start_from"]))
        trainer = self._trainer(trainable, data, report)
        weights = trainer.run() if self._session["trains_on"] else trainer.saved_weights()
        return state | {f"{_WEIGHTS}{name}": tensor.numpy() for name, tensor in weights.items()}

    def _fit_scaler(self, panel: Panel, filled: NDArray[np.float32], split: Split) -> Scaler:
        if self.recipe.scaler == "windows":
            return fit_scaler(filled, count_inputs(split.train, self.history, len(filled)))
        return fit_scaler(panel.values[: split.train_end])

    def _learn_covariates(self, panel: Panel, split: Split) -> State:
        """Returns what is learned of the further quantities that the network reads; by default it reads none."""
        return {}

    def _covariates(self, panel: Panel, state: State) -> NDArray[np.float32] | None:
        """Returns the further quantities that the network reads, time x sensor x quantity, filled and scaled."""
        return None

    def _trainer(self, trainable: Trainable, data: TrainingData, report: Report) -> Trainer:
        folder, settings = self._session["folder"], self.recipe.training
        checkpoint = None if folder is None else Checkpoint(folder)
        machine = find_machine(
            trainable, data.training, settings.batch, checkpoint, report, is_divisible=not self.needs_whole_batches
        )
        settings = self._schedule(machine, len(data.training), checkpoint)
        return Trainer(trainable, data, settings, self.seed, machine, checkpoint, report, self._session["stop_reason"])

    def _schedule(self, machine: Machine, windows: int, checkpoint: Checkpoint | None) -> TrainingSettings:
        """Returns the recipe's schedules, or those that a budget was given when this training began."""
        budget, processes = self._session["budget_seconds"], join_processes().num_processes

        def find() -> TrainingSettings:
            path = None if checkpoint is None else checkpoint.folder / "schedule.json"
            if path is not None and path.is_file():
                return parse_settings(TrainingSettings, read_json(path), str(path))
            if budget is None:
                return self.recipe.training
            affordable = int(processes * budget / machine.seconds_per_window)
            shortened = self.recipe.training.within(windows, affordable, self.horizon)
            if path is not None:
                write_json(path, shortened.model_dump(mode="json"))
            return shortened

        return in_main_process(find)

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        trainable = self.trained()
        windows = self.windows(panel, origins)

        @torch.no_grad()
        def forecast_of(member: Trainable, places: Origins) -> NDArray[np.float32]:
            return member.forecast(windows.batch(places).tensors()).numpy()

        parts = list(micro_batches(np.arange(len(origins)), _WINDOWS_AT_A_TIME))
        with Crew(trainable, min(torch.get_num_threads(), max(1, len(parts)))) as crew:
            found = crew.run(forecast_of, parts)
        return np.concatenate(found) if found else np.empty((0, self.horizon, len(panel.sensors)), np.float32)

    def trained(self) -> Trainable:
        """Returns the network with the weights it learned, ready for use."""
        mean, deviation = (float(number) for number in self.state_["scaler"])
        with torch.random.fork_rng(devices=[]):  # building a network draws its first weights
            trainable = self._trainable(self.state_, Scaler(mean, deviation), len(self.trained_on_.panel.sensors))
        trainable.network.load_state_dict(_weights(self.state_))
        trainable.network.eval()
        return trainable

    def windows(self, panel: Panel, origins: Origins) -> Windows:
        """Returns the windows before origins as the network reads them; nothing from an origin on has to exist."""
        mean, deviation = (float(number) for number in self.state_["scaler"])
        inputs = Scaler(mean, deviation).scale(fill(panel.values, self.fill, self.state_["means"]))
        return future_windows(panel, inputs, origins, self.history, self.horizon, self._covariates(panel, self.state_))


def edges_of(state: State) -> EdgeArrays:
    """Returns the weighted graph that a network was made for."""
    return EdgeArrays(state["edges/source"], state["edges/target"], state["edges/weight"])


def _edge_state(panel: Panel) -> State:
    matrix = adjacency_of(panel).tocoo()
    source, target = (ends.astype(np.int64) for ends in matrix.coords)
    return {"edges/source": source, "edges/target": target, "edges/weight": matrix.data.astype(np.float64)}


def _weights(state: State) -> dict[str, torch.Tensor]:
    chosen = {name.removeprefix(_WEIGHTS): array for name, array in state.items() if name.startswith(_WEIGHTS)}
    return {name: torch.from_numpy(array) for name, array in chosen.items()}
