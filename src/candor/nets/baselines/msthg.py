"""MSTHG (our reconstruction): multi-source spatio-temporal hypergraph learning (Zhang, Leng, Yang et al.; WWW 2026).

Idea: relations of whole groups of sensors are lost in graphs of pairs, so sensors are grouped twice, by nearness and by
the mutual information of their series. Features with calendar and frequencies pass through hypergraph convolutions on
both groupings, and a gated recurrent unit and a perceptron read the result over time together.

Read: the abstract only. The code it names could not be had, so this is a RECONSTRUCTION: tables mark it as one and
leave it out of every ranking, and its numbers are never the authors'. From the abstract are the two hypergraphs and
their sources, that correlations are dynamic, the daily, weekly and Fourier features, the hypergraph convolution, and
the gated recurrent unit beside a perceptron.

Changed: nobody can say, as there is nothing to compare with. All sizes, and what the abstract leaves open, are ours:

- A group is a sensor and its eight nearest (weights of edges, of whichever direction) or most alike. Members count by
  their closeness relative to that of the closest other member; without edges a sensor is alone in its group.
- Mutual information is that of sixteen equally filled bins of observed training readings, at most 10,000 rows, after
  their mean of the hour of the week; the bias of independent series, (16 - 1)^2 / 2 rows, is subtracted.
- Sensors take the mean of their groups' means, so that a value that all share stays as it is (the usual roots of
  degrees would change it); the weight of a group depends on its states at that time, which makes the hypergraphs
  dynamic. Gates join the two sources, and the two readings over time.
- Phases are points on a circle, because angles jump; weak frequencies have phases near zero.
- Optimiser and schedule are customary ones.
"""

import torch
from einops import rearrange
from jaxtyping import Float, Int
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.data.times import DAYS_PER_WEEK
from candor.data.windows import Windows
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.layers import slot_of_day, slot_of_week, training_rows, weekly_sums
from candor.nets.shapes import Bins, Forecast, Graph, Readings, Width

_MOST_ROWS = 10_000  # that mutual information is estimated from
_LEAST_WEIGHT = 1e-6  # of a group, so that a mean over groups always exists
_WEAK_AMPLITUDE = 1e-2  # in z-scores; below it a phase is noise
_FIRST_SCALE = 0.02  # of the tables

States = Float[Tensor, "batch time node width"]
Incidence = Float[Tensor, "node edge"]  # how much each sensor belongs to each group, from 0 to 1


class MsthgSizes(Settings):
    """Sizes of MSTHG."""

    width: Width = 64
    layers: PositiveInt = 2  # hypergraph convolutions on each of the two hypergraphs
    members: PositiveInt = 8  # of a group, besides the sensor that it is made for
    bins: int = Field(default=16, ge=2, le=64)  # of the readings of a sensor, for mutual information
    head: PositiveInt = 256  # of the hidden layer that leads to the horizon


@baselines.register("msthg")
class Msthg(BaselineNetwork):
    """Features, two hypergraphs, their fusion, two readings over time, their fusion, and a head."""

    sizes = MsthgSizes()
    tiny = MsthgSizes(width=8, layers=1, members=2, bins=4, head=8)
    is_reconstruction = True
    recipe = BaselineRecipe.of(
        epochs=100, batch=32, learning_rate=1e-3, weight_decay=1e-4, clip=5.0, milestones=(30, 50, 70), patience=20
    )

    def __init__(self, sizes: MsthgSizes, frame: Frame) -> None:
        super().__init__()
        self.sizes, self.history, self.slots = sizes, frame.history, frame.slots
        width = sizes.width
        self.value = nn.Linear(1, width)
        self.periods = nn.Linear(3 * (frame.history // 2 + 1), width)
        self.time_of_day, self.day_of_week, self.nodes = (
            nn.Parameter(_FIRST_SCALE * torch.randn(rows, width)) for rows in (self.slots, DAYS_PER_WEEK, frame.nodes)
        )
        near = groups_of(torch.maximum(frame.adjacency, frame.adjacency.T), sizes.members)
        self.near = nn.Buffer(near, persistent=False)
        self.alike = nn.Buffer(near.clone())  # until training readings are known
        self.over_near = nn.ModuleList(HypergraphConvolution(width) for _ in range(sizes.layers))
        self.over_alike = nn.ModuleList(HypergraphConvolution(width) for _ in range(sizes.layers))
        self.join_sources = SharedGate(width)
        self.step_by_step = nn.GRU(width, width, batch_first=True)
        self.at_once = nn.Sequential(nn.Linear(frame.history * width, width), nn.ReLU(), nn.Linear(width, width))
        self.join_readings = SharedGate(width)
        self.head = nn.Sequential(nn.Linear(width, sizes.head), nn.ReLU(), nn.Linear(sizes.head, frame.horizon))

    def prepare(self, training: Windows) -> None:
        """Groups the sensors by the mutual information of their training readings."""
        values, is_known, time_of_day, day_of_week = map(torch.cat, zip(*training_rows(training), strict=True))
        sums, counts = weekly_sums(training, self.slots)
        usual = (sums / counts.clamp(min=1)).float()
        unusual = values - usual[slot_of_week(time_of_day, day_of_week, self.slots)]
        step = -(-len(unusual) // _MOST_ROWS)
        bins = equally_filled(unusual[::step], is_known[::step], self.sizes.bins)
        self.alike.copy_(groups_of(mutual_information(bins, self.sizes.bins).float(), self.sizes.members))

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        time_of_day, day_of_week = time_of_day[:, : self.history], day_of_week[:, : self.history]
        calendar = self.time_of_day[slot_of_day(time_of_day, self.slots)] + self.day_of_week[day_of_week]
        periods = self.periods(periodic_features(values))[:, None]
        near = alike = self.value(values[..., None]) + calendar[:, :, None] + self.nodes + periods
        for over_near, over_alike in zip(self.over_near, self.over_alike, strict=True):
            near, alike = over_near(near, self.near), over_alike(alike, self.alike)
        states = rearrange(self.join_sources(near, alike), "batch time node width -> (batch node) time width")
        last = self.step_by_step(states)[1][0]
        joined = self.join_readings(last, self.at_once(states.flatten(1)))
        return rearrange(self.head(joined), "(batch node) horizon -> batch horizon node", batch=values.shape[0])


class HypergraphConvolution(nn.Module):
    """norm(x + relu(W mean of the groups' means of x)), where the weights of groups depend on their states."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weigh = nn.Linear(width, 1)
        self.mix = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, states: States, incidence: Incidence) -> States:
        return self.norm(states + F.relu(self.mix(self.spread(states, incidence))))

    def spread(self, states: States, incidence: Incidence) -> States:
        """Return what sensors receive from their groups: a mean of states, with no negative weight."""
        groups = (incidence / incidence.sum(dim=0)).T @ states  # batch time edge width
        weights = F.softplus(self.weigh(groups)) + _LEAST_WEIGHT
        return (incidence @ (weights * groups)) / (incidence @ weights)


class SharedGate(nn.Module):
    """A mean of two states, entry by entry, in parts that both decide."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.share = nn.Linear(2 * width, width)

    def forward(self, one: Float[Tensor, "*place width"], other: Float[Tensor, "*place width"]) -> Tensor:
        return torch.lerp(other, one, torch.sigmoid(self.share(torch.cat([one, other], dim=-1))))


def groups_of(closeness: Graph, members: int) -> Incidence:
    """Return groups of a sensor and at most so many others; what a sensor is to itself does not count."""
    others = closeness - torch.diag(closeness.diag())
    nearest, place = others.sort(dim=1, descending=True, stable=True)
    nearest, place = nearest[:, :members], place[:, :members]
    relative = nearest / nearest[:, :1].clamp(min=torch.finfo(closeness.dtype).tiny)
    return (torch.zeros_like(others).scatter(1, place, relative) + torch.eye(len(others))).T.contiguous()


def periodic_features(values: Readings) -> Float[Tensor, "batch node feature"]:
    """Return amplitude, and cosine and sine of the phase, of every frequency of the window."""
    spectrum = torch.fft.rfft(values, dim=1, norm="ortho").transpose(1, 2)
    amplitude = spectrum.abs()
    phase = spectrum / (amplitude + _WEAK_AMPLITUDE)
    return torch.cat([amplitude, phase.real, phase.imag], dim=-1)


def equally_filled(values: Float[Tensor, "time node"], is_known: Tensor, bins: int) -> Int[Tensor, "node time"]:
    """Return bins from 0 that hold equally many of a sensor's known values, and after the last one of unknown ones."""
    known = torch.where(is_known, values, torch.inf).T.contiguous()
    cuts = is_known.sum(dim=0)[:, None] * torch.arange(1, bins) // bins
    edges = known.sort(dim=1).values.gather(1, cuts)
    return torch.where(is_known.T, torch.searchsorted(edges, known, right=True), bins)


def mutual_information(binned: Int[Tensor, "node time"], bins: int) -> Graph:
    """Return the mutual information of all pairs in nats from common rows, less the bias of independent series.

    Where there is no reading its bin is the one after the last.
    """
    nodes, levels = len(binned), bins + 1
    found = torch.zeros(nodes, nodes, dtype=torch.float64)
    for node in range(nodes):
        cell = (levels * torch.arange(nodes)[:, None] + binned[node]) * levels + binned
        counts = torch.bincount(cell.flatten(), minlength=nodes * levels**2).reshape(nodes, levels, levels)
        counts = counts[:, :bins, :bins].double()
        rows = counts.sum(dim=(1, 2)).clamp(min=1)
        joint = counts / rows[:, None, None]
        apart = joint.sum(dim=1, keepdim=True) * joint.sum(dim=2, keepdim=True)
        found[node] = (torch.xlogy(joint, joint) - torch.xlogy(joint, apart)).sum(dim=(1, 2))
        found[node] -= (bins - 1) ** 2 / (2 * rows)  # Miller 1955
    return found.clamp(min=0)
