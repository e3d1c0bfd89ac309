"""The best pairs of neighbour and relation channel of every node, their scores and what they bring."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from candor.nets.candor.ops import block_size, is_plain
from candor.nets.candor.ops.sparse import EdgeList, sddmm

# Scores of (receiver, neighbour, channel) held at a time: memory stays linear in the number of nodes.
SCORES_AT_A_TIME = 32_000_000
SCORES_AT_A_TIME_ON_GPU = 256_000_000

Queries = Float[Tensor, "batch node channel wide"]
Keys = Float[Tensor, "batch node wide"]
Pairs = Int[Tensor, "batch node pair"]
PairValues = Float[Tensor, "batch node pair"]


@torch.no_grad()
def top_k_pairs(queries: Queries, keys: Keys, bias: Float[Tensor, " channel"], count: int) -> tuple[Pairs, Pairs]:
    """Return neighbour and channel of the `count` highest scores of every node, in the order of channels.

    The score of a pair is <query of the node in the channel, key of the neighbour> + bias of the channel; a node is no
    neighbour of itself. Scores are held for blocks of nodes at a time.
    """
    batch, nodes, channels, _ = queries.shape
    samples = 1 if is_plain() else batch  # in a traced graph a batch has any size
    most = block_size(queries, cpu=SCORES_AT_A_TIME, other=SCORES_AT_A_TIME_ON_GPU)
    block = max(1, most // (samples * nodes * channels))
    every, chosen = torch.arange(nodes, device=queries.device), []
    for first in range(0, nodes, block):
        scores = torch.einsum("birw,bjw->birj", queries[:, first : first + block], keys).add_(bias[:, None])
        is_own = every[first : first + block, None] == every
        scores.masked_fill_(is_own[:, None], -torch.inf)
        chosen.append(scores.flatten(2).topk(count, dim=-1, sorted=False).indices)
    cells = torch.cat(chosen, dim=1).sort(dim=-1).values
    return cells % nodes, cells // nodes


def pair_scores(queries: Queries, keys: Keys, neighbour: Pairs, channel: Pairs) -> PairValues:
    """Return <query, key> of the chosen pairs, which must stand in the order of channels."""
    if is_plain():
        return pair_scores_plain(queries, keys, neighbour, channel)
    # A query is a receiver, a key a sender; in the order of channels the edges of all nodes are sorted by receiver.
    batch, nodes, channels, _ = queries.shape
    row = torch.arange(batch * nodes, device=queries.device).view(batch, nodes, 1)
    receiver = (row * channels + channel).flatten()
    sender = (row[:, :1] + neighbour).flatten()
    edges = EdgeList.of(receiver, sender, sender.argsort(stable=True), batch * nodes * channels, batch * nodes)
    return sddmm(edges, queries.flatten(0, 2), keys.flatten(0, 1)).view(channel.shape)


def pair_scores_plain(queries: Tensor, keys: Tensor, neighbour: Tensor, channel: Tensor) -> Tensor:
    sample, node = _samples(queries), torch.arange(queries.shape[1], device=queries.device)[:, None]
    return (queries[sample, node, channel] * keys[sample, neighbour]).sum(dim=-1)


def gather_pairs(
    values: Float[Tensor, "batch node channel value"], neighbour: Pairs, channel: Pairs, weights: PairValues
) -> Float[Tensor, "batch node value"]:
    """Return for each node the weighted sum of its neighbours' values in the channels of the pairs."""
    batch, nodes, channels, _ = values.shape
    if not neighbour.shape[2]:
        return torch.zeros_like(values[:, :, 0])
    table = values.flatten(0, 2)
    rows = (_samples(values) * nodes + neighbour) * channels + channel
    if is_plain():
        return (weights[..., None, :] @ F.embedding(rows, table)).squeeze(-2)
    sums = F.embedding_bag(rows.flatten(0, 1), table, mode="sum", per_sample_weights=weights.flatten(0, 1))
    return sums.view(batch, nodes, -1)


def _samples(tensor: Tensor) -> Int[Tensor, "batch 1 1"]:
    return torch.arange(tensor.shape[0], device=tensor.device)[:, None, None]
