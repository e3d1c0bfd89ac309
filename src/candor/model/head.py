"""Section "Context-Adaptive Forecast Fusion": prediction and overlap recovery.

| symbol | code | shape |
|---|---|---|
| y^patch | patches | batch node target length |
| Y | forecast | batch horizon node |
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from candor.model.history import Forecasts
from candor.model.settings import ModelSettings


class Head(nn.Module):
    """Two layers from a forecast representation to the values of its patch; overlapping patches are averaged."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.settings = settings
        self.first = nn.Linear(settings.forecast_width, settings.head_width)
        self.second = nn.Linear(settings.head_width, settings.patch_length)

    def forward(self, representation: Forecasts, prefix: int) -> Float[Tensor, "batch prefix node"]:
        """Returns the forecast of the first `prefix` steps."""
        patches = self.second(F.relu(self.first(F.relu(representation))))  # eq. app_fusion_prediction
        return self.recover(patches, prefix)

    def recover(
        self, patches: Float[Tensor, "batch node target length"], prefix: int
    ) -> Float[Tensor, "batch prefix node"]:
        """Returns the mean over the patches that cover each step (eq. app_overlap_recovery)."""
        starts, length = self.settings.target_starts[: patches.shape[2]], self.settings.patch_length
        batch, nodes = patches.shape[:2]
        end = max(starts[-1] + length, self.settings.history + prefix) - starts[0]
        total = patches.new_zeros(batch, nodes, end)
        for patch, start in zip(patches.unbind(dim=2), starts, strict=True):
            place = start - starts[0]
            total[..., place : place + length] += patch
        first = self.settings.history - starts[0]
        steps = total[..., first : first + prefix] / self._coverage(prefix).to(total)
        return steps.transpose(1, 2)

    def _coverage(self, prefix: int) -> Float[Tensor, " prefix"]:
        """Returns how many patches of the full grid cover each step, at least 1."""
        steps = torch.arange(prefix) + self.settings.history
        starts = torch.tensor(self.settings.target_starts)[:, None]
        covers = (starts <= steps) & (steps < starts + self.settings.patch_length)
        return covers.sum(dim=0).clamp(min=1).to(torch.get_default_dtype())
