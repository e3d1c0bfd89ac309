"""Figures in tests: laid out without being painted, which takes longest, and the texts that they show."""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from matplotlib.backend_bases import RendererBase
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    from candor.render.figures.style import Drawing


@contextmanager
def without_paint(but: Container[str] = ()) -> Iterator[None]:
    """Leaves pictures empty while figures are laid out as ever, which is where they warn or fail.

    Args:
        but: what is painted nevertheless: names of figures, endings, or both, such as truth, .svg or truth.svg.
    """
    from candor.render.figures import style

    paint = style.Drawing._write_figure

    def is_painted(path: Path) -> bool:
        return any(part in but for part in (path.stem, path.suffix, path.name))

    def lay_out(drawing: "Drawing", path: Path) -> None:
        if is_painted(path):
            paint(drawing, path)
            return
        if path.suffix == ".png" and not is_painted(path.with_suffix(".svg")):  # which would lay it out, too
            drawing.figure.draw_without_rendering()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style.Drawing, "_write_figure", lay_out)
        yield


def drawn_texts(figure: "Figure", monkeypatch: pytest.MonkeyPatch) -> "list[tuple[str, Bbox]]":
    """Returns all texts that are drawn, with the boxes they fill, in dots."""
    from matplotlib.text import Text

    found, draw = [], Text.draw

    def note(text: Text, renderer: "RendererBase") -> None:
        if text.get_visible() and text.get_text().strip():
            found.append((text.get_text(), text.get_window_extent(renderer)))
        draw(text, renderer)

    with monkeypatch.context() as patched:
        patched.setattr(Text, "draw", note)
        figure.draw_without_rendering()
    return found


def assert_texts_stand_apart(figure: "Figure", monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails if a text leaves the figure or lies on another."""
    texts = drawn_texts(figure, monkeypatch)
    assert len(texts) > 3
    width, height = figure.canvas.get_width_height()
    for text, box in texts:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, f"{text!r} is cut"
    for (one, first), (other, second) in combinations(texts, 2):
        apart = first.x1 <= second.x0 or second.x1 <= first.x0 or first.y1 <= second.y0 or second.y1 <= first.y0
        assert apart, f"{one!r} lies on {other!r}"
