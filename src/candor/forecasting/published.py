"""The published network of CANDOR as a forecaster: the one stage that the paper has."""

import json
from datetime import datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator
from pydantic.dataclasses import dataclass

from candor.core.progress import Report
from candor.core.settings import parse_settings
from candor.data.panel import Panel
from candor.data.preprocessing import Scaler
from candor.data.protocol import Protocol, Split, Task
from candor.forecasting.explanation import ForecastExplanation, explain_window, find_origin, find_sensor
from candor.forecasting.forecaster import REFUSE_UNKNOWN, State
from candor.forecasting.network import NetworkForecaster, edges_of
from candor.forecasting.own_data import choose_recipe
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.recipe import Recipe
from candor.nets.candor.trainable import CandorTrainable

_RECIPE = "recipe"


@dataclass(config=REFUSE_UNKNOWN)
class PublishedCandor(NetworkForecaster):
    """Component-Aware Network Dynamics with Ordered Relations.

    Args:
        recipe: sizes, training and objective; None lets `fit` choose what suits the panel, as `candor train` does for
            data without a preset. `Recipe(size="paper")` is the paper's size, and presets hold all of its settings.
    """

    recipe: Recipe | None = None

    name = "candor"

    @model_validator(mode="after")
    def _refuse_impossible_sizes(self) -> Self:
        (self.recipe or Recipe()).model_settings(1, self.history, self.horizon)
        return self

    def used_recipe(self) -> Recipe:
        """Return the recipe, or the one that `fit` chose; the default one before it has chosen."""
        chosen: Recipe | None = self.recipe or self.__dict__.get("_chosen")
        if chosen is not None:
            return chosen
        state: State = self.__dict__.get("state_", {})
        kept = json.loads(state[_RECIPE].tobytes()) if _RECIPE in state else {}
        return parse_settings(Recipe, kept, "recipe")

    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        if self.recipe is not None:
            return super()._learn(panel, split, report)
        targets: Any = "filled" if self.fill == "forward-backward" else "observed"
        protocol = Protocol(history=self.history, horizon=self.horizon, fill=self.fill, targets=targets)
        self._chosen, _ = choose_recipe(Task(panel, split, protocol), None, {})
        try:
            recipe = np.frombuffer(self._chosen.model_dump_json().encode(), np.uint8).copy()
            return super()._learn(panel, split, report) | {_RECIPE: recipe}
        finally:
            del self._chosen

    def _trainable(self, state: State, scaler: Scaler, nodes: int) -> CandorTrainable:
        recipe = self.used_recipe()
        network = CandorNetwork(recipe.model_settings(nodes, self.history, self.horizon), edges_of(state))
        is_in_unit = recipe.loss_space == "original"
        return CandorTrainable(network, scaler, recipe.loss, is_in_unit, recipe.anchor, recipe.keeps_level)

    def _transform(self, covariates: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.log1p(covariates)

    def quantities_read(self) -> tuple[str, ...]:
        """Return rain, if the network reads it."""
        return ("rain",) if self.used_recipe().model_settings(1, self.history, self.horizon).reads_rain else ()

    def explain(self, panel: Panel, sensor: str, time: datetime | str | None = None) -> ForecastExplanation:
        """Return where the forecast of one sensor came from, beside the forecast itself, in the sensor's unit.

        Args:
            panel: as for `predict`.
            sensor: id.
            time: of the first forecast step, on the panel's local clock or with an offset; between two steps the later
                one is taken. None means the step after the last reading.
        """
        self._check_fitted()
        self._check_same_sensors(panel)
        column, origin = find_sensor(panel, sensor), find_origin(panel, time, self.history)
        return explain_window(self.trained(), self.windows(panel, np.array([origin])), panel, column)

    def trained(self) -> CandorTrainable:
        trainable = super().trained()
        assert isinstance(trainable, CandorTrainable)  # it is what `_trainable` makes
        return trainable
