"""The graph of a panel follows its weights, or else its distances."""

from dataclasses import replace

import numpy as np
import pytest

from candor.data.catalog import load_dataset
from candor.data.panel import Edges, Panel, adjacency_of
from candor.forecasting.contract import sample_panel


def test_distances_become_a_gaussian_without_a_threshold() -> None:
    panel = load_dataset("klamath-daily")
    distance = panel.edges.distance.astype(np.float64)
    dense = adjacency_of(panel).toarray()
    expected = np.exp(-((distance / distance.std()) ** 2))
    np.testing.assert_allclose(dense[panel.edges.source, panel.edges.target], expected, rtol=1e-5)
    assert np.count_nonzero(dense) == len(panel.edges) == 41


def test_given_weights_win_over_distances() -> None:
    edges = Edges(np.array([0, 1, 2]), np.array([1, 2, 2]), np.array([5.0, 1.0, 0.0]), np.array([0.5, 0.05, 1.0]))
    panel = replace(sample_panel(), edges=edges)
    dense = adjacency_of(panel).toarray()
    assert dense[0, 1] == 0.5
    assert dense[1, 2] == pytest.approx(0.05)
    assert dense[2, 2] == 1.0


def test_edges_that_say_nothing_weigh_one_and_no_edges_are_legal() -> None:
    plain = replace(sample_panel(), edges=Edges(np.array([0, 3]), np.array([1, 2])))
    assert adjacency_of(plain).toarray()[[0, 3], [1, 2]].tolist() == [1.0, 1.0]
    assert adjacency_of(replace(plain, edges=Edges.none())).nnz == 0


def test_shuffling_sensors_permutes_the_graph() -> None:
    panel = load_dataset("klamath-daily")
    order = np.random.default_rng(0).permutation(len(panel.sensors))
    shuffled = panel.select([panel.sensor_ids[i] for i in order])
    np.testing.assert_allclose(adjacency_of(shuffled).toarray(), adjacency_of(panel).toarray()[np.ix_(order, order)])


def test_metr_la_has_the_official_adjacency(metr_la: Panel) -> None:
    dense = adjacency_of(metr_la).toarray()
    assert np.count_nonzero(dense) == 1722
    np.testing.assert_array_equal(np.diag(dense), 1.0)
