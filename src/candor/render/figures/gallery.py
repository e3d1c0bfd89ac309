"""The drawing function of every kind of picture of an explanation."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from candor.core.progress import Report, silent
from candor.explain import pictures
from candor.explain.pictures import Picture
from candor.render.figures.embedding import draw_embedding
from candor.render.figures.forecast import draw_branches, draw_components, draw_forecast, draw_reconstruction
from candor.render.figures.fusion import draw_fusion
from candor.render.figures.network_map import draw_edges, draw_relations
from candor.render.figures.operator import draw_operator
from candor.render.figures.propagation import draw_propagation
from candor.render.figures.river_map import draw_river_map
from candor.render.figures.roles import draw_roles
from candor.render.figures.senders import draw_arrivals, draw_peers
from candor.render.figures.style import Drawing
from candor.render.figures.training import draw_training

FIGURES = "figures"
_DRAWN_BY: Mapping[type, Callable[[Any], Drawing]] = {
    pictures.ForecastPicture: draw_forecast,
    pictures.ComponentPicture: draw_components,
    pictures.ReconstructionPicture: draw_reconstruction,
    pictures.ArrivalPicture: draw_arrivals,
    pictures.PeerPicture: draw_peers,
    pictures.BranchPicture: draw_branches,
    pictures.FusionPicture: draw_fusion,
    pictures.EdgePicture: draw_edges,
    pictures.OperatorPicture: draw_operator,
    pictures.RelationPicture: draw_relations,
    pictures.EmbeddingPicture: draw_embedding,
    pictures.PropagationPicture: draw_propagation,
    pictures.RolePicture: draw_roles,
    pictures.TrainingPicture: draw_training,
    pictures.RiverMapPicture: draw_river_map,
}


def draw(picture: Picture) -> Drawing:
    """Returns the figure of a picture with its numbers."""
    return _DRAWN_BY[type(picture)](picture)


def write_figures(found: Mapping[str, Picture], folder: Path, report: Report = silent) -> list[Path]:
    """Draws pictures into files by their names: PNG, SVG, and the numbers as CSV; returns what was written."""
    written: list[Path] = []
    for done, (name, picture) in enumerate(found.items()):
        report(f"drawing {name}", done / len(found))
        written += draw(picture).write(folder, name)
    return written
