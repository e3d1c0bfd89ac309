"""The drawing function of every kind of picture of an explanation."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from candor.core.progress import Report, silent
from candor.explain import pictures
from candor.explain.pictures import AnyPicture
from candor.render.figures import forecast, learned, maps
from candor.render.figures.style import Drawing

FIGURES = "figures"
_DRAWN_BY: Mapping[type, Callable[[Any], Drawing]] = {
    pictures.ForecastPicture: forecast.draw_forecast,
    pictures.BreakdownPicture: forecast.draw_breakdown,
    pictures.ComponentPicture: forecast.draw_components,
    pictures.ReconstructionPicture: forecast.draw_reconstruction,
    pictures.ArrivalPicture: forecast.draw_arrivals,
    pictures.PeerPicture: forecast.draw_peers,
    pictures.BranchPicture: forecast.draw_branches,
    pictures.FusionPicture: learned.draw_fusion,
    pictures.EdgePicture: maps.draw_edges,
    pictures.OperatorPicture: learned.draw_operator,
    pictures.RelationPicture: maps.draw_relations,
    pictures.EmbeddingPicture: learned.draw_embedding,
    pictures.PropagationPicture: learned.draw_propagation,
    pictures.RolePicture: learned.draw_roles,
    pictures.TrainingPicture: learned.draw_training,
    pictures.RiverMapPicture: maps.draw_river_map,
}


def draw(picture: AnyPicture) -> Drawing:
    """Return the figure of a picture with its numbers."""
    return _DRAWN_BY[type(picture)](picture)


def write_figures(found: Mapping[str, AnyPicture], folder: Path, report: Report = silent) -> list[Path]:
    """Draw pictures into files by their names: PNG, SVG, and the numbers as CSV; return what was written."""
    written: list[Path] = []
    for done, (name, picture) in enumerate(found.items()):
        report(f"drawing {name}", done / len(found))
        written += draw(picture).write(folder, name)
    return written
