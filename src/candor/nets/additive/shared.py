"""The shared network: one small perceptron for all sensors on what the account leaves, its hidden states mixed.

    h = relu(W [own, neighbours, alike, level, mask, account, usual] + identity of the sensor + clock)
    h = h + W2 drop(relu(W1 h))                                                           block
    g = U h;  h = h + V drop(relu([g, A_in g, A_out g, A_alike g, A_learned g]))            mixing
    correction = W h, in robust spreads of the sensor

A_in and A_out are the paper's forward and reverse propagation, A_alike and A_learned its functional relations, observed
and learned. All weights of the correction are zero at first, so that training begins at the account.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK, WEEKS_PER_YEAR
from candor.nets.additive.account import Accounted, Ahead
from candor.nets.additive.settings import SharedSizes
from candor.nets.candor.ops.sparse import EdgeList, SparseMatrix, spmm
from candor.nets.dropout import Dropout

States = Float[Tensor, "node batch channel"]
_FARTHEST = 12.0  # robust spreads beyond which a deviation counts as so many
_HARMONICS = 2  # of the year
_SHARE_OF_RESIDUAL = 0.5  # of the usual size of first weights, so that the stack begins close to its input


@dataclass(frozen=True)
class Relations:
    """Which sensors are averaged for each sensor, by kind: weights of senders that sum to one for every receiver.

    Rows of the matrix are kind after kind, each receiver by receiver.
    """

    kinds: int
    has_alike: bool
    """Whether the last kind are sensors that behave alike; the others are edges and edges reversed."""
    matrix: SparseMatrix

    @classmethod
    def of(cls, row: Tensor, column: Tensor, weight: Tensor, *, kinds: int, has_alike: bool, nodes: int) -> "Relations":
        """Return the relations with these entries, ascending by row = kind * nodes + receiver."""
        order = torch.argsort(column, stable=True)
        edges = EdgeList.of(row, column, order, kinds * nodes, nodes)
        return cls(kinds, has_alike, SparseMatrix(edges, weight))

    def means(self, states: States, hears_alike: bool) -> list[States]:
        """Return the means over the senders of each kind; of sensors that behave alike zero if they are not heard."""
        nodes, batch, channels = states.shape
        found = list(spmm(self.matrix, states.reshape(nodes, batch * channels)).view(-1, nodes, batch, channels))
        if self.has_alike and not hears_alike:
            found[-1] = torch.zeros_like(found[-1])
        return found


class Block(nn.Module):
    """A residual block."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.dropout = Dropout(dropout)
        _shrink(self.second)

    def forward(self, states: States) -> States:
        return states + self.second(self.dropout(self.first(states).relu()))


class Mixing(nn.Module):
    """Hidden states of related sensors beside the sensor's own."""

    def __init__(self, width: int, mixed: int, rank: int, nodes: int, dropout: float, relations: Relations) -> None:
        super().__init__()
        self.relations = relations
        self.narrow = nn.Linear(width, mixed)
        self.widen = nn.Linear(mixed * (2 + relations.kinds), width)
        self.row, self.column = (nn.Parameter(0.5 * torch.randn(nodes, rank)) for _ in range(2))
        self.dropout = Dropout(dropout)
        _shrink(self.widen)

    def forward(self, states: States, hears_alike: bool) -> States:
        narrow = self.narrow(states)
        nodes, batch, channels = narrow.shape
        learned = torch.zeros_like(narrow)
        if hears_alike:
            likeness = torch.softmax((self.row @ self.column.T).relu(), dim=1)
            learned = (likeness @ narrow.reshape(nodes, -1)).view(nodes, batch, channels)
        parts = [narrow, *self.relations.means(narrow, hears_alike), learned]
        return states + self.widen(self.dropout(torch.cat(parts, dim=2).relu()))


class SharedNetwork(nn.Module):
    """The shared network.

    Args:
        sizes: of it, settled.
        nodes: sensors.
        history: rows that are read.
        horizon: rows that are forecast.
        relations: edges, reversed edges and likeness, as far as there are any.
        scale: mean and deviation of each sensor's readings, by which levels are z-scored, sensor x 2.
    """

    scale: Tensor

    def __init__(
        self, sizes: SharedSizes, nodes: int, history: int, horizon: int, relations: Relations, scale: Tensor
    ) -> None:
        super().__init__()
        width, dropout = sizes.width, sizes.dropout
        if width is None or dropout is None:
            raise ValueError("sizes are to be settled first")
        self.relations = relations
        self.inputs = nn.Linear((3 + relations.kinds) * history + 2 * horizon, width)
        self.identity = nn.Parameter(0.3 * torch.randn(nodes, sizes.identity))
        self.of_identity = nn.Linear(sizes.identity, width, bias=False)
        self.time_of_day = nn.Embedding(BINS_PER_DAY, sizes.clock)
        self.day_of_week = nn.Embedding(DAYS_PER_WEEK, -(-sizes.clock // 2))
        self.waves = _HARMONICS if sizes.season else 0
        self.of_clock = nn.Linear(sizes.clock + -(-sizes.clock // 2) + 2 * self.waves, width, bias=False)
        for table in (self.time_of_day, self.day_of_week):
            nn.init.normal_(table.weight, std=0.1)
        steps: list[nn.Module] = []
        for block in range(sizes.blocks):
            steps.append(Block(width, dropout))
            if block < sizes.mixings:
                steps.append(Mixing(width, sizes.mixed, sizes.rank, nodes, dropout, relations))
        self.steps = nn.ModuleList(steps)
        self.silence = Dropout(sizes.silenced)
        self.reads_level = sizes.reads_level
        self.out = nn.Linear(width, horizon)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)
        self.register_buffer("scale", scale, persistent=False)

    def forward(
        self,
        accounted: Accounted,
        spread: Float[Tensor, " node"],
        mask: Float[Tensor, "node batch time"],
        time_of_day: Int[Tensor, " batch"],
        day_of_week: Int[Tensor, " batch"],
        week_of_year: Int[Tensor, " batch"],
        hears_alike: bool = True,
    ) -> Ahead:
        """Return the correction of the account, in robust spreads.

        Args:
            accounted: what the account makes of the windows.
            spread: robust spread of each sensor, in its unit.
            mask: one where there was a reading.
            time_of_day: of the first row that is forecast.
            day_of_week: of it.
            week_of_year: of it.
            hears_alike: whether sensors that behave alike are heard, by observation or as learned.
        """
        seen = accounted.seen.clamp(-_FARTHEST, _FARTHEST)
        mean, deviation = self.scale[:, :1, None], self.scale[:, 1:, None]
        usual = (accounted.usual - mean) / deviation
        history = seen.shape[2]
        level = usual[:, :, :history] + seen * (spread[:, None, None] / deviation)
        forecast = accounted.forecast.clamp(-_FARTHEST, _FARTHEST)
        around = self.relations.means(seen, hears_alike)
        if not self.reads_level:
            last = seen[:, :, -1:]
            forecast, around = forecast - last, [one - one[:, :, -1:] for one in around]
            seen, level = seen - last, level - level[:, :, -1:]
            usual = usual - usual[:, :, history - 1 : history]
        heard = self.silence(seen.new_ones(seen.shape[0], seen.shape[1], 1))
        read = heard * torch.cat([seen, *around, level, mask, forecast, usual[:, :, history:]], dim=2)
        angle = 2 * torch.pi / WEEKS_PER_YEAR * week_of_year[:, None] * torch.arange(1, self.waves + 1)
        clock = [self.time_of_day(time_of_day), self.day_of_week(day_of_week), angle.sin(), angle.cos()]
        states = self.inputs(read) + self.of_identity(self.identity)[:, None] + self.of_clock(torch.cat(clock, dim=1))
        states = states.relu()
        for step in self.steps:
            states = step(states, hears_alike) if isinstance(step, Mixing) else step(states)
        return self.out(states)


def _shrink(layer: nn.Linear) -> None:
    with torch.no_grad():
        layer.weight.mul_(_SHARE_OF_RESIDUAL)
        layer.bias.zero_()
