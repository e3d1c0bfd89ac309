"""Names that networks share: tensors by their shape, and kinds of sizes."""

from typing import Annotated, Self

from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from candor.core.settings import Settings

Readings = Float[Tensor, "batch time node"]  # z-scores of the history with gaps filled
Bins = Int[Tensor, "batch whole"]  # 0..287 of the day, or 0..6 of the week from Monday, of history and horizon
Covariates = Float[Tensor, "batch time node quantity"] | None  # z-scores of further quantities over the history
Forecast = Float[Tensor, "batch horizon node"]
Terms = dict[str, Tensor]  # parts of the terms of an objective by name
Graph = Float[Tensor, "node node2"]
Tokens = Float[Tensor, "rows token width"]

Width = Annotated[int, Field(gt=0, description="Of the states, or of a token.")]
Hidden = Annotated[int, Field(gt=0, description="Width of hidden layers, as in feed-forward parts and in the head.")]
Heads = Annotated[int, Field(gt=0, description="Of every attention; the width must be a multiple of them.")]
Layers = Annotated[int, Field(gt=0, description="Layers, or blocks of layers, one after the other.")]
PatchSteps = Annotated[int, Field(gt=0, description="Steps of a patch; at most a quarter of the history.")]
Rate = Annotated[float, Field(ge=0.0, lt=1.0, description="The share that dropout sets to zero.")]
AtLeastTwo = Annotated[int, Field(ge=2)]


class HeadedSizes(Settings):
    """Sizes of a network whose attention layers divide their width among heads."""

    width: Width
    heads: Heads

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width ({self.width}) must be a multiple of heads ({self.heads})")
        return self


class EncoderSizes(HeadedSizes):
    """Sizes of a transformer encoder."""

    feed_forward: Hidden
    layers: Layers
    dropout: Rate
