"""CANDOR's stages as one graph for ONNX: deviations, account, shared networks, simple rules and their blend.

Like candor it fills a gap with the last deviation before it, and the rules fill it with the last reading; what was
before the rows that are given, it does not know.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from candor.forecasting.candor import Candor
from candor.forecasting.forecaster import State
from candor.nets.additive.additive import AdditiveTrainable

_MOST_SEASONS_BACK = 4


class StagesGraph(nn.Module):
    """The stages of a fitted CANDOR.

    `history` counts the rows that are read: those of the window, or as many as a rule of the blend repeats.
    """

    means: Tensor
    weights: Tensor

    def __init__(self, forecaster: Candor) -> None:
        super().__init__()
        self.trainable: AdditiveTrainable = forecaster.trained()
        self.network = self.trainable.network
        self.clock = ("time_of_day", "day_of_week", "week_of_year")
        self.history, self.window, self.horizon = forecaster.rows_needed, forecaster.history, forecaster.horizon
        self.deviation = float(forecaster.state_["scaler"][1])
        self.groups, self.rules = forecaster.groups(), nn.ModuleList()
        for name, state in forecaster.rule_states().items():
            self.rules.append(_RULES[name](state, self.window, self.horizon))
        self.register_buffer("means", torch.from_numpy(forecaster.state_["means"]), persistent=False)
        weights = torch.from_numpy(forecaster.blend_weights()).float().T
        self.register_buffer("weights", weights[:, None, :, None], persistent=False)  # member 1 step 1

    def forward(self, readings: Tensor, *clock: Tensor) -> Tensor:
        """Return the forecast in the sensors' unit, batch x horizon x sensor."""
        is_observed = ~readings.isnan()
        account = self.network.account
        usual = account.usual(*clock).permute(1, 2, 0)[:, : self.history]
        deviations = torch.where(is_observed, (readings - usual) / account.spread, 0.0)
        filled = carried_forward(deviations, is_observed, torch.zeros_like(self.means))
        first = self.history - self.window
        batch = {name: positions[:, first:] for name, positions in zip(self.clock, clock, strict=True)}
        batch |= {"inputs": filled[:, first:], "input_mask": is_observed[:, first:]}
        account_forecast, *networks = self.network(batch)
        means = [torch.stack([networks[place] for place in places]).mean(dim=0) for _, places in self.groups]
        last = carried_forward(torch.where(is_observed, readings, 0.0), is_observed, self.means)
        rules = [rule(readings, last) for rule in self.rules]
        return (torch.stack([account_forecast, *means, *rules]) * self.weights).sum(dim=0)


class _LastValue(nn.Module):
    """The last reading, at every step."""

    def __init__(self, state: State, window: int, horizon: int) -> None:
        super().__init__()
        self.horizon = horizon

    def forward(self, readings: Tensor, filled: Tensor) -> Tensor:
        return filled[:, -1:].expand(-1, self.horizon, -1)


class _Linear(nn.Module):
    """The ridge regression of `candor.forecasting.simple`."""

    weights: Tensor

    def __init__(self, state: State, window: int, horizon: int) -> None:
        super().__init__()
        self.window = window
        self.mean, self.deviation = (float(number) for number in state["scale"])
        self.register_buffer("weights", torch.from_numpy(state["weights"]), persistent=False)

    def forward(self, readings: Tensor, filled: Tensor) -> Tensor:
        scores = (filled[:, -self.window :] - self.mean) / self.deviation
        windows = F.pad(scores, (0, 0, 0, 1), value=1.0).permute(2, 0, 1)
        return (windows @ self.weights.transpose(1, 2)).permute(1, 2, 0) * self.deviation + self.mean


class _SeasonalNaive(nn.Module):
    """The reading one season earlier, or some seasons where that is missing."""

    mean: Tensor

    def __init__(self, state: State, window: int, horizon: int) -> None:
        super().__init__()
        self.season, self.horizon = int(state["season"][0]), horizon
        self.register_buffer("mean", torch.from_numpy(state["mean"]), persistent=False)

    def forward(self, readings: Tensor, filled: Tensor) -> Tensor:
        steps, rows = torch.arange(self.horizon), readings.shape[1]
        back = (steps // self.season + 1) * self.season
        nothing = torch.full_like(readings[:, :1], torch.nan).expand(-1, self.horizon, -1)
        found = nothing
        for _ in range(_MOST_SEASONS_BACK):
            place = rows + steps - back
            earlier = torch.where((place >= 0)[:, None], readings[:, place.clamp(min=0)], nothing)
            found, back = torch.where(found.isnan(), earlier, found), back + self.season
        return torch.where(found.isnan(), self.mean, found)


_RULES = {"last-value": _LastValue, "linear": _Linear, "seasonal-naive": _SeasonalNaive}


def carried_forward(known: Tensor, is_observed: Tensor, before: Tensor) -> Tensor:
    """Return values, batch x row x sensor, with gaps carried forward; before the first one they are `before`."""
    rows = known.shape[1]
    latest = torch.where(is_observed, torch.arange(rows)[:, None], -1)  # the latest reading at or before each row
    reach = 1
    while reach < rows:
        latest = torch.maximum(latest, F.pad(latest[:, :-reach], (0, 0, reach, 0), value=-1))
        reach *= 2
    return torch.where(latest < 0, before, known.gather(1, latest.clamp(min=0)))
