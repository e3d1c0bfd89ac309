"""CANDOR as training sees it: from batches in the sensors' unit to the objective and the forecast."""

from dataclasses import dataclass

import torch
from torch import Tensor

from candor.data.preprocessing import Scaler
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.losses import LossSpace, losses
from candor.nets.candor.settings import LossWeights
from candor.nets.trainable import Objective, StepContext, Trainable


@dataclass
class CandorTrainable(Trainable):
    """The network with its scaler and objective."""

    network: CandorNetwork
    scaler: Scaler
    """From the sensors' unit to z-scores; inputs of batches are z-scores already."""
    weights: LossWeights
    is_in_unit: bool
    """Whether errors are measured in the sensors' unit."""
    has_anchor: bool
    """Whether the last reading is subtracted from inputs and added to forecasts."""
    keeps_level: bool = False
    """Whether it is left in the inputs, and only added to forecasts."""

    @property
    def horizon(self) -> int:  # type: ignore[override]
        """Steps of a forecast."""
        return self.network.settings.horizon

    def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
        """Return the part of the objective that a micro-batch adds."""
        values, anchor = self.anchored(batch)
        clock = batch["time_of_day"], batch["day_of_week"]
        encoding = self.network.encode(values, *clock, step.prefix, self._week_of_year(batch), rain_in(batch))
        deviation = self.scaler.deviation
        scores = (batch["targets"] - self.scaler.mean) / deviation - anchor
        space = LossSpace(0.0, deviation if self.is_in_unit else 1.0)
        found = losses(
            self.network, encoding, scores * space.deviation, batch["target_mask"], self.weights, prefix=step.prefix,
            space=space, is_active=step.is_active, valid=step.valid, share=step.share,
        )  # fmt: skip
        error = found.terms["prediction"] * (1.0 if self.is_in_unit else deviation)
        summed = ("prediction", "branch")  # sums over the valid targets of the whole batch; the others are means
        terms = {name: term if name in summed else step.share * term for name, term in found.terms.items()}
        return Objective(found.total, error, terms)

    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the forecast in the sensors' unit."""
        values, anchor = self.anchored(batch)
        clock = batch["time_of_day"], batch["day_of_week"], self._week_of_year(batch)
        scores = self.network(values, *clock, rain_in(batch)) + anchor
        return scores * self.scaler.deviation + self.scaler.mean

    def _week_of_year(self, batch: dict[str, Tensor]) -> Tensor | None:
        return batch["week_of_year"] if self.network.settings.season else None

    def anchored(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the inputs of the network, and the anchor to add to its forecast, zero if there is none."""
        values = batch["inputs"]
        if not self.has_anchor:
            return values, values.new_zeros(())
        observed, steps = batch["input_mask"], torch.arange(values.shape[1], device=values.device)
        last = torch.where(observed, steps[:, None], -1).amax(dim=1, keepdim=True)
        last = torch.where(last < 0, values.shape[1] - 1, last)  # a silent sensor: what its gap was filled with
        anchor = values.gather(1, last)
        return values if self.keeps_level else values - anchor, anchor


def rain_in(batch: dict[str, Tensor]) -> Tensor | None:
    """Return the rain over the history of each window, batch x time x node, if the network reads it."""
    return batch["covariates"][..., 0] if "covariates" in batch else None
