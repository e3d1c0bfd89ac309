"""Contributions are taken apart without changing them, and likeness has its known answers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_readings import daily, made_states, river_panel

from candor.data.panel import Edges
from candor.explain.analyses.propagation import (
    alignment,
    contribution_of,
    find_propagation,
    incoming,
    last_residuals,
    study_propagation,
)
from candor.explain.analyses.states import WindowStates
from candor.render.figures.gallery import draw

DIRECTIONS = ("forward", "reverse")


@pytest.fixture(scope="module")
def reading() -> WindowStates:
    return made_states(count=40, temporal_span=3)


def random_table(rows: int, columns: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def test_alignment_is_one_for_a_turned_copy_and_small_for_strangers() -> None:
    table = random_table(4000, 6, 0)
    turn = torch.linalg.qr(random_table(6, 6, 1)).Q
    assert alignment(table, 3 * table @ turn + 5) == pytest.approx(1, abs=1e-5)
    assert alignment(table, random_table(4000, 6, 2)) < 0.01
    assert np.isnan(alignment(table, torch.ones(4000, 2)))


def test_alignment_of_single_columns_is_their_squared_correlation() -> None:
    first = random_table(300, 1, 0)
    second = 0.5 * first + random_table(300, 1, 1)
    correlation = np.corrcoef(first[:, 0], second[:, 0])[0, 1]
    assert alignment(first, second) == pytest.approx(correlation**2, rel=1e-5)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_real_residuals_give_the_contribution_of_the_network(reading: WindowStates, direction: str) -> None:
    path = reading.paths[direction]
    window = last_residuals(path, 3)
    torch.testing.assert_close(window, path.residual[..., -3:, :])
    torch.testing.assert_close(
        contribution_of(reading, direction, window, window), path.contribution[..., -1, :], atol=1e-5, rtol=1e-4
    )


def test_windows_longer_than_the_history_repeat_its_first_patch() -> None:
    short = made_states(count=3, hidden=16, patch_length=6, patch_stride=6, temporal_span=4)
    path = short.paths["forward"]
    window = last_residuals(path, 4)
    assert path.residual.shape[-2] == 2
    torch.testing.assert_close(window[..., :3, :], path.residual[..., :1, :].expand_as(window[..., :3, :]))
    torch.testing.assert_close(
        contribution_of(short, "forward", window, window), path.contribution[..., -1, :], atol=1e-5, rtol=1e-4
    )


def test_only_senders_change_what_others_receive(reading: WindowStates) -> None:
    window = last_residuals(reading.paths["forward"], 3)
    changed = window.clone()
    changed[:, 0] += 1.0  # g0 sends to g2, and over it to g4
    real = contribution_of(reading, "forward", window, window)
    heard = (contribution_of(reading, "forward", window, changed) - real).abs().amax(dim=(0, 2)) > 1e-6
    assert heard.tolist() == [False, False, True, False, True]
    kept = (contribution_of(reading, "forward", changed, window) - real).abs().amax(dim=(0, 2)) > 1e-6
    assert kept.tolist() == [True, False, False, False, False]


def test_what_comes_in_is_the_weighted_sum_over_edges_between_two(reading: WindowStates) -> None:
    found, has_neighbours = incoming(reading)
    assert has_neighbours.tolist() == [True, True, True, False, True]
    physical, expected = reading.network.physical, torch.zeros_like(found)
    assert physical is not None
    for direction in DIRECTIONS:
        support, path = physical.support(direction), reading.paths[direction]
        for edge, (receiver, sender) in enumerate(zip(support.receiver, support.sender, strict=True)):
            if receiver != sender:
                weight = path.weights[:, :, edge].mean(dim=1)
                expected[:, receiver] += weight[:, None, None] * path.residual[:, sender]
    torch.testing.assert_close(found, expected)


def test_without_edges_nothing_comes_from_others() -> None:
    panel = replace(river_panel(), edges=Edges.none())
    alone = made_states(panel, count=12)
    found = study_propagation(alone)
    np.testing.assert_array_equal(found.others, 0)
    assert (found.own > 0).all() and np.isnan(found.likeness).all()
    said = find_propagation(alone, panel, 0)
    assert any("no edges" in sentence for sentence in said.sentences) and said.pictures


def test_likeness_compares_the_patch_before_the_one_predicted_at_lag_one(reading: WindowStates) -> None:
    """What arrives is replaced by a copy of what came in, so that the lag of the copy is known."""
    arriving, _ = incoming(reading)
    for delay in (1, 2):
        shifted = torch.zeros_like(arriving)
        shifted[:, :, delay - 1 :] = arriving[:, :, : arriving.shape[2] - delay + 1]
        # Both directions are summed: one carries the copy, the other nothing.
        paths = {
            direction: replace(path, contribution=shifted if direction == "forward" else torch.zeros_like(shifted))
            for direction, path in reading.paths.items()
        }
        copied = replace(reading, paths=paths)
        found = study_propagation(copied)
        assert found.lags[int(np.nanargmax(found.likeness))] == delay
        assert found.lags.min() == -3 and found.lags.max() == 5


def test_states_that_are_always_as_usual_have_no_influence() -> None:
    reading = made_states(daily(river_panel()), count=10)
    paths = {
        direction: replace(path, residual=path.residual[:1].expand_as(path.residual))
        for direction, path in reading.paths.items()
    }
    found = study_propagation(replace(reading, paths=paths))
    np.testing.assert_allclose(found.own, 0, atol=1e-5)
    np.testing.assert_allclose(found.others, 0, atol=1e-5)


def test_the_table_holds_what_is_drawn_and_what_is_said(reading: WindowStates) -> None:
    said = find_propagation(reading, river_panel(), 5)
    assert said.pictures
    table = draw(said.pictures["propagation"]).table
    counts = table.what.value_counts()
    assert counts["residual, how unusual"] == counts["contribution, how unusual"] == 5 * 5
    own = table[table.what == "influence of own"].set_index("lag").value
    assert own.tolist() == pytest.approx(said.numbers["influence_of_own_by_lag"])
    assert len(own) == 3
    later = table[table.what == "contribution, how unusual"].patch_begins.min()
    assert later > table[table.what == "residual, how unusual"].patch_begins.min()
    bare = made_states(count=2, branches=("functional",))
    assert "no physical branch" in find_propagation(bare, river_panel(), 0).sentences[0]
