"""What components rebuild is measured as the objective does, and read back exactly into the sensors' unit."""

import numpy as np
import pytest
import torch
from made_readings import HISTORY, made_states, made_trainable, made_windows, river_panel

from candor.data.windows import future_windows
from candor.explain.analyses.reconstruction import (
    EmbeddingInverse,
    find_reconstruction,
    picture_reconstruction,
    rebuilt,
    reconstruction_errors,
)
from candor.explain.analyses.states import WindowStates, window_states
from candor.nets.candor.losses import LossSpace, losses
from candor.nets.candor.settings import LossWeights
from candor.nets.trainable import tensors_of


@pytest.fixture(scope="module")
def reading() -> WindowStates:
    return made_states()


def in_a_row(windows: int = 3) -> WindowStates:
    panel = river_panel()
    trainable = made_trainable(panel)
    inputs = trainable.scaler.scale(np.nan_to_num(panel.values, nan=10.0))
    origins = np.arange(1, windows + 1) * HISTORY
    return window_states(trainable, future_windows(panel, inputs, origins, HISTORY, 4))


def test_patches_are_read_back_from_their_embedding(reading: WindowStates) -> None:
    inverse = EmbeddingInverse(reading.network.embedding)
    patches = reading.values.transpose(1, 2).unfold(-1, 4, 2)
    assert inverse.is_exact
    found = inverse.readings(reading.embedded, inverse.scales(reading.embedded))
    torch.testing.assert_close(found, patches.double(), atol=2e-4, rtol=0)


def test_embeddings_too_narrow_for_their_patches_cannot_be_read_back() -> None:
    narrow = made_states(count=4, patch_length=8, patch_stride=4)
    assert not EmbeddingInverse(narrow.network.embedding).is_exact
    found = reconstruction_errors(narrow)
    assert found.current.in_unit is None and found.of_embedding is None and found.current.loss > 0
    said = find_reconstruction(narrow, narrow, river_panel(), 0)
    assert said.pictures == {} and any("too long" in sentence for sentence in said.sentences)


def test_the_two_errors_are_the_reconstruction_loss_of_the_objective() -> None:
    panel = river_panel()
    trainable = made_trainable(panel)
    windows = made_windows(panel, trainable, 6)
    batch = tensors_of(windows.batch(np.arange(6)))
    encoding = trainable.network.encode(trainable.anchored(batch)[0], batch["time_of_day"], batch["day_of_week"])
    targets, mask = torch.zeros(6, 4, 5), torch.ones(6, 4, 5, dtype=torch.bool)
    space = {"prefix": 4, "space": LossSpace(), "is_active": True}
    terms = losses(trainable.network, encoding, targets, mask, LossWeights(), **space).terms
    found = reconstruction_errors(window_states(trainable, windows))
    assert found.following is not None
    assert (found.current.loss + found.following.loss) / 2 == pytest.approx(terms["reconstruction"].item(), rel=1e-5)


def test_components_that_rebuild_everything_leave_no_error(reading: WindowStates) -> None:
    assert reading.components is not None
    zero = torch.zeros_like(reading.embedded)
    constant = reading.embedded[:, :, :1].expand_as(reading.embedded)  # the next background is the same one
    perfect = type(reading.components)(
        **vars(reading.components)
        | {"raw_background": constant, "raw_accumulation": zero, "raw_release": zero, "raw_shock": zero}
    )
    errors = reconstruction_errors(WindowStates(**vars(reading) | {"components": perfect, "embedded": constant}))
    assert errors.following is not None
    for error in (errors.current, errors.following):
        assert error.loss == 0 and error.explained == pytest.approx(1)
    assert reconstruction_errors(reading).of_embedding == pytest.approx(0, abs=1e-4)


def test_what_components_add_sums_to_what_they_rebuild(reading: WindowStates) -> None:
    components = reading.components
    assert components is not None
    inverse = EmbeddingInverse(reading.network.embedding)
    scales = inverse.scales(reading.embedded)
    current, following = rebuilt(components)
    parts = inverse.readings(components.raw_background, scales)
    for part in (components.raw_accumulation, components.raw_shock):
        parts = parts + inverse.readings(part, scales, has_offset=False)
    torch.testing.assert_close(parts, inverse.readings(current, scales), atol=1e-4, rtol=1e-4)
    last = components.raw_background[..., -1, :] + components.raw_release[..., -1, :] + components.raw_shock[..., -1, :]
    torch.testing.assert_close(following[..., -1, :], last)  # the last background is repeated


def test_trajectories_are_in_the_unit_and_follow_one_another() -> None:
    shown, panel = in_a_row(), river_panel()
    picture = picture_reconstruction(shown, panel, 0)
    assert len(picture.times) == 36 and list(picture.times) == list(panel.times.local[:36])
    np.testing.assert_array_equal(picture.readings, panel.values[:36, 0])
    assert list(picture.breaks) == [panel.times.local[12], panel.times.local[24]]
    assert shown.components is not None
    zero = torch.zeros_like(shown.embedded)
    names = ("raw_accumulation", "raw_release", "raw_shock")
    whole = type(shown.components)(
        **vars(shown.components) | dict.fromkeys(names, zero) | {"raw_background": shown.embedded}
    )
    perfect = picture_reconstruction(WindowStates(**vars(shown) | {"components": whole}), panel, 0)
    np.testing.assert_allclose(perfect.current, picture.readings, atol=1e-3)  # the readings themselves, in metres
    for part in perfect.parts.values():
        np.testing.assert_array_equal(part, 0)


def test_steps_that_no_patch_covers_are_left_open() -> None:
    panel = river_panel()
    trainable = made_trainable(panel, patch_length=5, patch_stride=3)  # patches end at step 11 of 12
    inputs = trainable.scaler.scale(np.nan_to_num(panel.values, nan=10.0))
    shown = window_states(trainable, future_windows(panel, inputs, np.array([24]), HISTORY, 4))
    picture = picture_reconstruction(shown, panel, 0)
    assert np.isnan(picture.current[-1]) and not np.isnan(picture.current[:-1]).any()


def test_one_patch_has_no_next_background() -> None:
    single = made_states(count=4, hidden=16, patch_length=12, patch_stride=12)
    assert reconstruction_errors(single).following is None
    said = find_reconstruction(single, single, river_panel(), 0)
    assert said.numbers["following"] is None
    assert any("single patch" in sentence for sentence in said.sentences)


def test_what_is_said_names_the_unit_and_a_network_without_components_says_so(reading: WindowStates) -> None:
    panel = river_panel()
    said = find_reconstruction(reading, in_a_row(), panel, 0)
    assert said.pictures and said.numbers["unit"] == "m"
    assert f"{said.numbers['current']['in_unit']:.2f}"[:3] in said.sentences[0] and " m." in said.sentences[0]
    bare = made_states(count=4, decomposition=False)
    assert "does not split" in find_reconstruction(bare, bare, panel, 0).sentences[0]
