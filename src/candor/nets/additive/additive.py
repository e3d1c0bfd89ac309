"""The stages together: the account, what the shared network adds to it, and how that is trained."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from candor.nets.additive.account import AccountLayer, Ahead
from candor.nets.additive.shared import SharedNetwork
from candor.nets.trainable import Objective, StepContext, Trainable

Forecasts = Float[Tensor, "member batch horizon node"]


class AdditiveNetwork(nn.Module):
    """The account, and shared networks that each correct it."""

    def __init__(self, account: AccountLayer, shared: Sequence[SharedNetwork]) -> None:
        super().__init__()
        self.account, self.shared = account, nn.ModuleList(shared)

    def forward(self, batch: dict[str, Tensor]) -> Forecasts:
        """Return the forecasts of the account and of each network in the sensors' unit."""
        clock = batch["time_of_day"], batch["day_of_week"], batch["week_of_year"]
        accounted = self.account(batch["inputs"], *clock)
        found: list[Ahead] = [accounted.forecast]
        history = accounted.seen.shape[2]
        mask = batch["input_mask"].permute(2, 0, 1).to(accounted.seen.dtype)
        first = [positions[:, history] for positions in clock]
        found += [accounted.forecast + shared(accounted, self.account.spread, mask, *first) for shared in self.shared]
        return torch.stack([self.account.in_unit(stage, accounted) for stage in found])


@dataclass
class AdditiveTrainable(Trainable):
    """The objective of the last network: the mean absolute error in the sensors' unit."""

    network: AdditiveNetwork
    horizon: int

    def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
        """Return the part of the objective that a micro-batch adds."""
        mask = batch["target_mask"][:, : step.prefix]
        misses = self.forecast(batch)[:, : step.prefix] - batch["targets"][:, : step.prefix]
        error = torch.where(mask, misses, 0.0).abs().sum() / max(step.valid, 1)
        return Objective(error, error.detach(), {"prediction": error.detach()})

    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the forecast of the last network in the sensors' unit."""
        return self.network(batch)[-1]
