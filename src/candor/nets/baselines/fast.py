"""FaST: long horizons for large graphs by mixtures of experts (Zhao, Zhong, Wang, Wen, Jin, Liang, Wan, Wu; KDD 2026).

Idea: nodes exchange information through a few learned agents instead of with each other, so that cost grows with the
number of nodes and not with its square. Feed-forward layers are mixtures of gated linear experts, weighted by a router
that reads the node, the time of day, the day of week and the window.

Read: `yijizhao/FaST` (no licence file; `main-master/FaST/arch/fast_arch.py` and its settings for San Diego). No graph
is read. Of the calendar only the last step that is read counts. All routers read the window, not the states.

Changed: the original reads raw values and minimises a smooth absolute error over all targets; here z-scores are read,
and the absolute error of the observed targets is minimised, as for the other models. Each window is scaled by its own
mean and deviation, so z-scores only move the floor under the deviation. Calendar positions are whole numbers instead of
fractions multiplied back. The floor of the norms stands within the root. A history of one step has deviation 0. The
norm after the last block, which the original declares and never uses, is left out: the head reads contributions only.
"""

import math

import torch
from einops import rearrange
from jaxtyping import Float, Int
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.layers import standardise, xavier_table
from candor.nets.shapes import Bins, Forecast, Layers, Readings, Width

RMS_FLOOR = 1e-8

States = Float[Tensor, "batch node width"]
Agents = Float[Tensor, "agent width"]
Series = Float[Tensor, "batch node time"]
Row = Int[Tensor, " batch"]  # of a table, for each window


class FastSizes(Settings):
    """Sizes of FaST; the same for all of its published networks."""

    width: Width = 64
    experts: PositiveInt = 8  # of every mixture
    layers: Layers = 3
    agents: PositiveInt = 32  # through which nodes exchange information


@baselines.register("fast")
class Fast(BaselineNetwork):
    """A mixture reads the window, blocks follow, and a head reads the contributions of all mixtures."""

    sizes = FastSizes()
    tiny = FastSizes(width=8, experts=2, layers=2, agents=3)
    recipe = BaselineRecipe.of(
        epochs=50, batch=64, learning_rate=2e-3, weight_decay=1e-4, clip=5.0, milestones=(10, 20, 30, 40)
    )

    def __init__(self, sizes: FastSizes, frame: Frame) -> None:
        super().__init__()
        width, experts, last = sizes.width, sizes.experts, (sizes.layers + 1) * sizes.width
        self.history = frame.history
        self.router = ExpertRouter(frame.history, experts, frame.nodes)
        self.experts = GatedExperts(frame.history, width, experts)
        self.time_of_day = xavier_table(BINS_PER_DAY, width)
        self.day_of_week = xavier_table(DAYS_PER_WEEK, width)
        self.nodes = xavier_table(frame.nodes, width)
        self.agents = xavier_table(sizes.agents, width)
        self.blocks = nn.ModuleList(AgentBlock(sizes, frame, is_first=layer == 0) for layer in range(sizes.layers))
        self.head = nn.Sequential(nn.Linear(last, last), nn.ReLU(), nn.Linear(last, frame.horizon))

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        scores, mean, deviation = standardise(values, correction=min(1, self.history - 1))
        window = scores.transpose(1, 2)  # batch node time
        slot, day = time_of_day[:, self.history - 1], day_of_week[:, self.history - 1]
        states = self.experts(window, self.router(window, slot, day))
        states = states + (self.time_of_day[slot] + self.day_of_week[day])[:, None] + self.nodes
        contributions = [states]
        for block in self.blocks:
            states, contribution = block(states, self.agents, window, slot, day)
            contributions.append(contribution)
        return self.head(torch.cat(contributions, dim=-1)).transpose(1, 2) * deviation + mean


class AgentBlock(nn.Module):
    """Agent attention, then a mixture of experts, each added to what it read; later blocks scale what they read."""

    def __init__(self, sizes: FastSizes, frame: Frame, *, is_first: bool) -> None:
        super().__init__()
        self.norm = nn.Identity() if is_first else nn.RMSNorm(sizes.width, eps=RMS_FLOOR)
        self.attention = AgentAttention(sizes.width)
        self.router = ExpertRouter(frame.history, sizes.experts, frame.nodes)
        self.experts = GatedExperts(sizes.width, sizes.width, sizes.experts)

    def forward(self, states: States, agents: Agents, window: Series, slot: Row, day: Row) -> tuple[States, States]:
        """Return the states with what the mixture contributed, and that alone."""
        states = self.attention(self.norm(states), agents)
        contribution = self.experts(states, self.router(window, slot, day))
        return states + contribution, contribution


class ExpertRouter(nn.Module):
    """Weights of the experts that sum to one: of the window, the time of day, the day of week and the node."""

    def __init__(self, history: int, experts: int, nodes: int) -> None:
        super().__init__()
        self.window = nn.Linear(history, experts)
        self.time_of_day = xavier_table(BINS_PER_DAY, experts)
        self.day_of_week = xavier_table(DAYS_PER_WEEK, experts)
        self.nodes = xavier_table(nodes, experts)

    def forward(self, window: Series, slot: Row, day: Row) -> Float[Tensor, "batch node expert"]:
        calendar = (self.time_of_day[slot] + self.day_of_week[day])[:, None]
        return (self.window(window) + calendar + self.nodes).softmax(dim=-1)


class GatedExperts(nn.Module):
    """The weighted sum of all experts; each is a linear map times a gate."""

    def __init__(self, inputs: int, width: int, experts: int) -> None:
        super().__init__()
        self.width = width
        self.maps = nn.Linear(inputs, 2 * experts * width)

    def forward(self, inputs: States, weights: Float[Tensor, "batch node expert"]) -> States:
        outputs = rearrange(F.glu(self.maps(inputs)), "b n (e d) -> b n e d", d=self.width)
        return torch.einsum("bne,bned->bnd", weights, outputs)


class AgentAttention(nn.Module):
    """Agents attend to the nodes, then nodes attend to the agents."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(width)
        self.of_nodes = nn.Linear(width, 3 * width)
        self.of_agents = nn.Linear(width, 2 * width)
        self.gathered = nn.Linear(width, width)
        self.returned = nn.Linear(width, width)
        self.norm = nn.RMSNorm(width, eps=RMS_FLOOR)

    def forward(self, states: States, agents: Agents) -> States:
        queries, keys, values = self.of_nodes(states).chunk(3, dim=-1)  # batch node width, each
        agent_queries, agent_keys = self.of_agents(agents).chunk(2, dim=-1)  # agent width, each
        gathering = (self.scale * agent_queries @ keys.transpose(1, 2)).softmax(dim=-1)  # batch agent node
        gathered = self.gathered(gathering @ values)  # batch agent width
        returning = (self.scale * queries @ agent_keys.T).softmax(dim=-1)  # batch node agent
        return self.norm(self.returned(returning @ gathered) + states)
