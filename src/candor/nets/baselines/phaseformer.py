"""PhaseFormer: from patches to phases (Niu, Deng, Tong; ICLR 2026).

Idea: a series is folded by its period, and a token holds the readings of one phase of the period in all cycles, instead
of those of all phases in one. Phases are few and steady, so they exchange information through a handful of routers.

Read: `neumyor/PhaseFormer_TSL` (MIT; `models/PhaseFormer.py`, `scripts/run_traffic.sh`); the sizes are those of Traffic
for most horizons. Nodes do not influence each other, and no calendar is read: phase 0 is the start of the window. What
the original switches off or never uses is left out.

Changed: the original reads thirty days. Here the period is a day (a week for daily data) where the history holds two of
them, and otherwise a quarter of the history, so that phases are only places within the window. As released, where
periods do not fill the history its oldest steps are repeated after the newest. Training does not stop early.
"""

import math
from collections import OrderedDict

import torch
from einops import rearrange
from pydantic import PositiveInt
from torch import Tensor, nn

from candor.data.times import DAYS_PER_WEEK
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import Attention, Mlp, standardise
from candor.nets.shapes import Forecast, HeadedSizes, Heads, Layers, Rate, Readings, Tokens, Width

FIRST_DEVIATION = 0.02
LEAST_CYCLES = 4


class PhaseFormerSizes(HeadedSizes):
    """Sizes of PhaseFormer."""

    period: PositiveInt | None = None  # steps of a cycle; without it, see `period_of`
    width: Width = 128
    routers: PositiveInt = 4  # through which phases exchange information
    heads: Heads = 4
    layers: Layers = 1
    dropout: Rate = 0.1  # in the attentions and before every sum


@baselines.register("phaseformer")
class PhaseFormer(BaselineNetwork):
    """Tokens of phases, routing units, and for every phase its values in the cycles to come; node by node."""

    sizes = PhaseFormerSizes()
    tiny = PhaseFormerSizes(width=8, routers=2, heads=2, layers=2)
    recipe = BaselineRecipe.of(loss="squared", epochs=30, batch=16, learning_rate=1e-3)

    def __init__(self, sizes: PhaseFormerSizes, frame: Frame) -> None:
        super().__init__()
        self.horizon, self.period = frame.horizon, sizes.period or period_of(frame)
        cycles = math.ceil(frame.history / self.period)
        places = torch.arange(cycles * self.period) % frame.history
        self.places = nn.Buffer(places, persistent=False)
        self.embedding = phase_embedding(cycles, sizes.width)
        self.units = nn.ModuleList(RoutingUnit(sizes, self.period) for _ in range(sizes.layers))
        self.passed_on = nn.ModuleList(
            nn.Sequential(nn.Linear(sizes.width, cycles), phase_embedding(cycles, sizes.width))
            for _ in range(sizes.layers - 1)
        )
        self.head = nn.Linear(sizes.width, math.ceil(frame.horizon / self.period))

    def forward(self, values: Readings, *more: Tensor | None) -> Forecast:
        scores, mean, deviation = standardise(values)
        whole = scores[:, self.places]
        tokens = self.units[0](self.embedding(rearrange(whole, "b (c p) n -> (b n) p c", p=self.period)))
        for passed_on, unit in zip(self.passed_on, self.units[1:], strict=True):
            tokens = unit(tokens + passed_on(tokens))
        ahead = rearrange(self.head(tokens), "(b n) p c -> b (c p) n", b=values.shape[0])
        return ahead[:, : self.horizon] * deviation + mean


def phase_embedding(cycles: int, width: int) -> nn.Sequential:
    """Return what makes a token of the readings of a phase in all cycles."""
    return nn.Sequential(OrderedDict(linear=nn.Linear(cycles, width), norm=nn.LayerNorm(width)))


class RoutingUnit(nn.Module):
    """Routers attend to all phases, phases attend to the routers; a feed-forward layer follows."""

    def __init__(self, sizes: PhaseFormerSizes, period: int) -> None:
        super().__init__()
        width = sizes.width
        self.routers, self.positions = (
            nn.Parameter(nn.init.trunc_normal_(torch.empty(rows, width), std=FIRST_DEVIATION))
            for rows in (sizes.routers, period)
        )
        self.gather = Attention(width, sizes.heads, sizes.dropout)
        self.spread = Attention(width, sizes.heads, sizes.dropout)
        self.routed_norm, self.norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed_forward = Mlp(width, 4 * width, width, dropout=0.0)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, tokens: Tokens) -> Tokens:
        tokens = tokens + self.positions
        gathered = self.gather(self.routers[None], tokens)  # series router width
        tokens = self.routed_norm(tokens + self.dropout(self.spread(tokens, gathered)))
        return self.norm(tokens + self.dropout(self.feed_forward(tokens)))


def period_of(frame: Frame) -> int:
    """Return the steps of a cycle: a day, or a week of daily data, or else a quarter of the history."""
    cycle = frame.steps_per_day if frame.steps_per_day > 1 else DAYS_PER_WEEK
    return cycle if frame.history >= 2 * cycle else max(1, frame.history // LEAST_CYCLES)
