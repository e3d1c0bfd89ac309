"""`candor data map`: a picture of the sensors and of the way the water takes."""

from pathlib import Path
from typing import Annotated

import typer

from candor.cli import inputs
from candor.cli.screen import progress, say
from candor.core.errors import InputError

_ENDINGS = (".png", ".svg")


@inputs.takes_data
def draw_map(
    files: inputs.DataFiles,
    out: Annotated[Path, typer.Option("--out", help="Picture to write, e.g. map.png; PNG, SVG and CSV are written.")],
) -> None:
    """Draw the sensors of DATA with their names and the direction of their edges: PNG, SVG, and the edges as CSV."""
    if out.suffix not in _ENDINGS:
        raise InputError(
            f"a map is written as PNG and SVG, not as {out.suffix or 'a file without an ending'}",
            where=str(out),
            hint=f"end the name with {' or '.join(_ENDINGS)}",
        )
    panel, _ = files.load()
    with progress() as report:
        report("drawing the map", None)  # the first import of matplotlib looks for the fonts of the machine
        from candor.explain.places import picture_river_map
        from candor.render.figures.maps import draw_river_map

        written = draw_river_map(picture_river_map(panel)).write(out.parent, out.stem)
    say(", ".join(str(path) for path in written))
