"""Parts that several baselines are made of."""

import math
from collections.abc import Iterator
from typing import Annotated, Self

import torch
from einops import rearrange
from jaxtyping import Float
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn

from candor.core.settings import Settings
from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK
from candor.data.windows import Windows
from candor.nets.dropout import Dropout

Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
"""The share that a dropout takes away."""

_WINDOWS_AT_A_TIME = 1024
_VARIANCE_FLOOR = 1e-5


class HeadedSizes(Settings):
    """Sizes of a network whose attentions divide its width among their heads."""

    width: PositiveInt
    heads: PositiveInt

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width ({self.width}) must be a multiple of heads ({self.heads})")
        return self


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017) whose weights are dropped in training."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.scale = heads, math.sqrt(heads / width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.dropout = Dropout(dropout)

    def forward(
        self, asking: Float[Tensor, "#rows asking width"], answering: Float[Tensor, "rows answering width"]
    ) -> Float[Tensor, "rows asking width"]:
        """Returns what each asking token sees; tokens that ask for all rows alike may come as one."""
        queries = rearrange(self.query(asking), "r t (h d) -> r h t d", h=self.heads)
        keys, values = rearrange(self.key_value(answering), "r t (two h d) -> two r h t d", two=2, h=self.heads)
        weights = self.dropout((self.scale * queries @ keys.transpose(-1, -2)).softmax(dim=-1))
        return self.out(rearrange(weights @ values, "r h t d -> r t (h d)"))


def readings(training: Windows) -> Iterator[tuple[Tensor, ...]]:
    """Yields values, masks, times of day and days of week of the rows that training windows read, each row once."""
    last = training.history - 1
    for begin in range(0, len(training), _WINDOWS_AT_A_TIME):
        batch = training.batch(slice(begin, begin + _WINDOWS_AT_A_TIME)).tensors()
        fields = [batch[name] for name in ("inputs", "input_mask", "time_of_day", "day_of_week")]
        if begin == 0:
            yield tuple(field[0, :last] for field in fields)
        yield tuple(field[:, last] for field in fields)


def standardise(series: Float[Tensor, "batch time series"]) -> tuple[Tensor, Tensor, Tensor]:
    """Returns series with mean 0 and deviation 1 within each window, their means and their deviations."""
    mean = series.mean(dim=1, keepdim=True)
    deviation = (series.var(dim=1, keepdim=True, correction=0) + _VARIANCE_FLOOR).sqrt()
    return (series - mean) / deviation, mean, deviation


def calendar_series(time_of_day: Tensor, day_of_week: Tensor, steps: int) -> Float[Tensor, "batch time 2"]:
    """Returns time of day and day of week of the first steps, each as a series from -1/2 to 1/2."""
    both = torch.stack([time_of_day / (BINS_PER_DAY - 1), day_of_week / (DAYS_PER_WEEK - 1)], dim=-1)
    return both[:, :steps] - 0.5


def xavier_table(rows: int, width: int) -> nn.Parameter:
    """Returns a learned vector for each row."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(rows, width)))
