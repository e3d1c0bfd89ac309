"""Names keep clear of one another, of marks and of the frame; where all must be written, each has its place."""

from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from candor.render.figures.labels import LabelPage, _share_inside, place_labels


@settings(max_examples=20)
@given(st.integers(1, 18), st.integers(0, 10**6))
def test_labels_keep_clear_of_marks_of_the_frame_and_of_one_another(count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    spots = np.stack(np.divmod(chance.permutation(21)[:count], 3), axis=1)
    places = 2 + 0.42 * spots + 0.1 * chance.random((count, 2))  # a crowd: many names have to go far
    sizes = [tuple(size) for size in chance.random((count, 2)) * [1.5, 0.4] + 0.1]
    page = LabelPage((0, 0, 7, 5), places, np.full(count, 0.06), places[chance.integers(count, size=(count, 2))], 0.06)
    middles = place_labels(page, sizes)
    placed = [
        (place, middle - np.array(size) / 2, middle + np.array(size) / 2)
        for place, middle, size in zip(places, middles, sizes, strict=True)
        if middle is not None
    ]
    assert len(placed) >= min(count, 5)
    for _, low, high in placed:
        assert (low >= 0).all() and (high <= [7, 5]).all()
        assert not np.all((places > low - 0.06) & (places < high + 0.06), axis=1).any()
    for (place, low, high), (_, other_low, other_high) in permutations(placed, 2):
        assert (high <= other_low).any() or (other_high <= low).any()
        leader = place + np.linspace(0, 1, 300)[:, None] * (np.clip(place, low, high) - place)
        assert not np.all((leader > other_low) & (leader < other_high), axis=1).any()


def test_where_all_must_be_written_nothing_is_left_out_and_names_have_the_free_places() -> None:
    places = np.array([[1.0, 1.0], [1.05, 1.0], [3.0, 1.0]])  # the first two are marks that lie on one another
    page = LabelPage((0, 0, 4, 2), places, np.array([0.2, 0.2, 0.1]), np.zeros((0, 2, 2)), 0.03)
    sizes = [(0.6, 0.15)] * 3
    assert [middle is None for middle in place_labels(page, sizes)] == [True, True, False]  # leaders cross marks
    boxes = [(middle - np.array([0.3, 0.075]), middle + np.array([0.3, 0.075]))
             for middle in place_labels(page, sizes, is_strict=False) if middle is not None]  # fmt: skip
    assert len(boxes) == 3
    for (low, high), (other_low, other_high) in permutations(boxes, 2):
        assert (high <= other_low).any() or (other_high <= low).any()


@settings(max_examples=50)
@given(st.integers(0, 10**6))
def test_the_share_of_a_line_inside_a_box_is_that_of_many_points_on_it(seed: int) -> None:
    chance = np.random.default_rng(seed)
    line, corners = chance.random((2, 2)), np.sort(chance.random((2, 2)), axis=0)
    line[1, 0] = line[0, 0] if seed % 3 == 0 else line[1, 0]  # straight up
    points = line[0] + np.linspace(0, 1, 20_001)[:, None] * (line[1] - line[0])
    is_inside = ((points > corners[0] - 0.1) & (points < corners[1] + 0.1)).all(axis=1)
    np.testing.assert_allclose(_share_inside(line, corners.reshape(4), 0.1), is_inside.mean(), atol=2e-4)
