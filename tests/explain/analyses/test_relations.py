"""Relations beyond the topology are what no walk of the physical branch reaches."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_readings import made_states, river_panel

from candor.data.panel import Edges
from candor.explain.analyses.relations import connected_within, find_relations, functional_weights
from candor.explain.analyses.states import WindowStates
from candor.graph import great_circle_km
from candor.render.figures.gallery import draw


@pytest.fixture(scope="module")
def reading() -> WindowStates:
    return made_states()


@pytest.mark.parametrize("orders", [1, 2, 3])
def test_connections_are_powers_of_the_adjacency(orders: int) -> None:
    chance = np.random.default_rng(orders)
    matrix = chance.random((5, 5)) < 0.25
    source, target = np.nonzero(matrix)
    panel = replace(river_panel(), edges=Edges(source, target))
    step = matrix.astype(int)
    walks = sum(np.linalg.matrix_power(step, power) for power in range(1, orders + 1))
    expected = (walks > 0) | (walks.T > 0) | np.eye(5, dtype=bool)
    np.testing.assert_array_equal(connected_within(panel, orders), expected)


def test_weights_of_a_sensor_sum_to_one_and_leave_itself_out(reading: WindowStates) -> None:
    found = functional_weights(reading, river_panel())
    np.testing.assert_allclose(found.weight.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(np.diag(found.weight), 0)
    assert not np.diag(found.is_beyond).any()
    assert found.share_beyond == pytest.approx(found.weight[found.is_beyond].sum() / 5)


def test_shares_are_counted_by_hand(reading: WindowStates) -> None:
    """g0 hears from g1 (0.25, in two channels, beyond), and from g2 (0.75, joined); the others from g3 (beyond)."""
    peer = torch.tensor([[1, 2, 1], [3, 3, 3], [3, 3, 3], [0, 0, 0], [3, 3, 3]]).repeat(2, 1, 1)
    weight = torch.tensor([[0.15, 0.75, 0.1], *[[1.0, 0.0, 0.0]] * 4]).repeat(2, 1, 1)
    panel = river_panel()
    descriptor = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [3.0, 0.0], [-1.0, 0.0]]).repeat(2, 1, 1)
    assert reading.functional is not None
    functional = replace(reading.functional, neighbour=peer, weights=weight, descriptor=descriptor)
    found = functional_weights(replace(reading, functional=functional, origins=np.arange(2)), panel)
    assert found.weight[0, 1] == pytest.approx(0.25) and found.weight[0, 2] == pytest.approx(0.75)
    assert found.share_beyond == pytest.approx((0.25 + 4) / 5)
    # Joined: g0-g2, g1-g2, g2-g4, and over two edges g0-g4 and g1-g4, both ways.
    assert found.share_of_pairs == pytest.approx((20 - 10) / 20)
    receiver, other, heaviest = found.beyond()
    assert set(zip(receiver.tolist()[:4], other.tolist()[:4], strict=True)) == {(1, 3), (2, 3), (3, 0), (4, 3)}
    assert (receiver[4], other[4], heaviest[4]) == (0, 1, pytest.approx(0.25))
    one, another, resemblance = found.alike()
    assert (one[0], another[0], resemblance[0]) == (0, 3, pytest.approx(1))  # alike whatever their size
    assert (one[1], another[1], resemblance[1]) == (2, 3, pytest.approx(2**-0.5))
    assert len(one) == 10 / 2 and resemblance[-1] == pytest.approx(-1)


def test_the_table_lists_them_with_their_distance(reading: WindowStates) -> None:
    panel = river_panel()
    said = find_relations(reading, panel)
    assert said.pictures
    table, found = draw(said.pictures["relations"]).table, functional_weights(reading, panel)
    assert len(table) == said.numbers["relations_beyond"]
    assert table.mean_weight.is_monotonic_decreasing
    for row in table.itertuples():
        one, other = (int(name[1:]) for name in (row.sensor, row.hears_from))
        assert found.is_beyond[one, other] and row.mean_weight == pytest.approx(found.weight[one, other])
        assert row.resemblance == pytest.approx(found.resemblance[one, other])
        places = [(panel.sensors[place].latitude, panel.sensors[place].longitude) for place in (one, other)]
        assert row.distance_km == pytest.approx(great_circle_km(*places[0], *places[1]))


def test_unknown_places_and_missing_relations_are_said(reading: WindowStates) -> None:
    panel = river_panel()
    nowhere = replace(panel, sensors=tuple(replace(sensor, latitude=None, longitude=None) for sensor in panel.sensors))
    said = find_relations(reading, nowhere)
    assert said.pictures and "distance_km" not in draw(said.pictures["relations"]).table
    assert not any("km away" in sentence for sentence in said.sentences)
    assert "no functional" in find_relations(made_states(count=2, branches=("forward",)), panel).sentences[0]
    assert "no relation channels" in find_relations(made_states(count=2, relations=0), panel).sentences[0]
    alone = panel.select(["g2"])
    assert "single sensor" in find_relations(made_states(alone, count=2), alone).sentences[0]


def test_where_all_are_joined_nothing_is_beyond() -> None:
    source, target = np.nonzero(~np.eye(5, dtype=bool))
    panel = replace(river_panel(), edges=Edges(source, target))
    said = find_relations(made_states(panel, count=3), panel)
    assert said.numbers["share_beyond"] == 0 and any("No sensor gets anything" in line for line in said.sentences)
    assert said.pictures and draw(said.pictures["relations"]).table.empty
