"""The parts of the operator add up to its weights, and what moves is what one sender loses to another."""

from dataclasses import replace

import numpy as np
import pytest
from made_readings import made_states, river_panel

from candor.data.panel import Edges
from candor.explain.analyses.operator import OperatorParts, find_operator, operator_parts
from candor.explain.analyses.states import WindowStates
from candor.render.figures.gallery import draw


@pytest.fixture(scope="module")
def reading() -> WindowStates:
    return made_states()


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_support_and_both_scores_give_the_weights(reading: WindowStates, direction: str) -> None:
    parts = operator_parts(reading, direction)
    assert parts.shared_scores is not None and parts.sample_scores is not None
    for receiver in np.unique(parts.receiver):
        into = parts.receiver == receiver
        for part in (parts.support, parts.with_shared, parts.whole):
            np.testing.assert_allclose(part[..., into].sum(axis=-1), 1, rtol=1e-5)
        # Centred scores are as good as those of the network: a softmax does not see what all edges share.
        shared = parts.support[:, into] * np.exp(parts.shared_scores[:, into])
        np.testing.assert_allclose(parts.with_shared[:, into], shared / shared.sum(axis=-1, keepdims=True), rtol=1e-5)
        whole = shared * np.exp(parts.sample_scores[:, None, into])
        np.testing.assert_allclose(parts.whole[..., into], whole / whole.sum(axis=-1, keepdims=True), rtol=1e-4)
        np.testing.assert_allclose(parts.shared_scores[:, into].sum(axis=-1), 0, atol=1e-6)


def test_the_support_is_that_of_the_given_edges(reading: WindowStates) -> None:
    parts = operator_parts(reading, "forward")
    given = {(0, 2): 1.0, (1, 2): 1.0, (2, 2): 0.5 / 1.5, (2, 4): 1.0 / 1.5}  # over what each source sends
    into = {2: 1 + 1 + 0.5 / 1.5, 4: 1.0 / 1.5}
    for sender, receiver, weight in zip(parts.sender, parts.receiver, parts.support[0], strict=True):
        assert weight == pytest.approx(given[sender, receiver] / into[receiver], rel=1e-5)


def parts_of(support: list[float], shared: list[float], windows: list[list[float]]) -> OperatorParts:
    """Returns two edges into one sensor and a single one into another, at one position."""
    receiver = np.array([0, 0, 1])
    whole = np.array([[window] for window in windows])
    return OperatorParts(np.array([1, 2, 0]), receiver, np.array([support]), np.array([shared]), whole, None, None)


def test_what_moves_is_counted_once_and_only_where_there_is_a_choice() -> None:
    parts = parts_of([0.5, 0.5, 1.0], [0.7, 0.3, 1.0], [[0.6, 0.4, 1.0], [1.0, 0.0, 1.0]])
    assert parts.has_choice.tolist() == [True, True, False]
    moved = parts.moved()
    assert moved == pytest.approx({"by_shared": 0.2, "by_window": (0.1 + 0.3) / 2, "between_windows": 0.2})


def test_the_table_has_every_edge_and_position(reading: WindowStates) -> None:
    panel = river_panel()
    said = find_operator(reading, panel)
    assert said.pictures
    table = draw(said.pictures["operator"]).table
    assert len(table) == 2 * 4 * 2
    parts = operator_parts(reading, "forward")
    row = table[(table.direction == "forward") & (table["from"] == "g1") & (table.patches_before_newest == 0)].iloc[0]
    edge = int(np.flatnonzero(parts.sender == 1)[0])
    assert row["to"] == "g2" and row.weight_mean == pytest.approx(parts.whole[:, 1, edge].mean())
    assert row.weight_as_given == pytest.approx(parts.support[1, edge])
    assert row.weight_10 <= row.weight_mean <= row.weight_90
    assert said.numbers["forward"]["edges_with_a_choice"] == 3
    assert said.numbers["forward"]["by_window"] == pytest.approx(parts.moved()["by_window"])


def test_networks_without_an_operator_of_their_own_say_so() -> None:
    panel = river_panel()
    raw = find_operator(made_states(count=3, learned_operator=False), panel)
    assert any("as they are" in sentence for sentence in raw.sentences) and raw.pictures
    table = draw(raw.pictures["operator"]).table
    assert "shared_score" not in table
    np.testing.assert_allclose(table.weight_mean, table.weight_as_given, rtol=1e-5)
    assert "no physical branch" in find_operator(made_states(count=2, branches=("functional",)), panel).sentences[0]
    lonely = replace(panel, edges=Edges.none())
    assert "no edges" in find_operator(made_states(lonely, count=2), lonely).sentences[0]


def test_single_edges_leave_nothing_to_choose() -> None:
    panel = replace(river_panel(), edges=Edges(np.array([0, 1]), np.array([1, 2])))
    said = find_operator(made_states(panel, count=3), panel)
    assert all("one at most" in sentence for sentence in said.sentences) and said.pictures
    np.testing.assert_allclose(draw(said.pictures["operator"]).table.weight_mean, 1)
