"""ST-SSDL: Self-Supervised Deviation Learning (Gao, Dong, Yong, Fukushima, Taura, Jiang; NeurIPS 2025).

Idea: the window and its usual counterpart (the training mean of the same hours of the week) pass through one graph
recurrent encoder and are assigned to learned prototypes; the distance between the two is made to agree between the
states and the prototypes. The decoder starts from the window's state and works on a graph made of both.

Read: `Jimmy-7664/ST-SSDL` (MIT; `model_STSSDL`, `generate_training_data_his_*.py`); sizes are those of METR-LA.

Changed: the usual window is averaged over the rows that training windows read, not over 80 % of the calendar, which
holds the validation part. An hour of the week without readings is the sensor's mean (released: zero in its unit).
Scheduled sampling feeds the decoder the truth in training as often as released on METR-LA at the same share of all
epochs (released: after as many steps, with a number for each dataset). The probability changes from epoch to epoch
instead of from step to step, is drawn per micro-batch, and where the truth is missing the decoder goes on from its own
value (released: from zero). Tables of the time of day have a row per step of the day, at most 288. The adaptive table
is left out: its width is 0 wherever it was trained. Chebyshev terms are applied one by one instead of as powers of the
graph.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.data.times import DAYS_PER_WEEK
from candor.data.windows import Windows
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame, Targets
from candor.nets.baselines import baselines
from candor.nets.dropout import dropout_mask
from candor.nets.layers import scaled_by_degrees, side_by_side, slot_of_day, slot_of_week, weekly_sums
from candor.nets.shapes import AtLeastTwo, Bins, Forecast, Readings, Terms

_LARGEST_PROBABILITY = 0.9999  # a mask that drops everything has no scale
_STEPS = 75_000  # of the optimiser on METR-LA: 200 epochs of 375 batches

States = Float[Tensor, "batch node feature"]


class StSsdlSizes(Settings):
    """Sizes of ST-SSDL, and the weights of its objective."""

    width: PositiveInt = 128  # of the encoder's state
    prototypes: AtLeastTwo = 20  # learned patterns that states are assigned to
    prototype_width: PositiveInt = 64  # of each of them; the decoder's state is as wide as both together
    orders: AtLeastTwo = 3  # chebyshev terms of a graph convolution, the identity among them
    value_width: PositiveInt = 3  # of an embedded reading
    node_width: PositiveInt = 25  # of a sensor's embedding
    clock_width: PositiveInt = 20  # of the time of day's embedding, and of the codes of the decoder's graph
    contrast: NonNegativeFloat = 0.01  # weight of the term that pulls the nearest prototype closer than the second
    deviation: NonNegativeFloat = 1.0  # weight of the term that makes distances from the usual agree
    margin: PositiveFloat = 0.5  # by how much the nearest prototype should be closer than the second
    teaching: PositiveFloat = 2000.0
    """How slowly the truth is withdrawn from the decoder, in steps of a whole training on METR-LA, which has 75,000."""


class Recall(NamedTuple):
    """The encoding of a window, and the prototypes it is assigned to."""

    state: States
    query: States
    value: States
    nearest: States
    second: States


@baselines.register("st-ssdl")
class StSsdl(BaselineNetwork):
    """A graph recurrent encoder for the window and the usual one, prototypes between, and a graph recurrent decoder."""

    sizes = StSsdlSizes()
    tiny = StSsdlSizes(width=8, prototypes=4, prototype_width=4, orders=2, node_width=3, clock_width=3)
    # To which the weights of the other terms belong
    recipe = BaselineRecipe.of(
        loss_space="original",
        epochs=200,
        batch=64,
        learning_rate=1e-2,
        adam_floor=1e-3,
        clip=5.0,
        milestones=(50, 70),
        decay=0.1,
        patience=30,
    )

    def __init__(self, sizes: StSsdlSizes, frame: Frame) -> None:
        super().__init__()
        self.sizes, self.history, self.horizon, self.slots = sizes, frame.history, frame.horizon, frame.slots
        features = sizes.value_width + sizes.clock_width + sizes.node_width
        decoder_width = sizes.width + sizes.prototype_width
        self.value = nn.Linear(1, sizes.value_width)
        self.clock = nn.Parameter(torch.empty(self.slots, sizes.clock_width))
        self.nodes = nn.Parameter(torch.empty(frame.nodes, sizes.node_width))
        self.prototypes = nn.Parameter(torch.empty(sizes.prototypes, sizes.prototype_width))
        self.query = nn.Linear(sizes.width, sizes.prototype_width, bias=False)
        self.encoder = RecurrentCell(features, sizes.width, sizes.orders)
        self.decoder = RecurrentCell(features, decoder_width, sizes.orders)
        self.graph = nn.Linear(2 * decoder_width, sizes.clock_width)
        self.output = nn.Linear(decoder_width, 1)
        for table in (self.clock, self.nodes):
            nn.init.xavier_uniform_(table)
        nn.init.xavier_normal_(self.prototypes)
        nn.init.xavier_normal_(self.query.weight)
        self.support = nn.Buffer(scaled_by_degrees(frame.adjacency).T.contiguous(), persistent=False)
        self.usual = nn.Buffer(torch.zeros(DAYS_PER_WEEK * self.slots, frame.nodes))

    def prepare(self, training: Windows) -> None:
        """Learn what is usual in every slot of the week, in z-scores."""
        sums, counts = weekly_sums(training, self.slots)
        means = sums.sum(dim=0) / counts.sum(dim=0).clamp(min=1)
        self.usual.copy_(torch.where(counts > 0, sums / counts.clamp(min=1), means))

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        return self.decode(*self.recall(values, time_of_day, day_of_week), time_of_day)

    def objective(self, inputs: tuple[Tensor, ...], targets: Targets) -> tuple[Forecast, Terms]:
        """Return the forecast, and its error beside the terms that shape the prototypes."""
        values, time_of_day, day_of_week, *_ = inputs
        now, usual = self.recall(values, time_of_day, day_of_week)
        forecast = self.decode(now, usual, time_of_day, targets if self.training else None)
        contrast = F.triplet_margin_loss(now.query.detach(), now.nearest, now.second, self.sizes.margin)
        between_queries = (now.query - usual.query).abs().sum(dim=-1).detach()
        between_prototypes = (now.nearest - usual.nearest).abs().sum(dim=-1)
        return forecast, {
            "prediction": targets.error(forecast),
            "contrast": self.sizes.contrast * targets.share * contrast,
            "deviation": self.sizes.deviation * targets.share * F.l1_loss(between_prototypes, between_queries),
        }

    def recall(self, values: Readings, time_of_day: Bins, day_of_week: Bins) -> tuple[Recall, Recall]:
        """Return the encodings of the windows, and of the usual ones at the same hours of the week."""
        seen = slice(0, self.history)
        usual = self.usual[slot_of_week(time_of_day[:, seen], day_of_week[:, seen], self.slots)]
        both = self.embed(torch.cat([values, usual]), time_of_day[:, seen].repeat(2, 1))
        state = both.new_zeros(both.shape[0], both.shape[2], self.sizes.width)
        for step in range(self.history):
            state = self.encoder(both[:, step], state, self.support)
        query = self.query(state)
        weights = torch.softmax(query @ self.prototypes.T, dim=-1)
        best = weights.topk(2, dim=-1).indices
        nearest, second = self.prototypes[best].unbind(dim=-2)
        parts, windows = (state, query, weights @ self.prototypes, nearest, second), values.shape[0]
        return Recall(*(part[:windows] for part in parts)), Recall(*(part[windows:] for part in parts))

    def decode(self, now: Recall, usual: Recall, time_of_day: Bins, truth: Targets | None = None) -> Forecast:
        """Return the forecast, step by step from the step before, or at random steps from the truth."""
        codes = self.graph(torch.cat([now.state, now.value, usual.state, usual.value], dim=-1))
        graph = torch.softmax(F.relu(codes @ codes.transpose(1, 2)), dim=-1)
        state = torch.cat([now.state, now.value], dim=-1)
        value = state.new_zeros(state.shape[:2])
        fed: list[int] = [] if truth is None else self.draw_steps(truth).nonzero().flatten().tolist()
        forecast = []
        for step in range(self.horizon):
            place = self.history + step
            features = self.embed(value[:, None], time_of_day[:, place : place + 1])[:, 0]
            state = self.decoder(features, state, graph)
            value = self.output(state)[..., 0]
            forecast.append(value)
            if truth is not None and step in fed:
                value = torch.where(truth.mask[:, step], truth.wanted[:, step], value)
        return torch.stack(forecast, dim=1)

    def draw_steps(self, truth: Targets) -> Bool[Tensor, " prefix"]:
        """Return the steps after which the decoder is fed the truth; the probability is t / (t + exp(steps / t))."""
        slowness, steps = self.sizes.teaching, truth.done * _STEPS
        probability = float(torch.sigmoid(torch.tensor(math.log(slowness) - steps / slowness)))
        return dropout_mask((truth.wanted.shape[1],), min(probability, _LARGEST_PROBABILITY), truth.wanted) == 0

    def embed(self, values: Readings, time_of_day: Bins) -> Float[Tensor, "batch time node feature"]:
        """Return values, times of day and sensors side by side."""
        clock = self.clock[slot_of_day(time_of_day, self.slots)]
        return side_by_side(self.value(values[..., None]), clock[:, :, None], self.nodes)


class RecurrentCell(nn.Module):
    """A gated recurrent unit whose gates and candidate are graph convolutions."""

    def __init__(self, inputs: int, width: int, orders: int) -> None:
        super().__init__()
        self.gates = ChebyshevConvolution(inputs + width, 2 * width, orders)
        self.candidate = ChebyshevConvolution(inputs + width, width, orders)

    def forward(self, inputs: States, state: States, graph: Tensor) -> States:
        reset, keep = torch.sigmoid(self.gates(torch.cat([inputs, state], dim=-1), graph)).chunk(2, dim=-1)
        candidate = torch.tanh(self.candidate(torch.cat([inputs, reset * state], dim=-1), graph))
        return torch.lerp(candidate, state, keep)


class ChebyshevConvolution(nn.Module):
    """Chebyshev terms of a graph, receiver x sender, mixed by one linear layer."""

    def __init__(self, inputs: int, outputs: int, orders: int) -> None:
        super().__init__()
        self.orders = orders
        self.mix = nn.Linear(orders * inputs, outputs)
        nn.init.xavier_normal_(self.mix.weight)
        nn.init.zeros_(self.mix.bias)

    def forward(self, states: States, graph: Float[Tensor, "*batch node node"]) -> States:
        terms = [states, graph @ states]
        for _ in range(2, self.orders):
            terms.append(2 * (graph @ terms[-1]) - terms[-2])
        return self.mix(torch.cat(terms, dim=-1))
