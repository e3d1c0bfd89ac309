"""Every operation in its fast form against its plain one: the same values and the same gradients."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import SIZES
from torch import Tensor, nn

from candor.nets.candor import ops
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.losses import LossSpace, losses
from candor.nets.candor.ops import block_size, decoding, is_fast_on_cpu, pairs
from candor.nets.candor.ops.attention import KeyValueCache, attend
from candor.nets.candor.ops.gates import add_gated, gated_step, read_normalised, read_normalised_plain
from candor.nets.candor.ops.sparse import EdgeList, SparseMatrix, sddmm, spmm
from candor.nets.candor.physical_operator import EdgeArrays
from candor.nets.candor.settings import LossWeights, ModelSettings

SIZE, SEED = st.integers(1, 5), st.integers(0, 10**6)


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def assert_same(fast: Callable[..., Tensor], *inputs: Tensor, plain: Callable[..., Tensor] | None = None) -> None:
    """Compares values and gradients of an operation in both forms."""
    found, direction = [], None
    for operation, context in ((fast, nullcontext()), (plain or fast, ops.plain())):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        with context:
            values = operation(*leaves)
        direction = torch.randn_like(values) if direction is None else direction
        gradients = torch.autograd.grad(values, leaves, direction, allow_unused=True, materialize_grads=True)
        found.append([values, *gradients])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@given(SIZE, SIZE, SEED)
def test_gated_step(series: int, width: int, seed: int) -> None:
    torch.manual_seed(seed)
    weights = draw(3 * width, width), draw(3 * width, width), draw(3 * width), draw(3 * width)
    assert_same(gated_step, draw(series, width), draw(width, series), *weights)


@given(SIZE, SIZE, SEED)
def test_add_gated(rows: int, width: int, seed: int) -> None:
    torch.manual_seed(seed)
    assert_same(add_gated, draw(rows, 2, width), draw(rows, 2, width), draw(rows, 2, width))


@given(SIZE, st.integers(1, 3), st.integers(1, 3), SIZE, st.booleans(), SEED)
def test_attend(patches: int, heads: int, width: int, series: int, has_mask: bool, seed: int) -> None:
    """The gradients of keys and values must wait for all later steps, whichever of them are used."""
    torch.manual_seed(seed)
    hidden = heads * width
    masks = [torch.rand(patch + 1, heads, series).double() if has_mask else None for patch in range(patches)]
    used = (torch.rand(patches) < 0.6).double()

    def attend_all(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        cache = KeyValueCache(patches, heads)
        steps = [attend(state, weight, bias, cache, mask) for state, mask in zip(states, masks, strict=True)]
        return torch.stack([step * share for step, share in zip(steps, used, strict=True) if share or len(steps) == 1])

    if used.any() or patches == 1:
        assert_same(attend_all, draw(patches, hidden, series), draw(3 * hidden, hidden), draw(3 * hidden))


def edges_of(matrix: Tensor) -> tuple[EdgeList, Tensor]:
    """Returns the edges at the non-zero entries (receiver, sender) of a matrix, and those entries."""
    receiver, sender = matrix.nonzero().T
    order = torch.argsort(sender, stable=True)
    return EdgeList.of(receiver, sender, order, *matrix.shape), matrix[receiver, sender]


@given(SIZE, SIZE, st.floats(0, 1), st.integers(1, 4), SEED)
def test_sparse_products(receivers: int, senders: int, density: float, copies: int, seed: int) -> None:
    torch.manual_seed(seed)
    matrix = torch.rand(receivers, senders).double() * (torch.rand(receivers, senders) < density)
    single, weights = edges_of(matrix)
    edges, weights = single.repeated(copies), weights.repeat(copies)
    dense, left = draw(copies * senders, 3), draw(copies * receivers, 3)
    assert_same(lambda weights, dense: spmm(SparseMatrix(edges, weights), dense), weights, dense)
    assert_same(lambda left, right: sddmm(edges, left, right), left, dense)
    product = spmm(SparseMatrix(edges, weights), dense)
    torch.testing.assert_close(product.view(copies, receivers, 3), matrix @ dense.view(copies, senders, 3))
    inner = (left.view(copies, receivers, 3) @ dense.view(copies, senders, 3).mT)[:, matrix != 0]
    torch.testing.assert_close(sddmm(edges, left, dense), inner.flatten())


@given(st.integers(1, 3), st.integers(2, 7), st.integers(1, 3), st.integers(1, 8), st.integers(1, 99), SEED)
def test_top_k_pairs(batch: int, nodes: int, channels: int, count: int, at_a_time: int, seed: int) -> None:
    torch.manual_seed(seed)
    count = min(count, (nodes - 1) * channels)
    queries, keys, bias = draw(batch, nodes, channels, 4), draw(batch, nodes, 4), draw(channels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "SCORES_AT_A_TIME", at_a_time)
        neighbour, channel = pairs.top_k_pairs(queries, keys, bias, count)
        with ops.plain():
            assert torch.equal(
                torch.stack(pairs.top_k_pairs(queries, keys, bias, count)), torch.stack([neighbour, channel])
            )
    for sample in range(batch):
        for node in range(nodes):
            scores = {
                (float(queries[sample, node, r] @ keys[sample, j] + bias[r]), r, j)
                for r in range(channels) for j in range(nodes) if j != node
            }  # fmt: skip
            best = sorted((r, j) for _, r, j in sorted(scores)[-count:])
            assert list(zip(channel[sample, node].tolist(), neighbour[sample, node].tolist(), strict=True)) == best


@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 3), st.integers(1, 5), SEED)
def test_scores_and_values_of_pairs(batch: int, nodes: int, channels: int, count: int, seed: int) -> None:
    torch.manual_seed(seed)
    cells = torch.randint(nodes * channels, (batch, nodes, count)).sort(dim=-1).values
    neighbour, channel = cells % nodes, cells // nodes
    assert_same(
        lambda queries, keys: pairs.pair_scores(queries, keys, neighbour, channel),
        draw(batch, nodes, channels, 4), draw(batch, nodes, 4),
    )  # fmt: skip
    assert_same(
        lambda values, weights: pairs.gather_pairs(values, neighbour, channel, weights),
        draw(batch, nodes, channels, 4), draw(batch, nodes, count),
    )  # fmt: skip


@given(SIZE, SIZE, st.integers(2, 9), SIZE, SEED)
def test_read_normalised(rows: int, narrow: int, wide: int, outputs: int, seed: int) -> None:
    torch.manual_seed(seed)
    layer, norm = nn.Linear(narrow, wide).double(), nn.LayerNorm(wide).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    assert_same(
        lambda states, reading: read_normalised(states, layer, norm, reading),
        draw(rows, narrow), draw(outputs, wide),
        plain=lambda states, reading: read_normalised_plain(states, layer, norm, reading),
    )  # fmt: skip


SPANS = {"nodes": 6, "history": 12, "horizon": 7, "patch_length": 4, "patch_stride": 2}
SPARSE = EdgeArrays(np.array([0, 0, 1, 3, 2, 4]), np.array([1, 2, 2, 4, 0, 4]), np.array([0.5, 0.3, 1.0, 2.0, 1.5, 1]))
NONE = EdgeArrays(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
WHOLE = EdgeArrays(*np.divmod(np.arange(36), 6), 0.1 + np.arange(36.0))
NETWORKS: dict[str, tuple[EdgeArrays, dict[str, Any]]] = {
    "everything": (SPARSE, {"season": True}),
    "a graph of all pairs": (WHOLE, {"spatial_orders": 3, "temporal_span": 3}),
    "no edges": (NONE, {}),
    "no edges and nothing learned of them": (NONE, {"learned_operator": False}),
    "one direction": (SPARSE, {"branches": ("functional", "reverse"), "rollout_gate": False}),
    "no functional branch": (SPARSE, {"branches": ("forward", "reverse")}),
    "functional branch only": (SPARSE, {"branches": ("functional",)}),
    "no relations": (SPARSE, {"relations": 0}),
    "all pairs chosen": (SPARSE, {"pairs": 100}),
    "no decomposition": (SPARSE, {"decomposition": False}),
    "mean fusion": (SPARSE, {"learned_fusion": False}),
    "one patch": (SPARSE, {"patch_length": 12, "patch_stride": 12}),
    "one sensor": (NONE, {"nodes": 1}),
}


# In blocks that do not divide the rows; where all rows fit into one, with and without a gate.
@pytest.mark.parametrize(
    ("name", "rows"), [*((name, 7) for name in NETWORKS), ("everything", 2048), ("one direction", 2048)]
)
def test_forecasts_objective_and_gradients_of_a_network(monkeypatch: pytest.MonkeyPatch, name: str, rows: int) -> None:
    monkeypatch.setattr(decoding, "ROWS_AT_A_TIME", rows)
    monkeypatch.setattr(decoding, "ROWS_DECODED_AT_A_TIME", max(1, rows // 2))
    torch.manual_seed(0)
    edges, changes = NETWORKS[name]
    network = CandorNetwork(ModelSettings(**SPANS | SIZES | changes), edges).double().eval()
    with torch.no_grad():
        for parameter in network.parameters():  # some begin at zero, and would hide a difference
            parameter.add_(0.1 * torch.randn_like(parameter))
    values, clock = draw(3, 12, network.settings.nodes), [torch.randint(bins, (3, 19)) for bins in (288, 7, 53)]
    targets = draw(3, 7, network.settings.nodes)
    mask = torch.rand(targets.shape) < 0.7
    found = []
    for context in (nullcontext(), ops.plain()):
        network.zero_grad()
        with context:
            encoding = network.encode(values, *clock[:2], 6, clock[2])
            objective = losses(
                network, encoding, targets, mask, LossWeights(), prefix=6, space=LossSpace(3.0, 2.0), is_active=True
            )
            objective.total.backward()
            forecast = network(values, *clock).detach()
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in network.parameters()]
        found.append([forecast, objective.total.detach(), *objective.terms.values(), *gradients])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


def test_fast_forms_are_for_processors_and_not_for_traced_graphs() -> None:
    class Asks(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            asked.append((ops.is_plain(), is_fast_on_cpu(values)))
            return values + 1

    asked: list[tuple[bool, bool]] = []
    Asks()(torch.zeros(2))
    with ops.plain():
        Asks()(torch.zeros(2))
    Asks()(torch.zeros(2, device="meta"))
    torch.export.export(Asks(), (torch.zeros(2),), strict=False)
    assert asked == [(False, True), (True, False), (False, False), (True, False)]
    blocks = [block_size(torch.empty(1, device=device), cpu=3, other=5) for device in ("cpu", "meta")]
    assert blocks == [3, 5]
