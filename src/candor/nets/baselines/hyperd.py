"""HyperD: Hybrid Periodicity Decoupling (Shao, Zhang, Wang, Dai, Shen, Wang; AAAI 2026, arXiv 2511.09275).

Idea: every sensor has a learned profile of the day and of the week, refined over the graph and by attention, which is
subtracted from the history and added to the forecast. The rest is forecast by multilayer perceptrons on its
frequencies, over the sensors and over time, and a second term of the objective keeps slow movements in the profiles.

Read: `ll121202/HyperD` (no licence file; `baselines/HyperD`, `Initialization.py`). There are no settings for METR-LA;
those of PEMS04 are taken. The learning rate is the one that training really had: its one-cycle schedule was made for
steps of time but advanced once per epoch, and so never left a twenty-fifth of its peak.

Changed: a step reads the profiles' rows of its own time; `as_released` reads rows that are history - 1 steps late, for
the row of the last step that was read stood for the first. First profiles leave out missing readings, and an hour of
the week without any takes the mean of the hour. Profiles have a row per step of the day, at most 288. Self-loops are
removed from the graph: a sensor without other edges would lose its profile. Keys have no bias: it cancels in the
softmax. Both halves of the second term, MSE(profile, slow part of the forecast) and MSE(remainder, fast part), are one
number, computed once and doubled. Slow are waves of six steps and longer, as at the published horizon of twelve; the
term is left out where that would be all. The node frequencies depend on the order of the sensors, here as there.
"""

import torch
from einops import rearrange
from jaxtyping import Float
from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.data.times import DAYS_PER_WEEK
from candor.data.windows import Windows
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame, Targets
from candor.nets.baselines import baselines
from candor.nets.layers import attend, scaled_by_degrees, slot_of_day, slot_of_week, weekly_sums
from candor.nets.shapes import Bins, Forecast, Graph, Readings, Terms

_FIRST_SCALE = 0.02  # of the weights on frequencies
_SHRINKAGE = 0.01
_PUBLISHED_HORIZON = 12


class HyperdSizes(Settings):
    """Sizes of HyperD, and the weight of its second term."""

    width: PositiveInt = 64  # of an embedded value
    hidden: PositiveInt = 128  # of the perceptrons on frequencies
    head: PositiveInt = 128  # of the hidden layer that leads to the horizon
    slow: PositiveInt = 3  # lowest frequencies at a horizon of twelve, the mean among them; others in proportion
    dual_view: NonNegativeFloat = 2.0  # weight of the term that puts them there
    as_released: bool = False  # whether the profiles' rows are history - 1 steps late, as in the released code


@baselines.register("hyperd")
class Hyperd(BaselineNetwork):
    """Profiles of the day and the week, and a forecast of the rest."""

    sizes = HyperdSizes()
    tiny = HyperdSizes(width=8, hidden=16, head=16)
    # To which the weight of the second term belongs
    recipe = BaselineRecipe.of(loss_space="original", epochs=100, batch=64, learning_rate=2e-4, clip=5.0, patience=100)

    def __init__(self, sizes: HyperdSizes, frame: Frame) -> None:
        super().__init__()
        self.sizes, self.history, self.slots = sizes, frame.history, frame.slots
        self.day = LearnedProfile(self.slots, frame.nodes)
        self.week = LearnedProfile(DAYS_PER_WEEK * self.slots, frame.nodes)
        self.remainder = RemainderForecast(sizes, frame)
        self.mixing = nn.Buffer(laplacian(frame.adjacency), persistent=False)

    def prepare(self, training: Windows) -> None:
        """Begin the profiles with the means of training readings, in z-scores."""
        sums, counts = weekly_sums(training, self.slots)
        of_day = [part.unflatten(0, (DAYS_PER_WEEK, self.slots)).sum(dim=0) for part in (sums, counts)]
        day = of_day[0] / of_day[1].clamp(min=1)
        week = torch.where(counts > 0, sums / counts.clamp(min=1), day.repeat(DAYS_PER_WEEK, 1))
        with torch.no_grad():
            self.day.table.copy_(day)
            self.week.table.copy_(week)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        profile, remainder = self.parts(values, time_of_day, day_of_week)
        return profile + remainder

    def objective(self, inputs: tuple[Tensor, ...], targets: Targets) -> tuple[Forecast, Terms]:
        """Return the forecast, and its error beside the distance between its profile and its slow part."""
        profile, remainder = self.parts(*inputs[:3])
        forecast = profile + remainder
        terms = {"prediction": targets.error(forecast)}
        slow = 1 + round((self.sizes.slow - 1) * forecast.shape[1] / _PUBLISHED_HORIZON)  # frequencies, with the mean
        if slow <= forecast.shape[1] // 2:  # else nothing would be left to the remainder
            spectrum = torch.fft.rfft(forecast, dim=1)
            is_slow = torch.arange(spectrum.shape[1], device=forecast.device) < slow
            slow_part = torch.fft.irfft(spectrum * is_slow[:, None], n=forecast.shape[1], dim=1)
            distance = F.mse_loss(profile, slow_part)
            terms["dual_view"] = self.sizes.dual_view * targets.share * 2 * distance
        return forecast, terms

    def parts(self, values: Readings, time_of_day: Bins, day_of_week: Bins) -> tuple[Forecast, Forecast]:
        """Return the two parts of the forecast: the profile, and what is added to it."""
        day = slot_of_day(time_of_day, self.slots)
        week = slot_of_week(time_of_day, day_of_week, self.slots)
        if self.sizes.as_released:
            later = torch.arange(day.shape[1], device=day.device)
            day = (day[:, self.history - 1, None] + later) % len(self.day.table)
            week = (week[:, self.history - 1, None] + later) % len(self.week.table)
        usual = self.day(self.mixing)[day] + self.week(self.mixing)[week]
        return usual[:, self.history :], self.remainder(values - usual[:, : self.history])


class LearnedProfile(nn.Module):
    """A learned table of what is usual, refined over the graph, over its rows and over the sensors."""

    def __init__(self, rows: int, nodes: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, nodes))
        self.mix = nn.Linear(nodes, nodes)
        self.over_rows = SingleHeadAttention(nodes)
        self.over_nodes = SingleHeadAttention(rows)
        self.join = nn.Linear(2 * nodes, nodes)

    def forward(self, mixing: Float[Tensor, "node node"]) -> Float[Tensor, "row node"]:
        mixed = F.relu(self.mix(self.table @ mixing))
        return self.join(torch.cat([self.over_rows(mixed), self.over_nodes(mixed.T).T], dim=-1))


class SingleHeadAttention(nn.Module):
    """Attention with one head among places."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)

    def forward(self, places: Float[Tensor, "place width"]) -> Float[Tensor, "place width"]:
        return attend(self.query(places)[None], self.key(places)[None], self.value(places)[None], heads=1)[0]


class RemainderForecast(nn.Module):
    """Forecasts the rest from its frequencies over the sensors and then over time."""

    def __init__(self, sizes: HyperdSizes, frame: Frame) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(sizes.width))
        self.over_nodes = FrequencyPerceptron(sizes.width, sizes.hidden, axis=2)
        self.over_time = FrequencyPerceptron(sizes.width, sizes.hidden, axis=1)
        self.first = nn.Linear(frame.history * sizes.width, sizes.head)
        self.second = nn.Linear(sizes.head, frame.horizon)

    def forward(self, values: Readings) -> Forecast:
        embedded = values[..., None] * self.embedding
        states = embedded + self.over_time(self.over_nodes(embedded))
        flat = rearrange(states, "batch time node width -> batch node (time width)")
        return self.second(F.leaky_relu(self.first(flat))).transpose(1, 2)


class FrequencyPerceptron(nn.Module):
    """Two complex layers on the frequencies along an axis; small amplitudes are shrunk away."""

    def __init__(self, width: int, hidden: int, axis: int) -> None:
        super().__init__()
        self.axis = axis
        self.first = ComplexLayer(width, hidden)
        self.second = ComplexLayer(hidden, width)

    def forward(self, states: Float[Tensor, "batch time node width"]) -> Float[Tensor, "batch time node width"]:
        frequencies = torch.fft.rfft(states, dim=self.axis, norm="ortho")
        parts = self.second(*self.first(frequencies.real, frequencies.imag))
        shrunk = torch.complex(*(F.softshrink(part, _SHRINKAGE) for part in parts))
        return torch.fft.irfft(shrunk, n=states.shape[self.axis], dim=self.axis, norm="ortho")


class ComplexLayer(nn.Module):
    """A complex linear layer with a ReLU on its real and on its imaginary part."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(_FIRST_SCALE * torch.randn(2, inputs, outputs))  # real, imaginary
        self.bias = nn.Parameter(_FIRST_SCALE * torch.randn(2, outputs))

    def forward(self, real: Tensor, imaginary: Tensor) -> tuple[Tensor, Tensor]:  # complex numbers bar ONNX files
        real_weight, imaginary_weight = self.weight
        return (
            F.relu(real @ real_weight - imaginary @ imaginary_weight + self.bias[0]),
            F.relu(imaginary @ real_weight + real @ imaginary_weight + self.bias[1]),
        )


def laplacian(adjacency: Graph) -> Graph:
    """Return the normalised Laplacian of the graph without its self-loops, sender x receiver."""
    weights = adjacency - torch.diag(adjacency.diag())
    return torch.eye(len(weights)) - scaled_by_degrees(weights)
