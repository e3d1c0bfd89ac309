"""XLinear: a lightweight MLP with exogenous inputs (Chen, Jin, Huang, Feng; AAAI 2026).

Idea: a gate is a small MLP whose sigmoid multiplies its own input, and two of them are enough. The first filters a
series together with its learned global token over time; the second filters across series with the global tokens.

Read: `Zaiwen/XLinear` (no licence file; `models/XLinear.py`, `script/pems`), multivariate mode: every node is forecast
and all nodes are inputs, scaled within the window. The published runs on PEMS forecast a single sensor; their sizes,
those of PEMS04 with 12 steps ahead, are kept. No calendar is read.

Changed: covariates, an extension in between its two modes, join the series that the second gate filters, through the
same embedding; scaling within the window keeps their course but not their amount. As released, an unused schedule makes
the first epoch 25 times slower and Adam's momentum 0.95; we leave both out. Training does not stop early.
"""

import torch
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor, nn

from candor.core.settings import Settings
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import Mlp, standardise
from candor.nets.shapes import Bins, Covariates, Forecast, Rate, Readings, Width


class XLinearSizes(Settings):
    """Sizes of XLinear; an embedded series and a global token are as wide as `width`."""

    width: Width = 512
    time_hidden: PositiveInt = 128  # hidden width of the gate over time
    series_hidden: PositiveInt = 256  # hidden width of the gate across series
    embedding_dropout: Rate = 0.0  # on embedded series
    time_dropout: Rate = 0.0  # within the gate over time
    series_dropout: Rate = 0.0  # within the gate across series
    head_dropout: Rate = 0.2  # before the last layer


@baselines.register("xlinear")
class XLinear(BaselineNetwork):
    """Embedded series, a gate over time, a gate across series, one linear layer to the horizon."""

    sizes = XLinearSizes()
    tiny = XLinearSizes(width=8, time_hidden=6, series_hidden=6)
    reads_covariates = True
    # The rate falls by a tenth after every epoch from the fourth on.
    recipe = BaselineRecipe.of(
        loss="squared", epochs=20, batch=32, learning_rate=1e-3, milestones=tuple(range(4, 20)), decay=0.9
    )

    def __init__(self, sizes: XLinearSizes, frame: Frame) -> None:
        super().__init__()
        width = sizes.width
        self.embedding = nn.Linear(frame.history, width)
        self.global_tokens = nn.Parameter(torch.ones(frame.nodes, width))
        self.over_time = GatedMlp(2 * width, sizes.time_hidden, sizes.time_dropout)
        series = (2 + frame.covariates) * frame.nodes  # readings, covariates, global parts
        self.across_series = GatedMlp(series, sizes.series_hidden, sizes.series_dropout)
        self.head = nn.Linear(2 * width, frame.horizon)
        self.embedding_dropout = Dropout(sizes.embedding_dropout)
        self.head_dropout = Dropout(sizes.head_dropout)

    def forward(
        self, values: Readings, time_of_day: Bins, day_of_week: Bins, covariates: Covariates = None, /
    ) -> Forecast:
        nodes = values.shape[2]
        series = values if covariates is None else torch.cat([values, covariates.flatten(2)], dim=2)
        scores, mean, deviation = standardise(series)
        embedded = self.embedding_dropout(self.embedding(scores.transpose(1, 2)))  # batch series width
        tokens = self.global_tokens.expand(values.shape[0], -1, -1)
        own, shared = self.over_time(torch.cat([embedded[:, :nodes], tokens], dim=-1)).chunk(2, dim=-1)
        meeting = torch.cat([embedded, shared], dim=1).transpose(1, 2)  # batch width series
        shared = self.across_series(meeting)[..., -nodes:].transpose(1, 2)
        forecast = self.head(self.head_dropout(torch.cat([own, shared], dim=-1))).transpose(1, 2)
        return forecast * deviation[..., :nodes] + mean[..., :nodes]


class GatedMlp(Mlp):
    """x sigmoid(W2 dropout(relu(W1 x)))."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__(width, hidden, width, dropout, nn.ReLU())

    def forward(self, inputs: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
        return inputs * super().forward(inputs).sigmoid()
