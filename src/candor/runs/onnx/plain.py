"""CANDOR's network in operations that every runtime knows.

Training is fast and small because four parts of the network are written for it: gradients by hand, tables that are
filled in place, sums bag by bag. A forecast in another runtime needs none of that. Here are the same modules with the
same weights, whose four parts are plain products, sums and softmaxes; everything else is the network's own code.

Pairs of sensors are written out here: memory grows with the square of the number of sensors.
"""

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.candor import functional
from candor.nets.candor.attention import AttentionMemory, CausalAttention, Shelf
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.functional import FunctionalBranch
from candor.nets.candor.physical_operator import DirectionalSupport, Operator
from candor.nets.candor.recurrence import Recurrence


class PlainRecurrence(Recurrence):
    """The gated recurrent unit, one step at a time."""

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Returns the state after one more input, hidden x series."""
        width = len(state)
        from_inputs = self.weight_ih @ inputs.T + self.bias_ih[:, None]
        from_state = self.weight_hh @ state + self.bias_hh[:, None]
        gates = torch.sigmoid(from_inputs[: 2 * width] + from_state[: 2 * width])
        reset, update = gates[:width], gates[width:]
        proposal = torch.tanh(from_inputs[2 * width :] + reset * from_state[2 * width :])
        return proposal + update * (state - proposal)


class PlainAttention(CausalAttention):
    """Causal attention whose keys and values are joined anew at every step."""

    def begin(self, series: int, patches: int) -> AttentionMemory:
        """Returns an empty memory; it grows as it is needed."""
        nothing = self.in_weight.new_empty(0, self.heads, self.out.in_features // self.heads, series)
        return AttentionMemory(Shelf(nothing, nothing), nothing)

    def step(self, states: Tensor, memory: AttentionMemory) -> Tensor:
        """Returns what the next patch sees, series x hidden, and updates the memory."""
        width = self.out.in_features // self.heads
        projected = (self.in_weight @ states + self.in_bias[:, None]).view(3, self.heads, width, -1)
        query, key, value = projected[0], projected[1:2], projected[2:3]
        shelf = memory.shelf
        shelf.keys = torch.cat([shelf.keys, key]) if memory.length else key
        shelf.values = torch.cat([shelf.values, value]) if memory.length else value
        memory.length += 1
        weights = ((shelf.keys * query).sum(dim=2) * width**-0.5).softmax(dim=0)  # patch head series
        mixed = (shelf.values * weights[:, :, None]).sum(dim=0).flatten(0, 1)
        return F.linear(mixed.T, self.out.weight, self.out.bias)


class PlainSupport(DirectionalSupport):
    """The support of one direction; its operator is a matrix over all pairs of sensors."""

    def scores(self, receiving: Tensor, sending: Tensor) -> Tensor:
        """Returns the inner product of what stands at both ends of each edge, batch x edge."""
        return (receiving.index_select(1, self.receiver) * sending.index_select(1, self.sender)).sum(dim=-1)

    def operator(self, weights: Tensor) -> Operator:
        """Returns W with what is needed to walk along it; without edges it brings nothing anywhere."""
        if not len(self.receiver):
            nothing = weights.new_zeros(weights.shape[0], self.nodes, self.positions)
            return Operator([nothing] * self.orders, torch.zeros_like)
        dense = self._dense(weights)
        diagonals = [self._diagonal(weights, length) for length in range(1, self.orders + 1)]
        return Operator(diagonals, lambda features: (dense @ features.transpose(1, 2)).transpose(1, 2))

    def _diagonal(self, weights: Tensor, length: int) -> Tensor:
        walks: Tensor = getattr(self, f"walks_{length}")
        if not walks.shape[1]:  # runtimes differ in what they make of sums of nothing
            return weights.new_zeros(weights.shape[0], self.nodes, self.positions)
        return super()._diagonal(weights, length)


class PlainFunctional(FunctionalBranch):
    """The functional branch; the chosen pairs are read from a table of all values."""

    def _best(self, asking: Tensor, answering: Tensor, count: int) -> Tensor:
        nodes, channels = asking.shape[1:3]
        block = max(1, functional.SCORES_AT_A_TIME // (nodes * channels))  # of one sample: a batch has any size
        best = []
        for first in range(0, nodes, block):
            part = asking[:, first : first + block]
            scores = torch.einsum("birw,bjw->birj", part, answering) + self.relation_bias[:, None]
            own = torch.arange(first, first + part.shape[1])[:, None] == torch.arange(nodes)
            scores = scores.masked_fill(own[:, None], -torch.inf)
            best.append(scores.flatten(2).topk(count, dim=-1, sorted=False).indices)
        return torch.cat(best, dim=1)

    def _products(self, asking: Tensor, answering: Tensor, neighbour: Tensor, channel: Tensor) -> Tensor:
        sample = torch.arange(asking.shape[0])[:, None, None]
        asked = asking[sample, torch.arange(asking.shape[1])[:, None], channel]
        return (asked * answering[sample, neighbour]).sum(dim=-1)

    def _gather(self, refined: Tensor, neighbour: Tensor, channel: Tensor, weights: Tensor) -> Tensor:
        batch, nodes, patches, width = refined.shape
        if weights.shape[-1] == 0:
            return torch.zeros_like(refined)
        maps, offsets = self._value_maps()
        values = torch.einsum("bnpd,red->bnrpe", refined, maps) + offsets[:, None]
        table = values.flatten(3).flatten(0, 2)
        first = torch.arange(batch)[:, None, None] * nodes
        chosen = F.embedding(
            (first + neighbour) * len(self.channels) + channel, table
        )  # batch node pair (patch hidden)
        return (weights[..., None, :] @ chosen).view(batch, nodes, patches, width)


_PLAIN: dict[type[nn.Module], type[nn.Module]] = {
    Recurrence: PlainRecurrence,
    CausalAttention: PlainAttention,
    DirectionalSupport: PlainSupport,
    FunctionalBranch: PlainFunctional,
}


def written_plainly(network: CandorNetwork) -> CandorNetwork:
    """Returns a copy of the network with the same weights, made of operations that every runtime knows."""
    copied = deepcopy(network)
    for module in copied.modules():
        module.__class__ = _PLAIN.get(type(module), type(module))
    return copied
