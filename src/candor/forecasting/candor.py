"""CANDOR as a forecaster: fit, predict, save and load like every other."""

from datetime import datetime
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator
from pydantic.dataclasses import dataclass

from candor.data.panel import Panel
from candor.data.scaling import Scaler
from candor.data.splits import Split
from candor.forecasting.covariates import learn_covariates, read_covariates
from candor.forecasting.explanation import ForecastExplanation, explain_window, find_origin, find_sensor
from candor.forecasting.forecaster import REFUSE_UNKNOWN, State, forecasters
from candor.forecasting.network import NetworkForecaster, edges_of
from candor.forecasting.trainable import CandorTrainable
from candor.model.candor import CandorNetwork
from candor.training.recipe import Recipe


@forecasters.register("candor")
@dataclass(config=REFUSE_UNKNOWN)
class Candor(NetworkForecaster):
    """Component-Aware Network Dynamics with Ordered Relations.

    Args:
        recipe: sizes, training and objective.
    """

    recipe: Recipe = Recipe()

    name = "candor"

    @model_validator(mode="after")
    def _refuse_impossible_sizes(self) -> Self:
        self.recipe.model_settings(1, self.history, self.horizon)
        return self

    def _trainable(self, state: State, scaler: Scaler, nodes: int) -> CandorTrainable:
        recipe = self.recipe
        network = CandorNetwork(recipe.model_settings(nodes, self.history, self.horizon), edges_of(state))
        return CandorTrainable(network, scaler, recipe.loss, recipe.loss_space == "original", recipe.anchor)

    def _learn_covariates(self, panel: Panel, split: Split) -> State:
        return learn_covariates(panel, self.quantities_read(), split.train_end, np.log1p)

    def _covariates(self, panel: Panel, state: State) -> NDArray[np.float32] | None:
        return read_covariates(panel, self.quantities_read(), state, np.log1p)

    def quantities_read(self) -> tuple[str, ...]:
        """Returns rain, if the network reads it."""
        return ("rain",) if self.recipe.model_settings(1, self.history, self.horizon).reads_rain else ()

    def explain(self, panel: Panel, sensor: str, time: datetime | str | None = None) -> ForecastExplanation:
        """Returns where the forecast of one sensor came from, beside the forecast itself, in the sensor's unit.

        Args:
            panel: as for `predict`.
            sensor: id of the sensor.
            time: of the first forecast step, on the panel's local clock or with an offset; between two steps the later
                one is taken. None means the step after the last reading.
        """
        self._check_fitted()
        self._check_same_sensors(panel)
        column, origin = find_sensor(panel, sensor), find_origin(panel, time, self.history)
        return explain_window(self.trained(), self.windows(panel, np.array([origin])), panel, column)

    def trained(self) -> CandorTrainable:
        """Returns the network with the weights it learned, ready for use."""
        trainable = super().trained()
        assert isinstance(trainable, CandorTrainable)  # it is what `_trainable` makes
        return trainable
