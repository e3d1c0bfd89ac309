"""The account (`candor.account`) as a layer: the same forecast from the same window, in torch and without gradients."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from candor.account.account import Account
from candor.data.times import BINS_PER_DAY

History = Float[Tensor, "node batch time"]
Ahead = Float[Tensor, "node batch horizon"]
Clock = Int[Tensor, "batch time"]


@dataclass(frozen=True)
class Accounted:
    """What the account makes of some windows; all but the unit is in robust spreads of each sensor."""

    seen: History
    """Deviations of the history, oldest first."""
    usual: Float[Tensor, "node batch both"]
    """Usual readings of history and horizon, in the sensors' unit."""
    forecast: Ahead
    """Deviations of the steps ahead."""


class AccountLayer(nn.Module):
    """A fitted account.

    Buffers are not part of the weights: they belong to the account's own state.
    """

    profile: Tensor
    year: Tensor
    spread: Tensor
    own: Tensor
    kernels: Tensor
    constant: Tensor
    sender: Tensor
    receiver: Tensor

    def __init__(self, account: Account) -> None:
        super().__init__()
        usual, links = account.deviations.usual, account.links
        arrays = {
            "profile": usual.profile.transpose(2, 0, 1), "year": usual.year.T, "spread": account.deviations.spread,
            "own": account.own[:, ::-1], "kernels": account.kernels[:, ::-1], "constant": account.constant,
            "sender": links.sender, "receiver": links.receiver,
        }  # fmt: skip
        for name, array in arrays.items():
            self.register_buffer(name, torch.from_numpy(array.copy()), persistent=False)
        self.keeps_last = account.keeps_last

    def forward(
        self, seen: Float[Tensor, "batch time node"], time_of_day: Clock, day_of_week: Clock, week_of_year: Clock
    ) -> Accounted:
        """Return the account of windows: of filled deviations of the history, and the clock of history and horizon."""
        seen = seen.permute(2, 0, 1).contiguous()
        forecast = seen @ self.own + self.constant[:, None]
        if self.keeps_last:
            forecast = forecast + seen[:, :, -1:]
        if len(self.sender):
            lags = self.kernels.shape[1]
            arrived = seen[self.sender, :, seen.shape[2] - lags :] @ self.kernels
            forecast = forecast.index_add(0, self.receiver, arrived)
        return Accounted(seen, self.usual(time_of_day, day_of_week, week_of_year), forecast)

    def usual(self, time_of_day: Clock, day_of_week: Clock, week_of_year: Clock) -> Float[Tensor, "node batch time"]:
        """Return what is usual at each row, in the sensors' unit."""
        days, bins = self.profile.shape[1:]
        slot = (day_of_week % days) * bins + time_of_day * bins // BINS_PER_DAY
        found = self.profile.flatten(1)[:, slot]
        return found + self.year[:, week_of_year % self.year.shape[1]]

    def in_unit(self, deviations: Ahead, accounted: Accounted) -> Float[Tensor, "batch horizon node"]:
        """Return forecast deviations as readings in the sensors' unit."""
        usual = accounted.usual[:, :, -deviations.shape[2] :]
        return (usual + deviations * self.spread[:, None, None]).permute(1, 2, 0)
