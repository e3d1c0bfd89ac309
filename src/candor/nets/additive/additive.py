"""The stages together: the account, what the shared network adds to it, and how that is trained."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from candor.nets.additive.account import AccountLayer, Ahead
from candor.nets.additive.shared import SharedNetwork
from candor.nets.trainable import Objective, StepContext, Trainable

Forecasts = Float[Tensor, "stage batch horizon node"]


class AdditiveNetwork(nn.Module):
    """The account and the shared network on top of it, if there is one."""

    def __init__(self, account: AccountLayer, shared: SharedNetwork | None) -> None:
        super().__init__()
        self.account, self.shared = account, shared

    def forward(self, batch: dict[str, Tensor]) -> Forecasts:
        """Return the forecast in the sensors' unit as it stands after each stage."""
        clock = batch["time_of_day"], batch["day_of_week"], batch["week_of_year"]
        accounted = self.account(batch["inputs"], *clock)
        found: list[Ahead] = [accounted.forecast]
        if self.shared is not None:
            history = accounted.seen.shape[2]
            mask = batch["input_mask"].permute(2, 0, 1).to(accounted.seen.dtype)
            first = (positions[:, history] for positions in clock)
            found.append(found[-1] + self.shared(accounted, self.account.spread, mask, *first))
        return torch.stack([self.account.in_unit(stage, accounted) for stage in found])


@dataclass
class AdditiveTrainable(Trainable):
    """The stages with the objective of the last one: the mean absolute error in the sensors' unit."""

    network: AdditiveNetwork
    horizon: int

    def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
        """Return the part of the objective that a micro-batch adds."""
        mask = batch["target_mask"][:, : step.prefix]
        misses = self.forecast(batch)[:, : step.prefix] - batch["targets"][:, : step.prefix]
        error = torch.where(mask, misses, 0.0).abs().sum() / max(step.valid, 1)
        return Objective(error, error.detach(), {"prediction": error.detach()})

    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the forecast of the last stage in the sensors' unit."""
        return self.network(batch)[-1]
