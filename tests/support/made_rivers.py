"""Rivers made for tests. Those along the equator have lengths that a pencil can check."""

import math
from dataclasses import dataclass
from typing import Any

DEGREE = 6378.137 * math.pi / 180  # km of a degree of longitude on the equator of GRS 80


@dataclass(frozen=True)
class Reach:
    """A flowline: its points from upstream to downstream, and the number of the one that the main path takes next."""

    comid: int
    points: tuple[tuple[float, float], ...]
    below: int | None = None

    @property
    def length(self) -> float:
        """Kilometres, as straight lines on a sphere: near enough to stop a walk."""
        steps = zip(self.points, self.points[1:], strict=False)
        return sum(DEGREE * math.dist(one, other) for one, other in steps)

    def feature(self) -> dict[str, Any]:
        """Returns the flowline as the index sends it."""
        geometry = {"type": "LineString", "coordinates": [list(point) for point in self.points]}
        return {"type": "Feature", "geometry": geometry, "properties": {"nhdplus_comid": str(self.comid)}}


def straight(*comids: int, west: float = 0.0, step: float = 0.5) -> list[Reach]:
    """Returns a river that flows east along the equator, one reach after the other, each `step` degrees long."""
    places = [west + step * number for number in range(len(comids) + 1)]
    below = [*comids[1:], None]
    return [
        Reach(comid, ((places[i], 0.0), ((places[i] + places[i + 1]) / 2, 0.0), (places[i + 1], 0.0)), below[i])
        for i, comid in enumerate(comids)
    ]


def main_path(reaches: dict[int, Reach], comid: int, distance: float) -> list[Reach]:
    """Returns the flowlines of the main path downstream, counted from the upper end of the first; a circle ends it."""
    path: list[Reach] = []
    walked, here = 0.0, reaches.get(comid)
    while here is not None and walked <= distance and here not in path:
        path.append(here)
        walked += here.length
        here = reaches.get(here.below) if here.below is not None else None
    return path
