"""Interventions: rain beside the readings (RainAdd), or in place of what the readings tell of shocks (RainOnly)."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import SIZES, tiny_recipe
from torch import Tensor

from candor.data.panel import Covariate
from candor.data.protocol import Protocol, make_task
from candor.data.synthetic import generate_river
from candor.forecasting.candor import Candor
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.losses import LossSpace, losses
from candor.nets.candor.physical_operator import EdgeArrays
from candor.nets.candor.settings import LossWeights, ModelSettings, Rain
from candor.nets.candor.trainable import rain_in
from candor.nets.trainable import tensors_of

SPANS = {"nodes": 4, "history": 10, "horizon": 6, "patch_length": 3, "patch_stride": 2}
EDGES = EdgeArrays(np.array([0, 0, 1, 3, 2]), np.array([1, 2, 2, 2, 0]), np.array([0.5, 0.3, 1.0, 2.0, 1.0]))
CHANCE = torch.Generator().manual_seed(5)
VALUES = torch.randn(2, 10, 4, generator=CHANCE, dtype=torch.float64)
RAIN = torch.randn(2, 10, 4, generator=CHANCE, dtype=torch.float64)
CLOCK = torch.randint(288, (2, 16), generator=CHANCE), torch.randint(7, (2, 16), generator=CHANCE)


def network_of(rain: Rain) -> CandorNetwork:
    torch.manual_seed(0)
    return CandorNetwork(ModelSettings(**SPANS, **SIZES | {"pairs": 8}, rain=rain), EDGES).double().eval()


def raw_shock(network: CandorNetwork, values: Tensor, rain: Tensor | None) -> Tensor:
    return network.encode(values, *CLOCK, rain=rain).components.raw_shock


def test_rain_adds_the_same_to_shocks_whatever_the_readings_are() -> None:
    network = network_of("added")
    other = VALUES.flip(0)
    added = [raw_shock(network, values, RAIN) - raw_shock(network, values, 0 * RAIN) for values in (VALUES, other)]
    assert added[0].abs().max() > 0.01
    torch.testing.assert_close(added[0], added[1])


def test_what_is_added_is_the_map_of_the_normalised_patches() -> None:
    network = network_of("added")
    of_rain = network.decomposition
    patches = torch.stack([RAIN[:, start : start + 3] for start in (0, 2, 4, 6)], dim=1)  # batch patch length node
    embedded = torch.nn.functional.layer_norm(of_rain.rain.linear(patches.transpose(-1, -2)), (SIZES["hidden"],))
    expected = of_rain.rain_projection(embedded).transpose(1, 2)
    without = raw_shock(network, VALUES, RAIN) - expected
    other = raw_shock(network, VALUES, -RAIN) - raw_shock(network, VALUES, RAIN)
    assert other.abs().max() > 0.01
    again = raw_shock(network, VALUES, 0 * RAIN) - of_rain.rain_projection(of_rain.rain(0 * RAIN))
    torch.testing.assert_close(without, again, rtol=1e-4, atol=1e-4)  # the norm's floor differs


def test_rain_alone_leaves_the_readings_no_say_in_shocks() -> None:
    network = network_of("alone")
    torch.testing.assert_close(raw_shock(network, VALUES, RAIN), raw_shock(network, VALUES.flip(0), RAIN))
    assert not torch.equal(raw_shock(network, VALUES, RAIN), raw_shock(network, VALUES, RAIN.flip(0)))
    names = {name for name, _ in network.named_parameters()}
    assert not [name for name in names if "shock_u" in name or "shock_v" in name or "shock_strength" in name]


@pytest.mark.parametrize("rain", ["added", "alone"])
def test_every_parameter_learns_and_the_shock_term_is_zero_for_rain_alone(rain: Rain) -> None:
    network = network_of(rain)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    states = network.encode(VALUES, *CLOCK, rain=RAIN)
    targets, mask = VALUES[:, :6], torch.ones(2, 6, 4, dtype=torch.bool)
    found = losses(network, states, targets, mask, LossWeights(), prefix=6, space=LossSpace(), is_active=True)
    found.total.backward()
    assert [name for name, p in network.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert (float(found.terms["shock"].detach()) == 0) == (rain == "alone")


def test_a_network_that_reads_no_rain_is_the_paper_s() -> None:
    plain, added = (sum(p.numel() for p in network_of(rain).parameters()) for rain in ("unread", "added"))
    width = SIZES["hidden"]
    assert added - plain == (3 * width + width) + 2 * width + (width * width + width)


def test_rain_is_read_as_z_scores_of_its_logarithm() -> None:
    """The scores by hand, through the front door: what the network is handed for a panel with a cloudburst."""
    chance = np.random.default_rng(0)
    fallen = np.where(chance.random((60, 4)) < 0.2, chance.gamma(0.5, 20.0, (60, 4)), 0.0).astype(np.float32)
    panel, _ = generate_river(sensors=4, steps=60, seed=3)
    wet = replace(panel, covariates={"rain": Covariate(fallen, "mm/h")})
    task = make_task(wet, Protocol(history=10, horizon=6))
    recipe = tiny_recipe(epochs=1)
    recipe["model"] = recipe["model"] | {"rain": "added"}
    fitted = Candor(history=10, horizon=6, recipe=recipe).fit(task.panel, task.split)
    origin = int(task.split.test[0])
    batch = tensors_of(fitted.windows(task.panel, np.array([origin])).batch(slice(None)))
    logarithms = np.log(1.0 + fallen.astype(np.float64))
    known = logarithms[: task.split.train_end]
    expected = (logarithms[origin - 10 : origin] - known.mean()) / known.std()
    handed = rain_in(batch)
    assert handed is not None
    np.testing.assert_allclose(handed[0].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_rain_that_is_needed_and_not_there_is_missed() -> None:
    with pytest.raises(ValueError, match="needs rain"):
        network_of("added").encode(VALUES, *CLOCK)
    with pytest.raises(ValueError, match="decomposition"):
        ModelSettings(**SPANS, **SIZES, rain="added", decomposition=False)
