"""DTAF: size, splines, frequencies that grow, patches that differ, and series that are mixed like their targets."""

import numpy as np
import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters, targets
from scipy.interpolate import BSpline
from torch.nn import functional as F

from candor.nets.baselines.dtaf import (
    SECOND_READING,
    Dtaf,
    DtafSizes,
    Refinement,
    SplineLinear,
    Stabiliser,
    divergence,
    growing_frequencies,
    spline_bases,
)

SIZES = DtafSizes(width=8, heads=2)


@pytest.mark.parametrize(("as_released", "attentions", "total"), [(False, 2, 106_643), (True, 1, 89_875)])
def test_it_has_the_parameters_counted_by_hand(as_released: bool, attentions: int, total: int) -> None:
    width, patch, patches, experts, inside, horizon = 64, 4, 6, 2, 16, 12
    curve = 1 + 1 + 8  # SiLU, scale, bases of the spline
    drift = curve * (width * experts + experts * (width * inside + inside * width))
    extractors = 2 * 2 * (width + 1) * width
    joining = (width + 1) * patches + (width + 1) * width + (width + 1)
    attention = 4 * (width + 1) * width + 2 * width
    head = (2 * patches * width + 1) * horizon
    expected = patch * width + drift + extractors + joining + 2 * width + attentions * attention + head
    network = Dtaf(DtafSizes(as_released=as_released), metr_la_frame())
    assert parameters(network) == expected == total


def test_attention_begins_as_that_of_pytorch() -> None:
    torch.manual_seed(0)
    attention, limit = Refinement(DtafSizes(width=64)).attention, (6 / (64 + 3 * 64)) ** 0.5
    for layer in (attention.query, attention.key_value):
        assert 0.99 * limit < layer.weight.abs().max() <= limit
    assert not any(layer.bias.any() for layer in (attention.query, attention.key_value, attention.out))


def test_bases_are_those_of_cubic_splines() -> None:
    knots = -1 + 0.4 * np.arange(-3, 9)
    places = np.linspace(-0.999, 0.999, 50)
    expected = BSpline.design_matrix(places, knots, 3).toarray()
    np.testing.assert_allclose(spline_bases(torch.from_numpy(places)), expected, atol=1e-12)
    far = spline_bases(torch.tensor([-9.0, 9.0]))
    assert (far == 0).all()


def test_curves_begin_close_to_a_scaled_silu() -> None:
    torch.manual_seed(0)
    layer = SplineLinear(3, 4)
    values = torch.rand(20, 3) * 2 - 1
    with torch.no_grad():
        torch.testing.assert_close(layer(values), F.linear(F.silu(values), layer.base), rtol=0, atol=3 * 0.01 * 3)


def test_a_patch_keeps_the_frequencies_that_grew_and_the_first_keeps_all() -> None:
    torch.manual_seed(0)
    steps = torch.arange(16) / 16
    waves = torch.stack([torch.cos(2 * torch.pi * number * steps) for number in (1, 3, 5)])
    sizes = torch.tensor([[2.0, 2.0, 2.0], [1.0, 5.0, 2.5], [4.0, 1.0, 4.0]])  # patch wave
    states = (sizes @ waves)[None]
    found = growing_frequencies(states, 1)
    expected = torch.stack([states[0, 0], 5 * waves[1], 4 * waves[0]])
    torch.testing.assert_close(found[0], expected, rtol=1e-4, atol=1e-4)


def test_divergence_is_the_mean_over_all_pairs_of_patches() -> None:
    torch.manual_seed(0)
    stable = torch.randn(3, 4, 6, dtype=torch.float64)
    logarithms = stable.log_softmax(dim=-1)
    pairs = [
        F.kl_div(logarithms[s, j], logarithms[s, i], log_target=True, reduction="sum")
        for s in range(3)
        for i in range(4)
        for j in range(4)
    ]
    torch.testing.assert_close(divergence(stable), torch.stack(pairs).mean(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(divergence(stable[:, :1].expand(-1, 4, -1)), torch.zeros((), dtype=torch.float64))


def test_later_patches_change_nothing_in_what_the_history_of_earlier_ones_gives() -> None:
    torch.manual_seed(0)
    stabiliser = Stabiliser(SIZES.model_copy(update={"average": 1}), 6).eval()
    states = torch.randn(2, 6, 8)
    other = states.clone()
    other[:, 4] += 1
    with torch.no_grad():
        changed = (stabiliser(states)[0] != stabiliser(other)[0]).any(dim=-1).any(dim=0)
    assert changed.tolist() == [False, False, False, False, True, True]


def test_targets_are_mixed_with_those_of_the_series_that_the_history_is_mixed_with() -> None:
    torch.manual_seed(0)
    network = Dtaf(SIZES.model_copy(update={"mixing": 0.7, "dropout": 0.0}), frame(5, 12, 12)).train()
    values, seen = torch.randn(4, 12, 5), []
    network.read = lambda mixed: (seen.append(mixed), (mixed, torch.zeros(1, 1, 2)))[1]  # forecasts what it reads
    mask = torch.rand(4, 12, 5) < 0.7
    some = targets(values, mask)
    forecast, terms = network.objective((values, *calendar(4, 24)), some)
    assert not torch.allclose(seen[0], values, atol=0.1) and torch.equal(seen[0], seen[1])
    assert all(float(term) == pytest.approx(0, abs=1e-6) for term in terms.values())
    whole = targets(values)
    forecast, _ = network.objective((values, *calendar(4, 24)), whole)
    torch.testing.assert_close(forecast, values)


def test_errors_are_a_mean_over_what_was_measured_however_much_is_missing() -> None:
    torch.manual_seed(0)
    network = Dtaf(SIZES.model_copy(update={"mixing": 0.7, "dropout": 0.0}), frame(40, 12, 12)).train()
    values, mask = torch.randn(4, 12, 40), torch.rand(4, 12, 40) < 0.5
    network.read = lambda mixed: (mixed + 1, torch.zeros(1, 1, 2))  # too high by one everywhere
    some = targets(values, mask)
    _, terms = network.objective((values, *calendar(4, 24)), some)
    assert float(terms["prediction"]) == pytest.approx(1 + SECOND_READING, rel=1e-3)
