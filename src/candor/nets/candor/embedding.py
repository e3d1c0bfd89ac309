"""Section "Evolution-Structured Dynamics Decomposition": patches and calendar.

| symbol | code | shape |
|---|---|---|
| X | values | batch history node |
| Z | embedded | batch node patch hidden |
| [tod, dow] | rows | batch position 2 hidden |
| season (beyond the paper) | added to rows | batch position 2 hidden |
| m_p | context | batch position hidden |
"""

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK, WEEKS_PER_YEAR
from candor.nets.candor.settings import ModelSettings
from candor.nets.layers import NORM_FLOOR, Mlp


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
    """Embeddings of the time of day and the day of week, side by side; with `season`, that of the week is added.

    The season begins at zero and draws no random numbers: a network with it begins as the one without.
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width = settings.hidden
        self.time_of_day = nn.Embedding(BINS_PER_DAY, width)
        self.day_of_week = nn.Embedding(DAYS_PER_WEEK, width)
        self.season: nn.Embedding | None = None
        if settings.season:
            self.season = nn.Embedding.from_pretrained(torch.zeros(WEEKS_PER_YEAR, 2 * width), freeze=False)

    def rows(
        self,
        time_of_day: Int[Tensor, "batch position"],
        day_of_week: Int[Tensor, "batch position"],
        week_of_year: Int[Tensor, "batch position"] | None = None,
    ) -> Float[Tensor, "batch position twice_hidden"]:
        """Returns `[tod || dow]` at the given positions of the calendar, plus the season if there is one."""
        rows = torch.cat([self.time_of_day(time_of_day), self.day_of_week(day_of_week)], dim=-1)
        if self.season is None:
            return rows
        if week_of_year is None:
            raise ValueError("this network has a season (season=true): it needs week_of_year beside the values")
        return rows + self.season(week_of_year)


class Calendar(CalendarTables):
    """The calendar shared by everything except fusion: its tables, and the MLP that gives m_p."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        width = 2 * settings.hidden
        self.mlp = Mlp(width, width, settings.hidden, settings.dropout)

    def context(self, rows: Float[Tensor, "batch position twice_hidden"]) -> Float[Tensor, "batch position hidden"]:
        """Returns m at the given rows."""
        return self.mlp(rows)
