"""The network in plain operations is the network: two ways to the same forecast."""

from typing import Any

import numpy as np
import pytest
import torch
from tiny import SIZES
from torch import Tensor

from candor.nets.candor import functional
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.physical_operator import EdgeArrays
from candor.nets.candor.settings import ModelSettings
from candor.runs.onnx.plain import written_plainly

SPANS = {"nodes": 6, "history": 12, "horizon": 7, "patch_length": 4, "patch_stride": 2}
SPARSE = EdgeArrays(np.array([0, 0, 1, 3, 2, 4]), np.array([1, 2, 2, 4, 0, 4]), np.array([0.5, 0.3, 1.0, 2.0, 1.5, 1]))
NONE = EdgeArrays(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
WHOLE = EdgeArrays(*np.divmod(np.arange(36), 6), 0.1 + np.arange(36.0))
VARIANTS: dict[str, tuple[EdgeArrays, dict[str, Any]]] = {
    "everything": (SPARSE, {"season": True}),
    "a graph of all pairs": (WHOLE, {"spatial_orders": 3, "temporal_span": 3}),
    "no edges": (NONE, {}),
    "no edges and nothing learned of them": (NONE, {"learned_operator": False}),
    "one direction": (SPARSE, {"branches": ("functional", "reverse"), "rollout_gate": False}),
    "no functional branch": (SPARSE, {"branches": ("forward", "reverse")}),
    "functional branch only": (SPARSE, {"branches": ("functional",)}),
    "no relations": (SPARSE, {"relations": 0}),
    "all pairs chosen": (SPARSE, {"pairs": 100}),
    "no decomposition": (SPARSE, {"decomposition": False, "learned_fusion": False}),
    "one patch": (SPARSE, {"patch_length": 12, "patch_stride": 12}),
    "one sensor": (NONE, {"nodes": 1}),
}


def network_of(edges: EdgeArrays, changes: dict[str, Any]) -> CandorNetwork:
    torch.manual_seed(0)
    network = CandorNetwork(ModelSettings(**SPANS | SIZES | changes), edges).double().eval()
    with torch.no_grad():
        for parameter in network.parameters():  # some begin at zero, and would hide a difference
            parameter.add_(0.1 * torch.randn_like(parameter))
    return network


def inputs(batch: int, nodes: int) -> tuple[Tensor, ...]:
    chance = torch.Generator().manual_seed(batch)
    values = torch.randn(batch, 12, nodes, generator=chance, dtype=torch.float64)
    return values, *(torch.randint(bins, (batch, 19), generator=chance) for bins in (288, 7, 53))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_plain_network_forecasts_the_same(variant: str) -> None:
    network = network_of(*VARIANTS[variant])
    plain = written_plainly(network)
    for batch in (1, 3):
        given = inputs(batch, network.settings.nodes)
        with torch.no_grad():
            torch.testing.assert_close(plain(*given), network(*given), rtol=1e-9, atol=1e-9)


def test_blocks_of_sensors_choose_the_same_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_of(SPARSE, {})
    with torch.no_grad():
        whole = written_plainly(network)(*inputs(3, 6))
        monkeypatch.setattr(functional, "SCORES_AT_A_TIME", 30)  # two sensors at a time
        torch.testing.assert_close(written_plainly(network)(*inputs(3, 6)), whole, rtol=1e-9, atol=1e-9)


def test_the_network_itself_stays_as_it_is() -> None:
    network = network_of(SPARSE, {})
    kinds = {type(module) for module in network.modules()}
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    plain = written_plainly(network)
    assert {type(module) for module in network.modules()} == kinds
    assert {type(module) for module in plain.modules()} != kinds
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.fill_(7.0)
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
