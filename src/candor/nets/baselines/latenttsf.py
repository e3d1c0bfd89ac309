"""LatentTSF: "From Observations to States" (Yang, Hu, Li, Zhang, Ding, Yu; ICML 2026).

Idea: forecasters of raw readings develop hidden states without temporal order. So an autoencoder first learns to encode
the readings of all sensors at one time as a state; frozen, it lets another forecaster work on states, whose forecast is
decoded at the end.

Read: `Muyiiiii/LatentTSF` (MIT; `my_AE.py`, `my_train.py`, `run_ae.sh`, `run_train.sh`). The method wraps any
forecaster; this is the one of its scripts, DLinear (`candor.nets.baselines.dlinear`). There are no settings for traffic
speeds: these are those of Solar (137 sensors). As released, directions are compared step by step, where the paper
writes one angle for the whole forecast. A normalisation of states that is off there is left out.

Changed: nothing is learned from missing readings. The autoencoder is evaluated on the readings it reconstructs, in
training those of the history, in validation those of the horizon. Where a target is missing the sensor's value before
it, or else its first, is encoded in its place, and a step at which no sensor was measured does not count. Best weights
have the smallest absolute error of decoded forecasts (released: squared). All windows count, not every sixtieth, and
those of the autoencoder are histories, not 24 steps. Clipping is off.
"""

from functools import partial

import torch
from jaxtyping import Float
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, BaselineStage, BaselineTrainable, Frame, Targets
from candor.nets.baselines import baselines
from candor.nets.baselines.dlinear import Dlinear, DlinearSizes
from candor.nets.shapes import Bins, Forecast, Readings, Terms
from candor.nets.trainable import Objective, StepContext

AUTOENCODER_SHARE = 0.5  # of a budget of time


class LatentTsfSizes(Settings):
    """Sizes of LatentTSF, and the weights of its objective."""

    width: PositiveInt = 256  # of a state; the layers between readings and states are twice as wide
    backbone: DlinearSizes = DlinearSizes()  # of DLinear
    prediction: NonNegativeFloat = 10.0  # weight of the squared error of states
    alignment: NonNegativeFloat = 15.0  # weight of the angle between forecast and true states


class LatentTsfRecipe(BaselineRecipe):
    """How LatentTSF learns; `training` is that of the forecaster of states."""

    autoencoder_epochs: PositiveFloat = 5.0  # epochs of the autoencoder for each of the forecaster
    autoencoder_rate: PositiveFloat = 5e-4  # learning rate of the autoencoder, which stays
    autoencoder_patience: PositiveInt = 20  # epochs without a better reconstruction after which the autoencoder is done


class Autoencoder(BaselineNetwork):
    """Two layers from the readings of a time to its state, which is never negative, and two layers back."""

    def __init__(self, width: int, frame: Frame) -> None:
        super().__init__()
        nodes, inside = frame.nodes, 2 * width
        self.encoder = nn.Sequential(nn.Linear(nodes, inside), nn.ReLU(), nn.Linear(inside, width), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(width, inside), nn.ReLU(), nn.Linear(inside, nodes))

    def forward(self, values: Readings, *more: Tensor | None) -> Readings:
        """Return the readings as reconstructed from their states."""
        return self.decoder(self.encoder(values))


class AutoencoderTrainable(BaselineTrainable):
    """The autoencoder with its objective: it learns to reconstruct histories, and is evaluated on horizons."""

    def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
        """Return a micro-batch's part of the mean absolute error of reconstructed readings, in z-scores."""
        values, observed = batch["inputs"], batch["input_mask"]
        errors = torch.where(observed, self.network(values) - values, 0.0).abs().sum(dim=(1, 2))
        mean = step.share * (errors / observed.sum(dim=(1, 2)).clamp(min=1)).mean()
        return Objective(mean, self.scaler.deviation * mean.detach(), {"rebuilding": mean})

    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the readings of the horizon as reconstructed, in the sensors' unit."""
        mask, deviation = batch["target_mask"], self.scaler.deviation
        scores = torch.where(mask, (batch["targets"] - self.scaler.mean) / deviation, 0.0)
        return self.network(carried_forward(batch["inputs"][:, -1], scores, mask)) * deviation + self.scaler.mean


@baselines.register("latenttsf")
class LatentTsf(BaselineNetwork):
    """An encoder, DLinear over states, and a decoder; of these only DLinear learns."""

    sizes: LatentTsfSizes = LatentTsfSizes()
    tiny = LatentTsfSizes(width=16)
    recipe: LatentTsfRecipe = LatentTsfRecipe.of(
        epochs=100, batch=32, learning_rate=1e-3, schedule="cosine", patience=5
    )

    def __init__(self, sizes: LatentTsfSizes, frame: Frame) -> None:
        super().__init__()
        self.sizes = sizes
        self.autoencoder = Autoencoder(sizes.width, frame).requires_grad_(False)
        self.backbone = Dlinear(sizes.backbone, frame)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        return self.autoencoder.decoder(self.states_ahead(values))

    def states_ahead(self, values: Readings) -> Float[Tensor, "batch horizon width"]:
        """Return the forecast as states."""
        return self.backbone(self.autoencoder.encoder(values))

    def objective(self, inputs: tuple[Tensor, ...], targets: Targets) -> tuple[Forecast, Terms]:
        """Return the forecast, and how far its states are from those of the readings, in size and in direction."""
        values = inputs[0]
        found = self.states_ahead(values)
        wanted = self.autoencoder.encoder(carried_forward(values[:, -1], targets.wanted, targets.mask))
        ahead, counts = found[:, : wanted.shape[1]], targets.mask.any(dim=2)
        parts = targets.share * counts / (len(counts) * counts.sum(dim=1, keepdim=True).clamp(min=1))
        distance = (parts * (ahead - wanted).square().mean(dim=2)).sum()
        angle = (parts * (1 - F.cosine_similarity(ahead, wanted, dim=2))).sum()
        terms = {"prediction": self.sizes.prediction * distance, "alignment": self.sizes.alignment * angle}
        return self.autoencoder.decoder(found), terms

    def inherit(self, earlier: nn.Module) -> None:
        """Take over the autoencoder of the stage before."""
        self.autoencoder.load_state_dict(earlier.state_dict())

    @classmethod
    def stages(cls, sizes: LatentTsfSizes, recipe: LatentTsfRecipe) -> tuple[BaselineStage, ...]:
        """Return the training of the autoencoder."""
        update = {
            "epochs": max(1, round(recipe.autoencoder_epochs * recipe.training.epochs)),
            "learning_rate": recipe.autoencoder_rate,
            "schedule": "milestones",
            "milestones": (),
            "patience": recipe.autoencoder_patience,
        }
        training, build = recipe.training.model_copy(update=update), partial(Autoencoder, sizes.width)
        return (BaselineStage(training, "autoencoder", AUTOENCODER_SHARE, build=build, kind=AutoencoderTrainable),)


def carried_forward(last: Float[Tensor, "batch node"], values: Forecast, mask: Tensor) -> Forecast:
    """Return values in which each missing one is replaced by the value before it.

    Those before the first observed value are replaced by that one, as some protocols read zero where the last reading
    of the history is missing; a series without any observed value by `last`.
    """
    first = mask.int().argmax(dim=1, keepdim=True)  # 0 where there is none
    last = torch.where(mask.any(dim=1), values.gather(1, first)[:, 0], last)
    filled = []
    for step in range(values.shape[1]):
        last = torch.where(mask[:, step], values[:, step], last)
        filled.append(last)
    return torch.stack(filled, dim=1)
