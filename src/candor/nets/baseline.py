"""What a published model is made of: sizes, a network and a recipe, in one file of `candor.nets.baselines`.

    @baselines.register("my-model")
    class MyModel(BaselineNetwork):
        sizes = MySizes()
        tiny = MySizes(width=4)
        recipe = BaselineRecipe.of(epochs=100, learning_rate=1e-3)

        def __init__(self, sizes, frame): ...
        def forward(self, values, time_of_day, day_of_week, *more): ...  # z-scores in, z-scores out

Every model reads z-scores of the same histories with gaps filled in the same way, and is evaluated on the same observed
targets; its own are the network, the objective and the training. `candor.forecasting.baseline` makes it a forecaster.
Where something else is trained before the network (a teacher, an autoencoder, a search), `stages` lists it, and the
network takes it over with `inherit`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import torch
from jaxtyping import Float
from torch import Tensor, nn

from candor.core.settings import Settings
from candor.data.preprocessing import Scaler
from candor.data.times import BINS_PER_DAY
from candor.data.windows import Windows
from candor.nets.recipe import UNCLIPPED, NetworkRecipe, Stage, TrainingSettings
from candor.nets.shapes import Bins, Covariates, Forecast, Graph, Readings, Terms
from candor.nets.trainable import Objective, StepContext, Trainable


class BaselineRecipe(NetworkRecipe):
    """How a baseline is trained."""

    loss: Literal["absolute", "squared"] = "absolute"
    """Errors that training minimises: absolute ones, by which models are evaluated, or their squares."""

    @classmethod
    def of(cls, **settings: Any) -> Self:
        """Return the recipe with some settings of its own and some of its `TrainingSettings`, side by side.

        Unless they say otherwise weights do not decay and gradients are not clipped.
        """
        own = {name: settings.pop(name) for name in cls.model_fields if name in settings}
        return cls(training=TrainingSettings(**{"weight_decay": 0.0, "clip": UNCLIPPED} | settings), **own)


@dataclass(frozen=True)
class Frame:
    """The shape of the task that a network is built for."""

    nodes: int
    history: int
    horizon: int
    steps_per_day: int  # 1 for daily data and coarser
    adjacency: Graph  # weights of the directed edges, sender x receiver; zero where there is none
    covariates: int = 0  # further quantities that are read
    found: Mapping[str, Any] = field(default_factory=dict)  # by earlier stages, see `BaselineNetwork.found`

    @property
    def slots(self) -> int:
        """Rows of a table of the time of day: one per step, at most 288."""
        return min(self.steps_per_day, BINS_PER_DAY)


@dataclass(frozen=True)
class Targets:
    """What the forecast of a micro-batch is compared with; the parts of all micro-batches add up."""

    wanted: Float[Tensor, "batch prefix node"]  # z-scores, zero where missing
    mask: Tensor  # which of them were observed
    valid: int  # observed targets of the whole batch
    share: float  # part of the windows of the whole batch; means over windows are multiplied by it
    unit: float  # factor of errors of z-scores: the deviation of the readings, or 1
    is_squared: bool  # whether the recipe minimises squared errors
    is_active: bool = True  # whether losses that start at an activation epoch count
    done: float = 0.0  # share of the epochs that have ended

    def error(self, forecast: Forecast) -> Tensor:
        """Return this micro-batch's part of the mean error that the recipe minimises."""
        misses = self.misses(forecast)
        sizes = self.unit**2 * misses.square() if self.is_squared else self.unit * misses.abs()
        return sizes.sum() / max(self.valid, 1)

    def misses(self, forecast: Forecast) -> Float[Tensor, "batch prefix node"]:
        """Return the forecast's errors in z-scores, zero where the target is missing."""
        return torch.where(self.mask, forecast[:, : self.wanted.shape[1]] - self.wanted, 0.0)


class BaselineNetwork(nn.Module, ABC):
    """A network from z-scores of the history to z-scores of the horizon, built from sizes and a frame.

    Random numbers in training come from `candor.nets.dropout` only, whose draws are the same in whatever thread.
    """

    sizes: Settings
    recipe: BaselineRecipe
    tiny: Settings
    """Sizes with which the model can be tried in a second."""
    is_reconstruction: ClassVar[bool] = False
    """Whether it was rebuilt without its authors' code, so that no ranking may rest on it."""
    reads_covariates: ClassVar[bool] = False
    needs_whole_batches: ClassVar[bool] = False
    """Whether the network compares the windows of a batch, so that it cannot be cut into micro-batches."""

    @abstractmethod
    def forward(
        self, values: Readings, time_of_day: Bins, day_of_week: Bins, covariates: Covariates = None, /
    ) -> Forecast: ...

    def objective(self, inputs: tuple[Tensor, ...], targets: Targets) -> tuple[Forecast, Terms]:
        """Return the forecast of a micro-batch, and its part of every term of the objective, to be added up."""
        forecast = self(*inputs)
        return forecast, {"prediction": targets.error(forecast)}

    def prepare(self, training: Windows) -> None:
        """Look at the training windows once before training; what it keeps must be in parameters or buffers."""

    def inherit(self, earlier: nn.Module) -> None:
        """Take over what the network of the stage before has learned; by default nothing."""

    def found(self) -> dict[str, Any]:
        """Return what a stage found that later networks are built from (`Frame.found`), as JSON holds it."""
        return {}

    @classmethod
    def recipe_for(cls, recipe: BaselineRecipe, horizon: int) -> BaselineRecipe:
        """Return the recipe for a horizon; by default it is the same for all."""
        return recipe

    @classmethod
    def stages(cls, sizes: Any, recipe: Any) -> "tuple[BaselineStage, ...]":
        """Return the trainings that come before the network's own, in their order; by default there are none."""
        return ()


@dataclass
class BaselineTrainable(Trainable):
    """A baseline's network with its objective."""

    network: BaselineNetwork
    scaler: Scaler
    horizon: int
    recipe: BaselineRecipe

    def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
        """Return the part of the objective that a micro-batch adds."""
        deviation = self.scaler.deviation
        scores = (batch["targets"][:, : step.prefix] - self.scaler.mean) / deviation
        mask = batch["target_mask"][:, : step.prefix]
        targets = Targets(
            wanted=torch.where(mask, scores, 0.0),
            mask=mask,
            valid=step.valid,
            share=step.share,
            unit=deviation if self.recipe.loss_space == "original" else 1.0,
            is_squared=self.recipe.loss == "squared",
            is_active=step.is_active,
            done=step.done,
        )
        forecast, terms = self.network.objective(_inputs(batch), targets)
        error = deviation * targets.misses(forecast.detach()).abs().sum() / max(step.valid, 1)
        return Objective(torch.stack(list(terms.values())).sum(), error, terms)

    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the forecast in the sensors' unit."""
        return self.network(*_inputs(batch)) * self.scaler.deviation + self.scaler.mean

    def inherit(self, earlier: Trainable) -> None:
        """Take over what the stage before has learned."""
        self.network.inherit(earlier.network)

    def found(self) -> dict[str, Any]:
        """Return what later networks are built from."""
        return self.network.found()


def _inputs(batch: dict[str, Tensor]) -> tuple[Tensor, ...]:
    names = ("inputs", "time_of_day", "day_of_week", "covariates")
    return tuple(batch[name] for name in names if name in batch)


@dataclass(frozen=True, kw_only=True)
class BaselineStage(Stage):
    """A training before that of a baseline's network, of what `build` returns."""

    build: Callable[[Frame], BaselineNetwork]
    kind: type[BaselineTrainable] = BaselineTrainable
