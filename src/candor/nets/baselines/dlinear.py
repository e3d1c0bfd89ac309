"""DLinear: Decomposition-Linear ("Are Transformers Effective for Time Series Forecasting?", Zeng et al., AAAI 2023).

Idea: a moving average splits the history into trend and remainder, and one linear layer each, shared by all sensors,
maps them to the horizon. There is no normalisation, calendar or graph.

Read: `cure-lab/LTSF-Linear` (Apache-2.0) and `thuml/Time-Series-Library` (MIT; `models/DLinear.py`), and the METR-LA
settings of the BasicTS library, whose recipe this is.

Changed: the moving average spans at most half the history, as 25 steps would make a trend of 12 a nearly constant line.
A history of one step has no remainder. First weights are one over the history, as in the Time-Series-Library. Absolute
errors are minimised, as in BasicTS; the authors' own runs used squared ones (`loss: squared`).
"""

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from candor.core.settings import Settings
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.layers import moving_average, odd_at_most
from candor.nets.shapes import Forecast, Readings


class DlinearSizes(Settings):
    """Sizes of DLinear."""

    window: Annotated[int, Field(ge=3)] = 25
    """Steps of the moving average at most; an odd number not above half the history is taken, but never below 3."""


@baselines.register("dlinear")
class Dlinear(BaselineNetwork):
    """Moving average and remainder, each through one linear layer; node by node."""

    sizes = DlinearSizes()
    tiny = DlinearSizes(window=5)
    recipe = BaselineRecipe.of(epochs=50, batch=64, learning_rate=2e-3, weight_decay=1e-4, clip=5.0, milestones=(1, 25))

    def __init__(self, sizes: DlinearSizes, frame: Frame) -> None:
        super().__init__()
        self.window = max(3, odd_at_most(min(sizes.window, frame.history // 2)))
        self.trend = nn.Linear(frame.history, frame.horizon)
        self.remainder = nn.Linear(frame.history, frame.horizon)
        for layer in (self.trend, self.remainder):
            nn.init.constant_(layer.weight, 1 / frame.history)

    def forward(self, values: Readings, *more: Tensor | None) -> Forecast:
        series = values.transpose(1, 2)
        trend = moving_average(series, self.window)
        return (self.trend(trend) + self.remainder(series - trend)).transpose(1, 2)
