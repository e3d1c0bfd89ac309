"""What a baseline is made of: a network, its sizes and its recipe, in one file of `candor.nets.baselines`.

A baseline keeps to the common protocol. It reads z-scores of the same histories as every model, with gaps filled in the
same way, and is judged on the same observed targets; what is its own are the network, the objective and the training.

    class MyNetwork(BaselineNetwork):
        def forward(self, values, time_of_day, day_of_week): ...   # z-scores in, z-scores out

    @forecasters.register("my-model")
    @dataclass(config=REFUSE_UNKNOWN)
    class MyModel(Baseline):
        sizes: MySizes = MySizes()
        recipe: BaselineRecipe = BaselineRecipe(training=TrainingSettings(epochs=100))
        name = "my-model"

        def build(self, frame): return MyNetwork(self.sizes, frame)

Where something else has to be trained before the network (a teacher, an autoencoder, a search), `stages` says what, and
the network takes it over with `inherit`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from candor.core.errors import InputError
from candor.core.settings import Settings
from candor.data.panel import Panel
from candor.data.scaling import Scaler
from candor.data.splits import Split
from candor.data.windows import Windows
from candor.forecasting.covariates import learn_covariates, read_covariates
from candor.forecasting.forecaster import REFUSE_UNKNOWN, State, forecasters
from candor.forecasting.network import NetworkForecaster, edges_of, found_in
from candor.nets.recipe import NetworkRecipe
from candor.nets.trainable import Objective, StepContext, Trainable
from candor.training.stages import Stage

SECONDS_PER_DAY = 86_400


class BaselineRecipe(NetworkRecipe):
    """How a baseline learns."""

    loss: Literal["absolute", "squared"] = "absolute"
    """Errors that training makes small: absolute ones, as the protocol is judged by, or their squares."""


@plain_dataclass(frozen=True)
class Frame:
    """What a network is made for.

    Args:
        nodes: sensors.
        history: steps that are read.
        horizon: steps that are forecast.
        steps_per_day: rows of a day, 1 for daily data and coarser.
        adjacency: weights of the directed edges, sender x receiver; zero where there is none.
        covariates: further quantities that are read.
        found: what earlier stages of training found, see `BaselineNetwork.found`.
    """

    nodes: int
    history: int
    horizon: int
    steps_per_day: int
    adjacency: Float[Tensor, "node node2"]
    covariates: int = 0
    found: Mapping[str, Any] = field(default_factory=dict)


@plain_dataclass(frozen=True)
class Targets:
    """What the forecast of a micro-batch is compared with; the parts of all micro-batches add up.

    Args:
        wanted: z-scores, zero where missing; batch x prefix x node.
        mask: which of them were observed.
        valid: observed targets of the whole batch.
        share: this micro-batch's part of the windows of the whole batch; weigh means over windows with it.
        unit: what errors of z-scores are multiplied with: the deviation of the readings, or 1.
        is_squared: whether the recipe asks for squared errors.
        is_active: whether the activation epoch is reached, from which terms count that wait for sensible states.
        done: share of the epochs that have ended.
    """

    wanted: Float[Tensor, "batch prefix node"]
    mask: Tensor
    valid: int
    share: float
    unit: float
    is_squared: bool
    is_active: bool = True
    done: float = 0.0

    def error(self, forecast: Float[Tensor, "batch horizon node"]) -> Tensor:
        """Returns this micro-batch's part of the mean error that the recipe asks for."""
        return self.squared(forecast) if self.is_squared else self.absolute(forecast)

    def absolute(self, forecast: Float[Tensor, "batch horizon node"]) -> Tensor:
        """Returns this micro-batch's part of the mean absolute error over the observed targets."""
        return self.unit * self._differences(forecast).abs().sum() / max(self.valid, 1)

    def squared(self, forecast: Float[Tensor, "batch horizon node"]) -> Tensor:
        """Returns this micro-batch's part of the mean squared error over the observed targets."""
        return self.unit**2 * self._differences(forecast).square().sum() / max(self.valid, 1)

    def _differences(self, forecast: Tensor) -> Tensor:
        return torch.where(self.mask, forecast[:, : self.wanted.shape[1]] - self.wanted, 0.0)


class BaselineNetwork(nn.Module, ABC):
    """A network from z-scores of the history to z-scores of the horizon.

    Chance in training comes from `candor.nets.dropout` only: its draws are the same whatever thread they happen on.
    """

    @abstractmethod
    def forward(
        self,
        values: Float[Tensor, "batch time node"],
        time_of_day: Tensor,
        day_of_week: Tensor,
        covariates: Tensor | None = None,
    ) -> Float[Tensor, "batch horizon node"]:
        """Returns the forecast in z-scores.

        Args:
            values: z-scores of the history, gaps filled.
            time_of_day: bins 0..287 of all steps of history and horizon, batch x (history + horizon).
            day_of_week: days 0..6 (Monday is 0) of the same steps.
            covariates: further quantities over the history as z-scores, batch x time x node x quantity, if any.
        """

    def objective(self, inputs: tuple[Tensor, ...], targets: Targets) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the forecast of a micro-batch, and its part of every term of the objective, to be added up."""
        forecast = self(*inputs)
        return forecast, {"prediction": targets.error(forecast)}

    def prepare(self, training: Windows) -> None:
        """Looks at the training windows once before the network learns; what it keeps must be in buffers."""

    def inherit(self, earlier: nn.Module) -> None:
        """Takes over what the network of the stage before has learned; by default nothing."""

    def found(self) -> dict[str, Any]:
        """Returns what a stage found that later networks are built from (`Frame.found`), as JSON holds it."""
        return {}


@plain_dataclass
class BaselineTrainable(Trainable):
    """A baseline's network as something that can be trained."""

    network: BaselineNetwork
    scaler: Scaler
    horizon: int
    recipe: BaselineRecipe

    def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
        """Returns the part of the objective that a micro-batch adds."""
        deviation, is_in_unit = self.scaler.deviation, self.recipe.loss_space == "original"
        scores = (batch["targets"][:, : step.prefix] - self.scaler.mean) / deviation
        mask = batch["target_mask"][:, : step.prefix]
        targets = Targets(
            wanted=torch.where(mask, scores, 0.0),
            mask=mask,
            valid=step.valid,
            share=step.share,
            unit=deviation if is_in_unit else 1.0,
            is_squared=self.recipe.loss == "squared",
            is_active=step.is_active,
            done=step.done,
        )
        forecast, terms = self.network.objective(_inputs(batch), targets)
        total = torch.stack(list(terms.values())).sum()
        return Objective(total, targets.absolute(forecast.detach()) * deviation / targets.unit, terms)

    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        """Returns the forecast in the sensors' unit."""
        return self.network(*_inputs(batch)) * self.scaler.deviation + self.scaler.mean

    def inherit(self, earlier: Trainable) -> None:
        """Takes over what the stage before has learned."""
        self.network.inherit(earlier.network)

    def found(self) -> dict[str, Any]:
        """Returns what later networks are built from."""
        return self.network.found()


@plain_dataclass(frozen=True, kw_only=True)
class BaselineStage(Stage):
    """A training before that of a baseline's network.

    Args:
        build: returns what is trained, with first weights.
        kind: how it learns and is judged.
    """

    build: Callable[[Frame], BaselineNetwork]
    kind: type[BaselineTrainable] = BaselineTrainable


@dataclass(config=REFUSE_UNKNOWN)
class Baseline(NetworkForecaster):
    """A published model under the common protocol.

    Args:
        recipe: how it learns.
        sizes: of its network.
        covariates: names of the panel's further quantities that it reads, for models that can.
    """

    recipe: BaselineRecipe = BaselineRecipe()
    sizes: Settings = Settings()
    covariates: tuple[str, ...] = ()

    reads_covariates: ClassVar[bool] = False
    tiny: ClassVar[dict[str, Any]] = {}
    """Sizes with which the model can be tried in a second."""

    def used_recipe(self) -> BaselineRecipe:
        """Returns the recipe."""
        return self.recipe

    @abstractmethod
    def build(self, frame: Frame) -> BaselineNetwork:
        """Returns the network with first weights."""

    def _trainable(self, state: State, scaler: Scaler, nodes: int) -> BaselineTrainable:
        return BaselineTrainable(self.build(self._frame(state, nodes)), scaler, self.horizon, self.recipe)

    def _stage_trainable(self, stage: Stage, state: State, scaler: Scaler, nodes: int) -> BaselineTrainable:
        assert isinstance(stage, BaselineStage)
        return stage.kind(stage.build(self._frame(state, nodes)), scaler, self.horizon, self.recipe)

    def _frame(self, state: State, nodes: int) -> Frame:
        edges = edges_of(state)
        adjacency = torch.zeros(nodes, nodes)
        adjacency[edges.source, edges.target] = torch.from_numpy(edges.weight).float()
        steps_per_day = max(1, round(SECONDS_PER_DAY / float(state["interval"][0])))
        covariates, found = len(self.covariates), found_in(state)
        return Frame(nodes, self.history, self.horizon, steps_per_day, adjacency, covariates, found)

    def _prepare(self, trainable: Trainable, training: Windows) -> None:
        assert isinstance(trainable, BaselineTrainable)
        trainable.network.prepare(training)

    def quantities_read(self) -> tuple[str, ...]:
        """Returns the covariates that the network reads."""
        return self.covariates

    def _learn_covariates(self, panel: Panel, split: Split) -> State:
        if not self.covariates:
            return {}
        if not self.reads_covariates:
            readers = [name for name in forecasters if getattr(forecasters.get(name), "reads_covariates", False)]
            raise InputError(
                f"{self.name} reads no covariates", hint=f"leave `covariates` out, or use {' or '.join(readers)}"
            )
        return learn_covariates(panel, self.covariates, split.train_end)

    def _covariates(self, panel: Panel, state: State) -> NDArray[np.float32] | None:
        return read_covariates(panel, self.covariates, state)


def _inputs(batch: dict[str, Tensor]) -> tuple[Tensor, ...]:
    names = ("inputs", "time_of_day", "day_of_week", "covariates")
    return tuple(batch[name] for name in names if name in batch)
