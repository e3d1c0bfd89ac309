"""RSTIB-MLP: information-bottleneck-guided MLPs (Chen, Pang, Wang, Yan; ICML 2025).

Idea: histories and targets are both noisy, so an MLP on identities of place and time learns a Gaussian representation,
and noise that it adds to its own input and to the targets; the information in all three is penalised. A teacher that
knows the network of sensors measures which of them are hard: for these errors count less and information costs more.

Read: `mchen644/RSTIB` (MIT; `methods/student`, `engine.py`, `config/student/pems04`); there are settings for PEMS04
only. The targets' noise is drawn in the network's unit and added in the unit of the errors, as released: the sensors'
unit, to which the price of information belongs. Distillation is logged there, but never learned from.

Changed: the deviation of the input's noise has a layer of its own; `as_released` uses that of its mean for both. In use
all noise is at its mean, so that forecasts are not random (released: one draw, or the mean of twelve). The teacher is
Graph WaveNet with its own recipe instead of STGCN, as it fits any history and graph; without `has_teacher` all sensors
are equally hard. Where targets are missing, errors and difficulty do not count. Values are z-scores, not shares of the
largest reading, and the calendar are fractions of a day and of a week. Steps of the dynamic embedding are joined before
its core, which is the same, without the bias of that join, which cancels in the softmax. Training ends at the 170th
epoch at the earliest, as there, but the best weights may be those of any epoch (released: from the 150th on).
"""

import math
from functools import partial
from typing import Annotated, Literal, Self

import torch
from jaxtyping import Float, Int
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, BaselineStage, Frame, Targets
from candor.nets.baselines import baselines
from candor.nets.baselines.graph_wavenet import GraphWavenet, GraphWavenetSizes
from candor.nets.baselines.stid import CHANNELS, ResidualBlock, history_channels
from candor.nets.layers import normal_like, side_by_side, xavier_table
from candor.nets.shapes import Bins, Forecast, Layers, Rate, Readings, Terms

PARTS = 5  # of the embedding: history, sensor, sensor at this time of day, time of day, day of week
LEAST_DEVIATION, LARGEST_DEVIATION = 0.01, 0.99
STANDARD = Normal(0.0, 1.0)
TEACHER_SHARE = 0.4  # of a budget of time


States = Float[Tensor, "batch node channel"]


class RstibMlpSizes(Settings):
    """Sizes of RSTIB-MLP, and the weights of its objective."""

    width: Annotated[int, Field(gt=0, multiple_of=2)] = 64  # of each of the five parts of the embedding
    layers: Layers = 3
    dropout: Rate = 0.15
    information: NonNegativeFloat = 1e-3  # the price of information, beta
    has_teacher: bool = True  # whether a teacher measures which sensors are hard
    teacher: GraphWavenetSizes = GraphWavenetSizes()  # of the teacher
    as_released: bool = False  # whether mean and deviation of the input's noise share a layer, as in the released code


class RstibMlpRecipe(BaselineRecipe):
    """How RSTIB-MLP learns; `training` is that of the student."""

    loss_space: Literal["original", "scores"] = "original"  # the sensors' unit, to which the price belongs, or z-scores
    teacher_epochs: PositiveFloat = 1 / 3  # epochs of the teacher for each of the student


@baselines.register("rstib-mlp")
class RstibMlp(BaselineNetwork):
    """An encoder that reads a window twice, the second time with noise, and a linear layer to the horizon."""

    sizes: RstibMlpSizes = RstibMlpSizes()
    tiny = RstibMlpSizes(width=8, layers=1, teacher=GraphWavenet.tiny)
    needs_whole_batches = True  # batch normalisation within the teacher
    # The released code begins to count its patience of 20 epochs at the 150th.
    recipe: RstibMlpRecipe = RstibMlpRecipe.of(
        loss_space="original",
        epochs=300,
        batch=32,
        learning_rate=2e-3,
        milestones=(1, 20, 50, 75, 100, 150, 200),
        patience=170,
    )

    def __init__(self, sizes: RstibMlpSizes, frame: Frame) -> None:
        super().__init__()
        width, half = PARTS * sizes.width, PARTS * sizes.width // 2
        self.sizes, self.sensors = sizes, frame.nodes
        self.series = nn.Linear(CHANNELS * frame.history, sizes.width)
        self.nodes = xavier_table(frame.nodes, sizes.width)
        self.dynamic = DynamicEmbedding(sizes.width, frame)
        self.time_of_day = xavier_table(BINS_PER_DAY, sizes.width)
        self.day_of_week = xavier_table(DAYS_PER_WEEK, sizes.width)
        self.encoder = nn.Sequential(*(ResidualBlock(width, sizes.dropout) for _ in range(sizes.layers)))
        self.input_mean = nn.Linear(half, width)
        self.input_deviation = None if sizes.as_released else nn.Linear(half, width)
        self.target_mean, self.target_deviation = (nn.Linear(half, frame.horizon) for _ in range(2))
        self.head = nn.Linear(half, frame.horizon)
        self.teacher = GraphWavenet(sizes.teacher, frame).requires_grad_(False) if sizes.has_teacher else None

    def train(self, mode: bool = True) -> Self:
        """Put the network into training or into use; the teacher is always in use."""
        super().train(mode)
        if self.teacher is not None:
            self.teacher.eval()
        return self

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        return self.read(values, time_of_day, day_of_week)[0]

    def read(self, values: Readings, time_of_day: Bins, day_of_week: Bins) -> tuple[Forecast, dict[str, Normal]]:
        """Return the forecast, and the three distributions whose information is penalised."""
        states = self.embed(values, time_of_day, day_of_week)
        first = self.represent(states)
        input_deviation = self.input_deviation or self.input_mean
        input_noise = limited(self.input_mean(first.mean), input_deviation(first.stddev))
        target_noise = limited(self.target_mean(first.mean), self.target_deviation(first.stddev))
        second = self.represent(states + self.draw(input_noise))
        noises = {"representation": first, "input_noise": input_noise, "target_noise": target_noise}
        return self.head(self.draw(second)).transpose(1, 2), noises

    def embed(self, values: Readings, time_of_day: Bins, day_of_week: Bins) -> States:
        """Return the history of every sensor beside the identities of place and time."""
        last = values.shape[1] - 1
        series = self.series(history_channels(values, time_of_day, day_of_week))
        slot, day = self.time_of_day[time_of_day[:, last]], self.day_of_week[day_of_week[:, last]]
        return side_by_side(series, self.nodes, self.dynamic(time_of_day[:, : last + 1]), slot[:, None], day[:, None])

    def represent(self, states: States) -> Normal:
        """Return the representation of embedded windows."""
        mean, deviation = self.encoder(states).chunk(2, dim=-1)
        return limited(mean, F.softplus(deviation))

    def draw(self, noise: Normal) -> States:
        """Return a draw in training, and the mean in use."""
        return noise.mean + noise.stddev * normal_like(noise.mean) if self.training else noise.mean

    def objective(self, inputs: tuple[Tensor, ...], targets: Targets) -> tuple[Forecast, Terms]:
        """Return the forecast, its error against noisy targets, and the price of the information of all three."""
        forecast, noises = self.read(*inputs[:3])
        hardness = self.hardness(inputs, targets)
        noise = self.draw(noises["target_noise"]).transpose(1, 2) / targets.unit
        misses = targets.misses(forecast - noise).abs()
        error = targets.unit * ((2 - hardness[:, None]) * misses).sum() / max(targets.valid, 1)
        price = 2 * self.sizes.information * targets.share * (1 + hardness)
        costs = {"prediction": error}
        for name, noisy in noises.items():
            costs[name] = (price * kl_divergence(noisy, STANDARD).sum(dim=2)).mean()
        return forecast, {name: cost / math.log(2) for name, cost in costs.items()}

    @torch.no_grad()
    def hardness(self, inputs: tuple[Tensor, ...], targets: Targets) -> Float[Tensor, "batch node"]:
        """Return each sensor's share of the difficulty of a window: the softmax of the teacher's mean errors."""
        if self.teacher is None:
            return targets.wanted.new_full((len(targets.wanted), self.sensors), 1 / self.sensors)
        sums = targets.misses(self.teacher(*inputs)).abs().sum(dim=1)
        return F.softmax(targets.unit * sums / targets.mask.sum(dim=1).clamp(min=1), dim=1)

    def inherit(self, earlier: nn.Module) -> None:
        """Take over the teacher of the stage before."""
        if self.teacher is not None:
            self.teacher.load_state_dict(earlier.state_dict())

    @classmethod
    def stages(cls, sizes: RstibMlpSizes, recipe: RstibMlpRecipe) -> tuple[BaselineStage, ...]:
        """Return the training of the teacher, if there is one."""
        if not sizes.has_teacher:
            return ()
        epochs = max(1, round(recipe.teacher_epochs * recipe.training.epochs))
        training = GraphWavenet.recipe.training.model_copy(update={"epochs": epochs})
        return (BaselineStage(training, "teacher", TEACHER_SHARE, build=partial(GraphWavenet, sizes.teacher)),)


class DynamicEmbedding(nn.Module):
    """An embedding of each sensor at the times of day of a window, normalised over all sensors."""

    def __init__(self, width: int, frame: Frame) -> None:
        super().__init__()
        self.times = nn.Parameter(torch.randn(BINS_PER_DAY, width))
        self.nodes = nn.Parameter(torch.randn(frame.nodes, width))
        self.core = nn.Parameter(torch.randn(width, width, width))
        self.steps = nn.Linear(frame.history, 1, bias=False)

    def forward(self, bins: Int[Tensor, "batch time"]) -> States:
        joined = self.steps(self.times[bins].transpose(1, 2))[..., 0]  # batch width
        return F.softmax(torch.einsum("bi,ijk,nj->bnk", joined, self.core, self.nodes), dim=1)


def limited(mean: States, deviation: States) -> Normal:
    """Return a normal distribution whose deviations are neither too small nor too large."""
    return Normal(mean, deviation.clamp(LEAST_DEVIATION, LARGEST_DEVIATION), validate_args=False)
