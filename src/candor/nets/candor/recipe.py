"""The settings of CANDOR by name: its size, its training and its objective."""

from typing import Any, Literal

from pydantic import Field

from candor.core.settings import parse_settings
from candor.nets.candor.settings import LossWeights, ModelSettings
from candor.nets.recipe import NetworkRecipe

SIZES: dict[str, dict[str, Any]] = {"paper": {}, "small": {"forecast_width": 64, "head_width": 128}}


class Recipe(NetworkRecipe):
    """Sizes, training and objective of CANDOR."""

    size: Literal["paper", "small"] = "small"
    """Widths of forecast and head: the paper's, or a quarter of them for machines without a graphics card."""
    model: dict[str, Any] = Field(default_factory=dict)
    """Sizes of the network that differ from those, see ModelSettings."""
    loss: LossWeights = LossWeights()
    """Coefficients of the objective."""
    anchor: bool = False
    """Whether the last reading of each sensor's window is subtracted before the network and added to its forecast."""
    keeps_level: bool = False
    """With an anchor: whether the last reading is only added to the forecast and not subtracted before. Long horizons
    revert to the mean of the season, so the level is kept as an input."""

    def model_settings(self, nodes: int, history: int, horizon: int) -> ModelSettings:
        """Return the sizes of the network; a patch overlaps the next by half.

        It is a third of the history long, or twice the horizon where that is shorter. What halves leave over of the
        history makes patches longer, so that the last one ends with the newest reading.
        """
        half = max(1, min(history // 6, horizon))
        patches = {"patch_length": min(2 * half + history % half, history), "patch_stride": half}
        spans = {"nodes": nodes, "history": history, "horizon": horizon}
        return parse_settings(ModelSettings, spans | patches | SIZES[self.size] | self.model, "model settings")
