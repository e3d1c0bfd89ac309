"""Any network as a forecaster: scaling, filling, masks, windows, units, weights and their training."""

import json
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass

from candor.core.errors import InputError
from candor.core.progress import Report, silent
from candor.data.panel import Panel, adjacency_of
from candor.data.preprocessing import Fill, Scaler, fill, fit_scaler
from candor.data.protocol import Origins, Split
from candor.data.windows import Windows, count_inputs, future_windows
from candor.forecasting.forecaster import REFUSE_UNKNOWN, Forecaster, State
from candor.forecasting.inference import infer
from candor.forecasting.simple import training_means
from candor.nets.candor.physical_operator import EdgeArrays
from candor.nets.recipe import NetworkRecipe, Stage
from candor.nets.trainable import Trainable
from candor.training.loop import StopReason, TrainingData
from candor.training.stages import Session

WEIGHTS, FOUND, COVARIATES = "weights/", "found", "covariates"
_TRAINED_WITHOUT_SPLIT = 0.8
_BUILDING = threading.Lock()  # of all forecasters: first weights are drawn from the random state they share

Transform = Callable[[NDArray[np.float32]], NDArray[np.float32]]


@dataclass(config=REFUSE_UNKNOWN)
class NetworkForecaster(Forecaster):
    """A forecaster that is a network with a recipe.

    Args:
        fill: how gaps in what is read are filled.
    """

    needs_whole_batches: ClassVar[bool] = False
    """Whether the network compares the windows of a batch, so that it cannot be cut into micro-batches."""

    fill: Fill = "last"

    @abstractmethod
    def used_recipe(self) -> NetworkRecipe:
        """Return how the network learns."""

    @abstractmethod
    def _trainable(self, state: State, scaler: Scaler, nodes: int) -> Trainable:
        """Return the network with first weights, for the graph and the scaler of a state."""

    def earlier_stages(self) -> tuple[Stage, ...]:
        """Return the trainings that come before the network's own, in their order; by default there are none."""
        return ()

    def _stage_trainable(self, stage: Stage, state: State, scaler: Scaler, nodes: int) -> Trainable:
        """Return what a stage trains, with first weights; for forecasters that have stages."""
        raise ValueError(f"{self.name} has no stage {stage.name}")

    def _prepare(self, trainable: Trainable, training: Windows) -> None:
        """Initialise the network from the training windows before it learns; by default not at all."""

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
        """Train the network; without a split the last fifth of the panel chooses weights and calibrates intervals.

        Args:
            panel: the readings.
            split: which origins are for training and for validation.
            report: progress callback.
            folder: where the state of training is kept; training goes on from there if something is there.
            stop_reason: is asked after every step whether to stop.
            start_from: the state of another forecaster of this kind, whose weights training begins with.
            trains_on: whether to go on with the training in `folder`, or to take its best weights as they are.
            budget_seconds: shortens all schedules so that training takes about this long; None leaves them.
        """
        self._start_from: State = start_from or {}
        self._limits: dict[str, Any] = {
            "folder": folder, "stop_reason": stop_reason, "trains_on": trains_on, "budget_seconds": budget_seconds,
        }  # fmt: skip
        try:
            return super().fit(panel, split, report)
        finally:
            del self._start_from, self._limits

    def _own_split(self, panel: Panel) -> Split:
        whole, end = super()._own_split(panel), int(_TRAINED_WITHOUT_SPLIT * panel.times.length)
        train = whole.train[whole.train + self.horizon <= end]
        if not len(train):  # too short to keep something back: errors on what was learned say nothing
            return whole
        return Split(train, whole.train[whole.train >= end], whole.test, end)

    def selection(self, split: Split) -> Split:
        """Return the split whose validation part chooses the best weights."""
        return split if self.used_recipe().selection == "whole" else super().selection(split)

    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        return self._train(panel, split, self._learn_frame(panel, split, report), report)

    def _train(self, panel: Panel, split: Split, state: State, report: Report) -> State:
        """Return a state with the weights that the network learns, given what was learned before it."""
        session = self._session(panel, split, state, report)
        state, trainable = self._first_weights(session, state)
        weights = session.train(trainable, Stage(self.used_recipe().training))
        return state | {f"{WEIGHTS}{name}": tensor.numpy() for name, tensor in weights.items()}

    def _session(self, panel: Panel, split: Split, state: State, report: Report) -> Session:
        """Return a stretch of training on the windows of a panel."""
        inputs, covariates = self._inputs(panel, state), self._covariates(panel, state)
        spans = self.history, self.horizon
        data = TrainingData(
            training=Windows(panel, inputs, split.train, *spans, covariates),
            validation=Windows(panel, inputs, split.validation, *spans, covariates),
            sensors=panel.sensor_ids,
            unit=panel.unit,
        )
        divisible = not self.needs_whole_batches
        return Session(data, self.seed, report=report, is_divisible=divisible, **self._limits)

    def _learn_frame(self, panel: Panel, split: Split, report: Report) -> State:
        """Return what is learned before any network: what it is made for, and how its inputs are prepared."""
        means = training_means(panel, split)
        scaler = self._fit_scaler(panel, fill(panel.values, self.fill, means), split)
        state = _frame_state(panel) | self._learn_covariates(panel, split)
        return state | {"means": means, "scaler": np.array([scaler.mean, scaler.deviation])}

    def _inputs(self, panel: Panel, state: State) -> NDArray[np.float32]:
        """Return what the network reads of a panel, time x sensor: filled z-scores."""
        return scaler_of(state).scale(fill(panel.values, self.fill, state["means"]))

    def _first_weights(self, session: Session, state: State) -> tuple[State, Trainable]:
        """Return what the network is built from, and the network as its own training begins: after all stages."""
        is_begun, earlier = session.has_reached_the_last(), None
        found = session.load_found() if is_begun else found_in(self._start_from)
        for stage in () if is_begun or self._start_from else self.earlier_stages():
            make = partial(self._stage_trainable, stage)
            trainable = self._new(make, session, state | found_state(found), earlier)
            trainable.network.load_state_dict(session.train(trainable, stage))
            found, earlier = found | trainable.found(), trainable
        session.save_found(found)
        state = state | found_state(found)
        trainable = self._new(self._trainable, session, state, earlier)
        if self._start_from:
            trainable.network.load_state_dict(_weights(self._start_from))
        return state, trainable

    def check_start(self, panel: Panel, start: State) -> None:
        """Refuse weights that do not fit the network this forecaster would train on a panel.

        Args:
            panel: the readings.
            start: what another forecaster learned, as for `fit`.
        """
        state = _frame_state(panel) | found_state(found_in(start))
        with torch.random.fork_rng(devices=[]):
            mine = self._trainable(state, Scaler(0.0, 1.0), len(panel.sensors)).network.state_dict()
        theirs = {name: torch.atleast_1d(tensor) for name, tensor in _weights(start).items()}
        if lacking := sorted(mine.keys() ^ theirs.keys()):
            difference = f"{len(lacking)} of them are in one network only, such as {lacking[0]}"
        # Files hold a single number as a list of one, which PyTorch takes for it.
        elif other := [name for name, tensor in mine.items() if theirs[name].shape != (tensor.shape or (1,))]:
            shapes = f"{tuple(theirs[other[0]].shape)} instead of {tuple(mine[other[0]].shape)}"
            difference = f"{len(other)} have another shape, such as {other[0]}: {shapes}"
        else:
            return
        raise InputError(
            f"the weights to begin with are not those of such a network: {difference}",
            hint="begin with a run of the same model, sensors, history, horizon and sizes",
        )

    def _new(
        self,
        make: Callable[[State, Scaler, int], Trainable],
        session: Session,
        state: State,
        earlier: Trainable | None,
    ) -> Trainable:
        """Return a network that is initialised from the training windows and from what the stage before learned."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            trainable = make(state, scaler_of(state), len(session.data.sensors))
            self._prepare(trainable, session.data.training)
        if earlier is not None:
            trainable.inherit(earlier)
        return trainable

    def _fit_scaler(self, panel: Panel, filled: NDArray[np.float32], split: Split) -> Scaler:
        if self.used_recipe().scaler == "windows":
            return fit_scaler(filled, count_inputs(split.train, self.history, len(filled)))
        return fit_scaler(panel.values[: split.train_end])

    def _transform(self, covariates: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return covariates as they are standardised; by default as they are measured."""
        return covariates

    def _learn_covariates(self, panel: Panel, split: Split) -> State:
        """Return what is learned of the covariates that the network reads."""
        return learn_covariates(panel, self.quantities_read(), split.train_end, self._transform)

    def _covariates(self, panel: Panel, state: State) -> NDArray[np.float32] | None:
        """Return the covariates that the network reads, time x sensor x quantity, filled and standardised."""
        return read_covariates(panel, self.quantities_read(), state, self._transform)

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        forecasts = list(infer(self.trained(), self.windows(panel, origins), lambda net, batch: net.forecast(batch)))
        if not forecasts:
            return np.empty((0, self.horizon, len(panel.sensors)), np.float32)
        return torch.cat(forecasts).numpy()

    def trained(self) -> Trainable:
        """Return the network with the weights it learned, ready for use.

        It is built once and shared, also between threads: do not train it or change its weights.
        """
        with _BUILDING:
            state, built = self.__dict__.get("_built", (None, None))
            if state is not self.state_ or built is None:
                with torch.random.fork_rng(devices=[]):  # building a network draws its first weights
                    built = self._trainable(self.state_, scaler_of(self.state_), len(self.trained_on_.panel.sensors))
                built.network.load_state_dict(_weights(self.state_))
                built.network.eval()
                self._built: tuple[State, Trainable] = (self.state_, built)
            return built

    def windows(self, panel: Panel, origins: Origins) -> Windows:
        """Return the windows before origins as the network reads them; nothing from an origin on has to exist."""
        panel = panel.in_zone(self.trained_on_.panel.times.zone)  # an explanation is asked for on any clock
        inputs = self._inputs(panel, self.state_)
        return future_windows(panel, inputs, origins, self.history, self.horizon, self._covariates(panel, self.state_))


def scaler_of(state: State) -> Scaler:
    """Return the scaler of a state."""
    return Scaler(*map(float, state["scaler"]))


def edges_of(state: State) -> EdgeArrays:
    """Return the weighted graph that a network was made for."""
    return EdgeArrays(state["edges/source"], state["edges/target"], state["edges/weight"])


def found_in(state: State) -> dict[str, Any]:
    """Return what the stages before a network found that it was built from; empty if there is nothing."""
    return json.loads(state[FOUND].tobytes()) if FOUND in state else {}


def found_state(found: dict[str, Any]) -> State:
    """Return what stages found as a part of a state, see `found_in`."""
    return {FOUND: np.frombuffer(json.dumps(found).encode(), np.uint8).copy()} if found else {}


def _frame_state(panel: Panel) -> State:
    """Return the edges and the interval of a panel, for which a network is made."""
    matrix = adjacency_of(panel).tocoo()
    source, target = (ends.astype(np.int64) for ends in matrix.coords)
    edges = {"edges/source": source, "edges/target": target, "edges/weight": matrix.data.astype(np.float64)}
    return edges | {"interval": np.array([panel.times.interval.total_seconds()])}


def _weights(state: State) -> dict[str, torch.Tensor]:
    chosen = (name for name in state if name.startswith(WEIGHTS))
    return {name.removeprefix(WEIGHTS): torch.from_numpy(state[name]) for name in chosen}


def learn_covariates(panel: Panel, names: Sequence[str], train_end: int, transform: Transform = np.asarray) -> State:
    """Return mean and deviation of each covariate over all sensors and the rows before `train_end`."""
    if not names:
        return {}
    seen = _stacked(panel, names, transform)[:train_end].astype(np.float64)
    counts = (~np.isnan(seen)).sum(axis=(0, 1))
    if unknown := [name for name, count in zip(names, counts, strict=True) if count == 0]:
        raise InputError(
            f"nothing is known of {unknown[0]!r} in the training part: there is nothing to learn from it",
            where=panel.name,
            hint="leave it out, or begin later: first=DATE",
        )
    means = np.nansum(seen, axis=(0, 1)) / counts
    deviations = np.sqrt(np.nansum((seen - means) ** 2, axis=(0, 1)) / counts)
    return {COVARIATES: np.stack([means, np.where(deviations > 0, deviations, 1.0)])}


def read_covariates(
    panel: Panel, names: Sequence[str], state: State, transform: Transform = np.asarray
) -> NDArray[np.float32] | None:
    """Return the covariates as z-scores, time x sensor x quantity; what is unknown counts as usual, zero."""
    if not names:
        return None
    means, deviations = state[COVARIATES]
    scores: NDArray[np.float64] = (_stacked(panel, names, transform) - means) / deviations
    return np.nan_to_num(scores, nan=0.0).astype(np.float32)


def _stacked(panel: Panel, names: Sequence[str], transform: Transform) -> NDArray[np.float32]:
    if lacking := [name for name in names if name not in panel.covariates]:
        known = ", ".join(panel.covariates) or "none"
        raise InputError(
            f"the panel has no covariate called {lacking[0]!r}", where=panel.name, hint=f"there are: {known}"
        )
    return transform(np.stack([panel.covariates[name].values for name in names], axis=-1))
