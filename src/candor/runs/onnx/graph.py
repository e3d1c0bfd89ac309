"""A forecaster's network as one computation from readings to forecasts, both in the sensors' unit.

| input | shape | content |
|---|---|---|
| readings | batch history sensor | float32, in the sensors' unit; NaN where missing |
| time_of_day | batch (history + horizon) | int64, bins 0..287 of the local day; 0 for daily data |
| day_of_week | batch (history + horizon) | int64, 0 is Monday |
| week_of_year | batch (history + horizon) | int64, (day of the year - 1) // 7; only for networks that know the season |

The output `forecast` is batch x horizon x sensor. Gaps are filled by the model's own rule within the window: it is the
forecast that candor makes from these rows alone. Where candor is given a longer record, a sensor that is silent when
the window begins keeps the reading it had before.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.errors import InputError, NotFittedError
from candor.forecasting.forecaster import Forecaster
from candor.forecasting.network import NetworkForecaster
from candor.nets.candor.trainable import CandorTrainable

CLOCK = ("time_of_day", "day_of_week", "week_of_year")


class ForecastGraph(nn.Module):
    """Filling, scaling, the network, and the way back to the sensors' unit.

    Args:
        forecaster: a fitted network.
    """

    means: Tensor

    def __init__(self, forecaster: NetworkForecaster) -> None:
        super().__init__()
        trainable = forecaster.trained()
        has_season = isinstance(trainable, CandorTrainable) and trainable.network.settings.season
        self.trainable, self.network = trainable, trainable.network
        self.clock = CLOCK if has_season else CLOCK[:2]
        self.history, self.horizon, self.rule = forecaster.history, forecaster.horizon, forecaster.fill
        self.mean, self.deviation = (float(number) for number in forecaster.state_["scaler"])
        means = torch.from_numpy(forecaster.state_["means"]).nan_to_num(nan=0.0)
        self.register_buffer("means", means, persistent=False)

    def forward(self, readings: Tensor, *clock: Tensor) -> Tensor:
        """Returns the forecast in the sensors' unit, batch x horizon x sensor."""
        is_observed = ~readings.isnan()
        scores = (self._filled(readings, is_observed) - self.mean) / self.deviation
        batch = dict(zip(self.clock, clock, strict=True)) | {"inputs": scores, "input_mask": is_observed}
        return self.trainable.forecast(batch)

    def _filled(self, readings: Tensor, is_observed: Tensor) -> Tensor:
        """Returns the readings with every gap filled, as `candor.data.preprocessing.fill` does within one window."""
        known = torch.where(is_observed, readings, 0.0)
        if self.rule == "zero":
            return known
        steps = torch.arange(self.history)[:, None]
        latest = torch.where(is_observed, steps, -1)  # becomes the row of the latest reading at or before each row
        reach = 1
        while reach < self.history:
            earlier = F.pad(latest[:, :-reach], (0, 0, reach, 0), value=-1)
            latest = torch.maximum(latest, earlier)
            reach *= 2
        before = self.means
        if self.rule == "forward-backward":
            first = torch.where(is_observed, steps, self.history).amin(dim=1, keepdim=True)
            earliest = known.gather(1, first.clamp(max=self.history - 1))
            before = torch.where(first < self.history, earliest, self.means)
        return torch.where(latest < 0, before, known.gather(1, latest.clamp(min=0)))


def check_exportable(forecaster: Forecaster) -> NetworkForecaster:
    """Returns the forecaster if it has an ONNX form; those that are no network of readings alone are refused."""
    if not isinstance(forecaster, NetworkForecaster):
        raise InputError(
            f"{forecaster.name} is not a network: it has no ONNX form",
            hint="export a run of candor or of a network among the baselines, or make a bundle: --bundle",
        )
    if names := forecaster.quantities_read():
        raise InputError(
            f"this {forecaster.name} reads covariates ({', '.join(names)}), which an ONNX file has no place for",
            hint="train it without covariates, or make a bundle: --bundle",
        )
    if not hasattr(forecaster, "state_"):
        raise NotFittedError(f"this {forecaster.name} forecaster is not fitted yet", hint="call fit(panel) first")
    return forecaster
