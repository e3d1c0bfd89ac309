"""Parameters begin as section 3 of the specification says: fans of logical tensors, zeros and stated values."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.physical_operator import EdgeArrays
from candor.nets.candor.settings import ModelSettings

SPANS = {"nodes": 40, "history": 12, "horizon": 12, "patch_length": 4, "patch_stride": 2}
WIDTH, RELATION, CHANNELS = 32, 32, 4


@pytest.fixture(scope="module")
def begun() -> dict[str, Tensor]:
    torch.manual_seed(0)
    edges = EdgeArrays(np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0]))
    return dict(CandorNetwork(ModelSettings(**SPANS), edges).named_parameters())


# Fan in and fan out, by hand. A stack of R square maps is one tensor: fan in D_b * D_b, fan out R * D_b.
FANS = {
    "functional.level_relations": (RELATION * RELATION, CHANNELS * RELATION),
    "functional.trend_relations": (RELATION * RELATION, CHANNELS * RELATION),
    "calendar.time_of_day.weight": (288, WIDTH),
    "calendar.day_of_week.weight": (7, WIDTH),
    "fusion.time_of_day.weight": (288, WIDTH),
    "decomposition.nodes.weight": (40, WIDTH),
    "physical.first_nodes.weight": (40, 64),
    "decomposition.background_convolution.weight": (3, 3 * WIDTH),
    "decomposition.accumulation_convolution.weight": (3, 3 * WIDTH),
    "decomposition.release_convolution.weight": (3, 3 * WIDTH),
    "functional.gru.weight_hh": (WIDTH, 3 * WIDTH),
    "physical.forward_path.gru.weight_ih": (WIDTH, 3 * WIDTH),
    "physical.forward_path.attention.in_weight": (WIDTH, 3 * WIDTH),
    "embedding.linear.weight": (4, WIDTH),
    "head.first.weight": (256, 512),
}


@pytest.mark.parametrize("name", FANS)
def test_weights_fill_the_range_of_their_fans(begun: dict[str, Tensor], name: str) -> None:
    weight, bound = begun[name].detach(), math.sqrt(6 / sum(FANS[name]))
    assert float(weight.abs().max()) <= bound
    assert float(weight.std()) == pytest.approx(bound / math.sqrt(3), rel=0.2)  # that of a uniform distribution
    assert float(weight.abs().max()) > 0.9 * bound


def test_the_correction_of_shock_gates_begins_at_zero_and_nothing_else_does(begun: dict[str, Tensor]) -> None:
    zero = {name for name, parameter in begun.items() if not parameter.any()}
    gates = {f"decomposition.shock_{view}.second.{kind}" for view in "uv" for kind in ("weight", "bias")}
    norms = {name for name in begun if "norm" in name and name.endswith("bias")}
    attention = {name for name in zero if name.endswith("attention.in_bias") or name.endswith("attention.out.bias")}
    others = {"functional.relation_bias", "physical.shock_strength", "fusion.mlp.second.weight"}
    assert zero == gates | norms | attention | others


def test_stated_values_win(begun: dict[str, Tensor]) -> None:
    shares = begun["fusion.mlp.second.bias"].detach().exp()
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.25, 0.25]))
    for name in ("history.scale", "functional.scale"):
        assert begun[name].item() == pytest.approx(0.1), name
    for name, parameter in begun.items():
        if name.startswith("roles."):
            assert torch.equal(parameter.detach(), torch.eye(WIDTH)), name


@pytest.mark.parametrize(
    ("name", "inputs"), [("embedding.linear.bias", 4), ("head.first.bias", 256), ("functional.gru.bias_hh", WIDTH)]
)
def test_biases_begin_as_those_of_pytorch_do(begun: dict[str, Tensor], name: str, inputs: int) -> None:
    bias, bound = begun[name].detach(), inputs**-0.5
    assert 0.7 * bound < float(bias.abs().max()) <= bound
