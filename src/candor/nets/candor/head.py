"""Section "Context-Adaptive Forecast Fusion": prediction and overlap recovery.

| symbol | code | shape |
|---|---|---|
| y^patch | patches | batch node target length |
| Y | forecast | batch horizon node |

| equation | where |
|---|---|
| app_fusion_prediction | `Head.forward` |
| app_overlap_recovery | `Head.recover` |
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.candor.history import Forecasts
from candor.nets.candor.settings import ModelSettings


class Head(nn.Module):
    """Two layers from a forecast representation to the values of its patch; overlapping patches are averaged."""

    recovery: Tensor

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.length = settings.patch_length
        self.first = nn.Linear(settings.forecast_width, settings.head_width)
        self.second = nn.Linear(settings.head_width, settings.patch_length)
        self.register_buffer("recovery", recovery_matrix(settings), persistent=False)

    def forward(self, representation: Forecasts, prefix: int) -> Float[Tensor, "batch prefix node"]:
        """Returns the forecast of the first `prefix` steps."""
        patches = self.second(F.relu(self.first(F.relu(representation))))  # eq. app_fusion_prediction
        return self.recover(patches, prefix)

    def recover(
        self, patches: Float[Tensor, "batch node target length"], prefix: int
    ) -> Float[Tensor, "batch prefix node"]:
        """Returns the mean over the patches that cover each step (eq. app_overlap_recovery)."""
        steps = patches.flatten(2) @ self.covering(patches.shape[2], prefix)  # batch node prefix
        return steps.transpose(1, 2)

    def covering(self, targets: int, prefix: int) -> Float[Tensor, "places prefix"]:
        """Returns the part of the recovery matrix that the first patches and steps need."""
        return self.recovery[: targets * self.length, :prefix]


def recovery_matrix(settings: ModelSettings) -> Float[Tensor, "places horizon"]:
    """Returns the map from all places of all target patches to the steps of the horizon: the mean over I_h."""
    starts = torch.tensor(settings.target_starts)
    step_of_place = (starts[:, None] + torch.arange(settings.patch_length)).flatten() - settings.history
    covers = step_of_place[:, None] == torch.arange(settings.horizon)
    return (covers / covers.sum(dim=0).clamp(min=1)).to(torch.get_default_dtype())
