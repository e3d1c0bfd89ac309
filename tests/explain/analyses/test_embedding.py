"""The plane holds the largest spread, and separation has its known answers."""

import numpy as np
import pytest
from made_readings import made_states
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_samples

from candor.explain.analyses.embedding import (
    MOST_STATES,
    find_embedding,
    principal_plane,
    sample_states,
    separation,
    silhouettes,
)
from candor.render.figures.gallery import draw

CHANCE = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def same_chance_for_every_test() -> None:
    """What one test draws must not depend on which ran before it."""
    CHANCE.bit_generator.state = np.random.default_rng(5).bit_generator.state


def test_the_plane_is_that_of_principal_components() -> None:
    points = CHANCE.standard_normal((60, 7)) * [5, 3, 1, 1, 0.5, 0.2, 0.1] @ np.linalg.qr(CHANCE.random((7, 7)))[0]
    (plane, shares), known = principal_plane(points), PCA(2).fit(points)
    np.testing.assert_allclose(np.abs(plane), np.abs(known.transform(points)), atol=1e-9)
    np.testing.assert_allclose(shares, known.explained_variance_ratio_)


def test_the_plane_does_not_depend_on_the_signs_of_a_factorisation() -> None:
    points = CHANCE.standard_normal((40, 5))
    turned = np.linalg.svd(points - points.mean(axis=0))[2][0]
    axis = turned * np.sign(turned[np.abs(turned).argmax()])
    np.testing.assert_allclose(principal_plane(points)[0][:, 0], (points - points.mean(axis=0)) @ axis)
    np.testing.assert_array_equal(principal_plane(points + 7)[0].shape, (40, 2))
    np.testing.assert_allclose(principal_plane(points + 7)[0], principal_plane(points)[0], atol=1e-9)


def test_equal_points_lie_in_the_middle_of_the_plane() -> None:
    coordinates, shares = principal_plane(np.ones((4, 3)))
    np.testing.assert_array_equal(coordinates, 0)
    assert shares == (0.0, 0.0)


def test_silhouettes_are_those_of_another_implementation() -> None:
    points, labels = CHANCE.standard_normal((90, 4)), CHANCE.integers(0, 4, 90)
    points[labels == 2] += 3
    np.testing.assert_allclose(silhouettes(points, labels), silhouette_samples(points, labels), atol=1e-9)


def test_silhouettes_of_two_pairs_are_known() -> None:
    points, labels = np.array([[0.0], [1.0], [10.0], [11.0]]), np.array([0, 0, 1, 1])
    np.testing.assert_allclose(silhouettes(points, labels), [9.5 / 10.5, 8.5 / 9.5, 8.5 / 9.5, 9.5 / 10.5])
    swapped = silhouettes(points, np.array([0, 1, 0, 1]))  # pairs torn apart are nearer to the other one
    assert (swapped < 0).all()


def test_points_that_coincide_touch_and_single_points_count_nothing() -> None:
    np.testing.assert_array_equal(silhouettes(np.zeros((4, 2)), np.array([0, 0, 1, 1])), 0)
    assert silhouettes(np.array([[0.0], [1.0], [9.0]]), np.array([0, 0, 1]))[2] == 0
    with pytest.raises(ValueError, match="two labels"):
        silhouettes(np.zeros((4, 2)), np.zeros(4, int))


def test_separation_rises_as_components_are_moved_apart() -> None:
    clouds = {name: CHANCE.standard_normal((30, 6)) for name in ("a", "b", "c")}
    near = separation(clouds)
    far = separation({name: cloud + 50 * place for place, (name, cloud) in enumerate(clouds.items())})
    assert abs(near["all"]) < 0.1 and far["all"] > 0.9
    assert far["all"] == pytest.approx(np.mean([far[name] for name in clouds]))


def test_states_are_sampled_at_the_same_places_and_always_the_same() -> None:
    reading = made_states(count=24)
    states = sample_states(reading)
    assert reading.components is not None
    assert {part.shape for part in states.values()} == {(MOST_STATES, 8)}
    flat = {name: getattr(reading.components, name).reshape(-1, 8).numpy() for name in states}
    rows = [np.flatnonzero((flat["shock"] == state.astype(np.float32)).all(axis=1))[0] for state in states["shock"]]
    assert len(set(rows)) == MOST_STATES
    np.testing.assert_array_equal(states["background"], flat["background"][rows])
    np.testing.assert_array_equal(states["release"], sample_states(reading)["release"])


def test_what_is_said_compares_with_the_start() -> None:
    before, after = made_states(count=4, seed=1), made_states(count=4)
    said = find_embedding(before, after)
    assert said.numbers["after"] == separation(sample_states(after))
    assert said.numbers["before"] == separation(sample_states(before))
    assert f"{said.numbers['after']['all']:.2f}" in said.sentences[0] and said.pictures
    assert len(draw(said.pictures["embedding"]).table) == 4 * said.numbers["states_of_each"] == 4 * 4 * 5 * 5
    bare = made_states(count=2, decomposition=False)
    assert find_embedding(bare, bare).pictures == {}
