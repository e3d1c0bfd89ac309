"""The smallest network there is, and windows for it: enough to see what a loop does."""

import numpy as np
import torch
from tiny import PROTOCOL
from torch import Tensor, nn

from candor.data.windows import Windows
from candor.forecasting.contract import sample_panel
from candor.nets.trainable import Objective, StepContext, Trainable
from candor.training.loop import TrainingData


class Slope(Trainable):
    """A forecast that is the last reading times a learned number."""

    def __init__(self) -> None:
        self.network: nn.Module = nn.Linear(1, 1, bias=False)
        self.horizon = PROTOCOL.horizon
        nn.init.zeros_(self.network.weight)

    def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
        mask = batch["target_mask"]
        error = torch.where(mask, self.forecast(batch) - batch["targets"], 0.0).abs().sum() / step.valid
        return Objective(error, error.detach(), {})

    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        return self.network(batch["inputs"][:, -1:, :, None])[..., 0].expand(-1, self.horizon, -1)


def slope_data() -> TrainingData:
    """Returns 400 windows to learn from and 88 that choose."""
    panel = sample_panel()
    spans = np.nan_to_num(panel.values), PROTOCOL.history, PROTOCOL.horizon
    windows = [Windows(panel, spans[0], np.arange(*rows), *spans[1:]) for rows in ((12, 412), (412, 500))]
    return TrainingData(*windows, panel.sensor_ids, "m")
