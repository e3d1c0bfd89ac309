"""Section "Evolution-Structured Dynamics Decomposition": patches and calendar.

| symbol | code | shape |
|---|---|---|
| X | values | batch history node |
| Z | embedded | batch node patch hidden |
| [tod, dow] | rows | batch position 2 hidden |
| m_p | context | batch position hidden |
"""

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from candor.model.layers import NORM_FLOOR, Mlp
from candor.model.settings import ModelSettings

BINS_PER_DAY = 288
DAYS_PER_WEEK = 7


class PatchEmbedding(nn.Module):
    """Z = LN_Z(W_Z x + b_Z) over overlapping stretches of each node's history (eq. app_embedding_background)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.length, self.stride = settings.patch_length, settings.patch_stride
        self.linear = nn.Linear(settings.patch_length, settings.hidden)
        self.norm = nn.LayerNorm(settings.hidden, eps=NORM_FLOOR)

    def forward(self, values: Float[Tensor, "batch time node"]) -> Float[Tensor, "batch node patch hidden"]:
        series = rearrange(values, "batch time node -> batch node time")
        patches = series.unfold(-1, self.length, self.stride)  # batch node patch length
        return self.norm(self.linear(patches))


class CalendarTables(nn.Module):
    """Embeddings of the time of day and the day of week, side by side."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.time_of_day = nn.Embedding(BINS_PER_DAY, width)
        self.day_of_week = nn.Embedding(DAYS_PER_WEEK, width)

    def rows(
        self, time_of_day: Int[Tensor, "batch position"], day_of_week: Int[Tensor, "batch position"]
    ) -> Float[Tensor, "batch position twice_hidden"]:
        """Returns `[tod || dow]` at the given positions of the calendar."""
        return torch.cat([self.time_of_day(time_of_day), self.day_of_week(day_of_week)], dim=-1)


class Calendar(CalendarTables):
    """The calendar shared by everything except fusion: its tables, and the MLP that gives m_p."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings.hidden)
        width = 2 * settings.hidden
        self.mlp = Mlp(width, width, settings.hidden, settings.dropout)

    def context(self, rows: Float[Tensor, "batch position twice_hidden"]) -> Float[Tensor, "batch position hidden"]:
        """Returns m at the given rows."""
        return self.mlp(rows)
