"""What a figure shows, for tests of figures."""

from itertools import combinations

import pytest
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def drawn_texts(figure: Figure, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Bbox]]:
    """Returns all texts that are drawn, with the boxes they fill, in dots."""
    layout = figure.get_layout_engine()
    assert layout is not None
    layout.execute(figure)  # once before it is done as texts are drawn: so it settles
    found, draw = [], Text.draw

    def note(text: Text, renderer: RendererBase) -> None:
        if text.get_visible() and text.get_text().strip():
            found.append((text.get_text(), text.get_window_extent(renderer)))
        draw(text, renderer)

    with monkeypatch.context() as patched:
        patched.setattr(Text, "draw", note)
        figure.draw_without_rendering()
    return found


def assert_texts_stand_apart(figure: Figure, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails if a text leaves the figure or lies on another."""
    texts = drawn_texts(figure, monkeypatch)
    assert len(texts) > 3
    width, height = figure.canvas.get_width_height()
    for text, box in texts:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, f"{text!r} is cut"
    for (one, first), (other, second) in combinations(texts, 2):
        apart = first.x1 <= second.x0 or second.x1 <= first.x0 or first.y1 <= second.y0 or second.y1 <= first.y0
        assert apart, f"{one!r} lies on {other!r}"
