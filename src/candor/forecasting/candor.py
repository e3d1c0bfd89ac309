"""CANDOR as a forecaster: fit, predict, save and load like every other."""

from typing import Self

from pydantic import model_validator
from pydantic.dataclasses import dataclass

from candor.data.scaling import Scaler
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
