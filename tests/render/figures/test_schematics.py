"""The schematics: nothing overlaps, every arrow has two ends, every word is inside its box."""

import itertools

import pytest
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

from candor.render.figures.schematics import (
    OVERVIEW,
    OVERVIEW_ARROWS,
    SPLIT,
    SPLIT_ARROWS,
    draw_decomposition,
    draw_overview,
)
from candor.render.figures.style import Drawing


@pytest.mark.parametrize(("boxes", "arrows"), [(OVERVIEW, OVERVIEW_ARROWS), (SPLIT, SPLIT_ARROWS)])
def test_every_box_is_reached_or_begins_and_none_covers_another(boxes, arrows) -> None:
    ends = {name for arrow in arrows for name in arrow}
    assert ends == set(boxes)
    for one, other in itertools.combinations(boxes.values(), 2):
        apart = (one.left + one.width <= other.left or other.left + other.width <= one.left) or (
            one.bottom + one.height <= other.bottom or other.bottom + other.height <= one.bottom
        )
        assert apart, (one.title, other.title)


@pytest.mark.parametrize("drawing", [draw_overview(), draw_decomposition()], ids=["overview", "decomposition"])
def test_all_words_are_inside_a_box(drawing: Drawing) -> None:
    drawing.figure.draw_without_rendering()
    (axes,) = drawing.figure.axes
    boxes = [box.get_window_extent() for box in axes.patches if isinstance(box, FancyBboxPatch)]
    words = [text.get_window_extent() for text in axes.texts if isinstance(text, Text)]
    assert len(words) == 2 * len(boxes)
    for word in words:
        inside = (b.x0 <= word.x0 and word.x1 <= b.x1 and b.y0 <= word.y0 and word.y1 <= b.y1 for b in boxes)
        assert any(inside)
