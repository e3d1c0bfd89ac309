"""Any published model of `candor.nets.baselines` as a forecaster."""

from typing import Any, ClassVar, cast

import torch
from pydantic.dataclasses import dataclass

from candor.core.errors import InputError
from candor.core.settings import Settings
from candor.data.panel import Panel
from candor.data.preprocessing import Scaler
from candor.data.protocol import Split
from candor.data.windows import Windows
from candor.forecasting.forecaster import REFUSE_UNKNOWN, State
from candor.forecasting.network import NetworkForecaster, edges_of, found_in
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, BaselineStage, BaselineTrainable, Frame
from candor.nets.baselines import baselines
from candor.nets.recipe import Stage
from candor.nets.trainable import Trainable

SECONDS_PER_DAY = 86_400


@dataclass(config=REFUSE_UNKNOWN)
class BaselineForecaster(NetworkForecaster):
    """A published model under the common protocol.

    Args:
        recipe: how it is trained.
        sizes: of its network.
        covariates: names of the panel's further quantities that it reads, for models that can.
    """

    recipe: BaselineRecipe = BaselineRecipe()
    sizes: Settings = Settings()
    covariates: tuple[str, ...] = ()

    kind: ClassVar[type[BaselineNetwork]]
    reads_covariates: ClassVar[bool] = False
    tiny: ClassVar[Settings]
    """Sizes with which the model can be tried in a second."""

    def used_recipe(self) -> BaselineRecipe:
        """Return the recipe for the horizon."""
        return self.kind.recipe_for(self.recipe, self.horizon)

    def earlier_stages(self) -> tuple[BaselineStage, ...]:
        """Return the trainings that come before the network's own, in their order."""
        return self.kind.stages(self.sizes, self.recipe)

    def build(self, frame: Frame) -> BaselineNetwork:
        """Return the network with first weights."""
        return self.kind(self.sizes, frame)

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
        """Return the covariates that the network reads."""
        return self.covariates

    def _learn_covariates(self, panel: Panel, split: Split) -> State:
        if self.covariates and not self.reads_covariates:
            readers = [name for name in baselines if baselines.get(name).reads_covariates]
            raise InputError(
                f"{self.name} reads no covariates", hint=f"leave `covariates` out, or use {' or '.join(readers)}"
            )
        return super()._learn_covariates(panel, split)


def baseline_forecaster(name: str) -> type[BaselineForecaster]:
    """Return the forecaster class of a published model: its sizes and its recipe are the defaults of the fields."""
    kind = baselines.get(name)
    content = {
        "__annotations__": {"recipe": type(kind.recipe), "sizes": type(kind.sizes)},
        "__doc__": kind.__doc__,
        "recipe": kind.recipe,
        "sizes": kind.sizes,
        "name": name,
        "kind": kind,
        "tiny": kind.tiny,
        "is_reconstruction": kind.is_reconstruction,
        "reads_covariates": kind.reads_covariates,
        "needs_whole_batches": kind.needs_whole_batches,
    }
    made: Any = dataclass(config=REFUSE_UNKNOWN)(type(kind.__name__, (BaselineForecaster,), content))
    return cast(type[BaselineForecaster], made)
