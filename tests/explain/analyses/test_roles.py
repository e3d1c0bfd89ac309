"""Alignments are the similarities of the objective, and deviations tell what a shared direction hides."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_readings import made_states, made_trainable, made_windows, river_panel

from candor.explain.analyses.roles import ROLES, alignments, find_roles, role_states
from candor.explain.analyses.states import WindowStates, window_states
from candor.nets.candor.losses import LossSpace, losses
from candor.nets.candor.settings import LossWeights
from candor.nets.trainable import tensors_of
from candor.render.figures.gallery import draw


@pytest.mark.parametrize("span", [1, 2, 3])
def test_mean_alignments_are_the_role_terms_of_the_objective(span: int) -> None:
    panel = river_panel()
    trainable = made_trainable(panel, temporal_span=span)
    windows = made_windows(panel, trainable, 6)
    batch = tensors_of(windows.batch(np.arange(6)))
    encoding = trainable.network.encode(trainable.anchored(batch)[0], batch["time_of_day"], batch["day_of_week"])
    targets, mask = torch.zeros(6, 4, 5), torch.ones(6, 4, 5, dtype=torch.bool)
    space = {"prefix": 4, "space": LossSpace(), "is_active": True}
    terms = losses(trainable.network, encoding, targets, mask, LossWeights(), **space).terms
    found = alignments(window_states(trainable, windows))
    assert list(found) == list(ROLES)
    for role, cosines in found.items():
        assert -cosines.together.mean() == pytest.approx(terms[f"role_{role}"].item(), abs=1e-5)
        assert cosines.together.shape == cosines.apart.shape == cosines.deviations.shape


def with_states(reading: WindowStates, component: torch.Tensor, residual: torch.Tensor) -> WindowStates:
    """Returns a reading of one direction in which release and residual are the given states."""
    assert reading.components is not None
    components = replace(reading.components, release=component)
    return replace(
        reading, components=components, paths={"forward": replace(reading.paths["forward"], residual=residual)}
    )


def without_maps(reading: WindowStates) -> WindowStates:
    roles = reading.network.roles
    assert roles is not None
    for layer in roles.children():
        torch.nn.init.eye_(layer.weight)
    return reading


def test_a_shared_direction_aligns_strangers_but_not_their_deviations() -> None:
    reading = without_maps(made_states(count=64, branches=("functional", "forward")))
    shape, chance = reading.embedded.shape, torch.Generator().manual_seed(0)
    shared = 20 * torch.ones(shape[-1])
    first, second = (shared + torch.randn(shape, generator=chance) for _ in range(2))
    found = alignments(with_states(reading, first, second))["release"]
    assert found.together.mean() > 0.99 and found.apart.mean() > 0.99
    assert abs(found.deviations.mean()) < 0.05


def test_what_moves_together_is_seen_in_deviations_only() -> None:
    reading = without_maps(made_states(count=64, branches=("functional", "forward")))
    shape, chance = reading.embedded.shape, torch.Generator().manual_seed(0)
    moving = torch.randn(shape, generator=chance)
    shared = 20 * torch.randn(shape[-1], generator=chance)
    found = alignments(with_states(reading, moving + shared, 3 * moving - shared))["release"]
    assert found.together.mean() < -0.9
    np.testing.assert_allclose(found.deviations, 1, atol=1e-4)


def test_states_apart_are_half_of_the_windows_away() -> None:
    reading = made_states(count=10)
    found, sides = alignments(reading)["release"], role_states(reading)["release"]
    roles = reading.network.roles
    assert roles is not None
    with torch.no_grad():
        expected = torch.cosine_similarity(
            roles.release_component(sides[0][7]), roles.release_physical(sides[1][2]), dim=-1
        )
    np.testing.assert_allclose(found.apart[7], expected, atol=1e-6)


def test_before_training_the_maps_change_nothing() -> None:
    reading = without_maps(made_states(count=6))
    sides = role_states(reading)["background"]
    plain = torch.cosine_similarity(*sides, dim=-1)
    np.testing.assert_allclose(alignments(reading)["background"].together, plain, atol=1e-6)


def test_a_network_that_has_no_maps_is_compared_as_it_is() -> None:
    reading = made_states(count=6, roles=False)
    assert reading.network.roles is None
    for name, sides in role_states(reading).items():
        plain = torch.cosine_similarity(*sides, dim=-1)
        np.testing.assert_allclose(alignments(reading)[name].together, plain, atol=1e-6)


def test_roles_that_need_a_next_patch_are_left_out_of_a_single_one() -> None:
    single = made_states(count=4, hidden=16, patch_length=12, patch_stride=12)
    assert list(alignments(single)) == ["release"]
    said = find_roles(single, single)
    assert list(said.numbers) == ["release"] and any("too few patches" in line for line in said.sentences)


def test_what_is_said_holds_means_and_middle_four_fifths() -> None:
    before, after = made_states(count=6, seed=1), made_states(count=6)
    said = find_roles(before, after)
    cosines = alignments(after)["accumulation"].together
    numbers = said.numbers["accumulation"]["after"]
    assert numbers["mean"] == pytest.approx(cosines.mean())
    assert ((cosines >= numbers["low"]) & (cosines <= numbers["high"])).mean() == pytest.approx(0.8, abs=0.02)
    assert said.numbers["accumulation"]["before"]["mean"] == pytest.approx(
        alignments(before)["accumulation"].together.mean()
    )
    assert said.pictures and len(draw(said.pictures["roles"]).table) == 15
    assert f"{numbers['mean']:+.2f}" in said.sentences[1]
    for lacking, words in (({"decomposition": False}, "components"), ({"branches": ("functional",)}, "physical")):
        bare = made_states(count=2, **lacking)
        assert words in find_roles(bare, bare).sentences[0]
