"""Figures without their pictures: to paint one as PNG and as SVG takes longer than most tests do."""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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
