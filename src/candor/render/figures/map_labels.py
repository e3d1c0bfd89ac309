"""Where the names on a map go: beside their places, never on one another, on a place or beyond the frame."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_DIRECTIONS = 24
_DETOURS = (0.0, 0.12, 0.3, 0.5, 0.8, 1.1, 1.5, 2.0, 2.6)  # inches between a place and its name
# What is worth how many inches of detour:
_COVERING = 8.0  # not to cover an inch of a line
_CROSSING = 0.4  # not to cross a line on the way from the place to its name
_DOUBT = 3.0  # to be an inch nearer to the own place than to any other
_SHARES = np.linspace(0, 1, 40)[:, None]  # points of a line at which it is looked at
_TRIES = 4

Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MapPage:
    """What names have to keep clear of, all in inches from the lower left corner.

    Args:
        frame: left, bottom, right and top of what may be written on.
        places: the places, place x 2.
        radius: of the mark at a place.
        lines: ends of the lines between places, line x 2 x 2; names avoid them where that costs little.
        gap: least distance between a name and anything else.
    """

    frame: tuple[float, float, float, float]
    places: Points
    radius: float
    lines: Points
    gap: float = 0.06


def place_labels(page: MapPage, sizes: Sequence[tuple[float, float]]) -> list[Points | None]:
    """Returns the middle of the name of every place, in inches; None where there is no room for it.

    Args:
        page: what is there already.
        sizes: width and height of each name, in inches.
    """
    order = _crowded_first(page.places)
    best: list[Points | None] = [None] * len(sizes)
    for _ in range(_TRIES):
        middles = _place_in_order(page, sizes, order)
        without = [index for index in order if middles[index] is None]
        if len(without) < sum(middle is None for middle in best):
            best = middles
        if not without:
            break
        order = without + [index for index in order if index not in without]  # they choose first next time
    return best


def _place_in_order(page: MapPage, sizes: Sequence[tuple[float, float]], order: list[int]) -> list[Points | None]:
    """Returns the middles of the names if every place takes the best that those before it left."""
    middles: list[Points | None] = [None] * len(sizes)
    done = _Done(np.empty((0, 4)), np.empty((0, 2)))
    lines = _along(page.lines[:, 0], page.lines[:, 1])
    for index in order:
        place, size, lowest = page.places[index], np.array(sizes[index]), np.inf
        for middle, detour in _candidates(place, size, page.radius + page.gap):
            if detour >= lowest:
                break  # they only get farther away
            box = np.concatenate([middle - size / 2, middle + size / 2])
            leader = _along(place, np.clip(place, box[:2], box[2:]))
            if _is_free(page, index, box, leader, done):
                cost = detour + _doubt(page.places, index, box) + _trouble(lines, box, leader)
                if cost < lowest:
                    lowest, middles[index], taken = cost, middle, (box, leader)
        if middles[index] is not None:
            done = done.and_also(*taken)
    return middles


@dataclass(frozen=True, eq=False)
class _Done:
    """The names that are placed: their boxes (left, bottom, right, top) and samples of the lines that lead to them."""

    boxes: Points
    leaders: Points

    def and_also(self, box: Points, leader: Points) -> "_Done":
        return _Done(np.vstack([self.boxes, box]), np.vstack([self.leaders, leader]))


def _crowded_first(places: Points) -> list[int]:
    """Returns the order in which places choose: those with near neighbours have the least choice."""
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    np.fill_diagonal(apart, np.inf)
    nearness = (1 / np.maximum(apart, 1e-3)).sum(axis=1)
    return [int(place) for place in np.argsort(-nearness, kind="stable")]


def _candidates(place: Points, size: Points, distance: float) -> Iterator[tuple[Points, float]]:
    """Yields middles around a place, and how far the name is from touching distance."""
    angles = 2 * np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # From the middle of a box to its rim in each direction.
    rims = np.min(size / 2 / np.maximum(np.abs(directions), 1e-9), axis=1)
    for detour in _DETOURS:
        for direction, rim in zip(directions, rims, strict=True):
            yield place + direction * (distance + detour + rim), detour


def _is_free(page: MapPage, index: int, box: Points, leader: Points, done: _Done) -> bool:
    left, bottom, right, top = page.frame
    if box[0] < left or box[1] < bottom or box[2] > right or box[3] > top:
        return False
    near, half = page.radius + page.gap, page.gap / 2
    if _inside(page.places, box, near).any() or _inside(done.leaders, box, half).any():
        return False
    if np.any(np.all((box[:2] < done.boxes[:, 2:] + half) & (done.boxes[:, :2] < box[2:] + half), axis=1)):
        return False
    marks = np.delete(page.places, index, axis=0)
    if np.any(np.abs(leader[:, None] - marks).max(axis=-1) < near):
        return False
    inside = (leader[:, None] > done.boxes[:, :2] - half) & (leader[:, None] < done.boxes[:, 2:] + half)
    return not np.any(np.all(inside, axis=-1))


def _doubt(places: Points, index: int, box: Points) -> float:
    """Returns what it costs that a name stands as near to another place as to its own, in inches of detour."""
    away = np.linalg.norm(places - np.clip(places, box[:2], box[2:]), axis=-1)
    nearest_other = np.delete(away, index).min(initial=np.inf)
    return _DOUBT * max(0.0, float(away[index] + 0.1 - nearest_other))


def _trouble(lines: Points, box: Points, leader: Points) -> float:
    """Returns what it costs that a name covers lines or its leader crosses them, in inches of detour."""
    steps = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=-1)
    covered = float((_inside(lines, box, 0.03).sum(axis=1) * steps).sum())
    start, end, place, rim = lines[:, 0], lines[:, -1], leader[0], leader[-1]
    is_between = _side(start, end, place) * _side(start, end, rim) < 0
    is_parted = _side(place, rim, start) * _side(place, rim, end) < 0
    return _COVERING * covered + _CROSSING * float((is_between & is_parted).sum())


def _side(start: Points, end: Points, point: Points) -> Points:
    """Returns on which side of the way from `start` to `end` points lie: the sign tells, zero is on it."""
    along, beside = end - start, point - start
    side: Points = along[..., 0] * beside[..., 1] - along[..., 1] * beside[..., 0]
    return side


def _along(start: Points, end: Points) -> Points:
    """Returns points on the way from `start` to `end`, ... x sample x 2."""
    points: Points = start[..., None, :] + _SHARES * (end - start)[..., None, :]
    return points


def _inside(points: Points, box: Points, room: float) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.all((points > box[:2] - room) & (points < box[2:] + room), axis=-1)
    return inside
