"""Where names go in any figure: beside their marks, never on one another, on a mark or beyond the frame."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text
from numpy.typing import NDArray

from candor.render.figures import style

Points = NDArray[np.float64]
_ANGLES = 2 * np.pi * np.arange(24) / 24
_DIRECTIONS = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
_DETOURS = (0.0, 0.12, 0.3, 0.5, 0.8, 1.1, 1.5, 2.0, 2.6)  # inches between a mark and its name
_ROUNDS, _TRIES = 4, 4
_MARGIN, _LEAST_LEADER = 0.05, 0.1  # inches: beside the frame, and from which length on a leader is drawn
# What is worth how many inches of detour:
_COVERING = 8.0  # not to cover an inch of a line
_CROSSING = 0.4  # not to cross a line on the way from the mark to its name
_DOUBT = 3.0  # to be an inch nearer to the own mark than to any other
# What must not happen, and how bad each of it is where there is no other place:
_BREACH = 1000.0
_OUTSIDE, _ON_NAME, _ON_MARK, _LEADER_ON_MARK = 4.0, 2.0, 1.0, 0.25


@dataclass(frozen=True, eq=False)
class LabelPage:
    """What names have to keep clear of, all in inches from the lower left corner."""

    frame: tuple[float, float, float, float]  # left, bottom, right and top of what may be written on
    places: Points  # middles of the marks, mark x 2
    radii: Points  # of the marks
    lines: Points  # their ends, line x 2 x 2; names avoid lines where that costs little
    gap: float  # least distance between a name and anything else


@dataclass(frozen=True, eq=False)
class _Options:
    """Places that a name can take, and what is wrong with each, other names aside."""

    boxes: Points  # option x 4: left, bottom, right, top
    leaders: Points  # ends of the way from the mark to the name, option x 2 x 2
    breaches: Points
    costs: Points

    def take(self, option: int) -> "_Options":
        chosen = slice(option, option + 1)
        return _Options(self.boxes[chosen], self.leaders[chosen], self.breaches[chosen], self.costs[chosen])

    def beside(self, others: Sequence["_Options"], gap: float) -> tuple[Points, Points]:
        """Return breaches and costs of every option where other names stand already."""
        if not others:
            return self.breaches, self.costs
        boxes, leaders = (np.concatenate([getattr(one, part) for one in others]) for part in ("boxes", "leaders"))
        own, half = self.boxes[:, None], gap / 2
        is_on_name = ((own[..., :2] < boxes[:, 2:] + half) & (boxes[:, :2] < own[..., 2:] + half)).all(axis=-1)
        is_on_name |= (_share_inside(leaders, own, half) > 0) | (_share_inside(self.leaders[:, None], boxes, half) > 0)
        crossed = _do_cross(self.leaders[:, None], leaders).sum(axis=1)
        return self.breaches + _ON_NAME * is_on_name.sum(axis=1), self.costs + _CROSSING * crossed


def place_labels(
    page: LabelPage, sizes: Sequence[tuple[float, float]], *, is_strict: bool = True
) -> list[Points | None]:
    """Return the middle of the name of every mark, in inches; None where it is left out.

    Every name takes its best option, several times, since those after it may make way.

    Args:
        page: what is there already.
        sizes: width and height of each name, in inches.
        is_strict: whether a name is left out rather than that it covers something.
    """
    options = [_options(page, place, np.array(size)) for place, size in enumerate(sizes)]
    order = _crowded_first(page.places)
    best: dict[int, int] = {}
    for _ in range(_TRIES):
        chosen = _settle(options, order, page.gap, is_strict)
        if len(chosen) > len(best):
            best = chosen
        if len(chosen) == len(options):
            break
        order = sorted(order, key=lambda place: place in chosen)  # who was left out chooses first next time
    boxes = (options[place].boxes[best[place]] if place in best else None for place in range(len(options)))
    return [None if box is None else (box[:2] + box[2:]) / 2 for box in boxes]


def _settle(options: Sequence[_Options], order: Sequence[int], gap: float, is_strict: bool) -> dict[int, int]:
    """Return the option that each name takes if they choose in this order, until none makes way any more."""
    chosen: dict[int, int] = {}
    for _ in range(_ROUNDS):
        before = dict(chosen)
        for place in order:
            chosen.pop(place, None)
            others = [options[other].take(option) for other, option in chosen.items()]
            breaches, costs = options[place].beside(others, gap)
            option = int(np.argmin(_BREACH * breaches + costs))
            if not is_strict or not breaches[option]:
                chosen[place] = option
        if chosen == before:
            break
    return chosen


def write_labels(
    axes: Axes,
    texts: Sequence[Text],
    points: Points,
    radii: Points,
    lines: Points,
    *,
    bottom: float = _MARGIN,
    gap: float = 0.06,
    is_strict: bool = True,
) -> bool:
    """Move texts beside their marks, with a thin line where that is far, and return whether there was room for all.

    Args:
        axes: where they stand; the layout of the figure must be settled.
        texts: one for each mark, centred; those without room are removed if `is_strict`.
        points: middles of the marks in data coordinates, mark x 2.
        radii: of the marks, in inches.
        lines: ends of lines in data coordinates, line x 2 x 2.
        bottom: inches at the foot of the axes that are not written on.
        gap: least distance between a name and anything else, in inches.
        is_strict: whether a name is left out rather than that it covers something.
    """
    window = axes.get_window_extent()
    width, height = np.array(window.size) / style.DOTS_PER_INCH

    def in_inches(data: Points) -> Points:
        dots = axes.transData.transform(data.reshape(-1, 2)) - window.min
        return np.asarray(dots.reshape(data.shape) / style.DOTS_PER_INCH)

    sizes = [tuple(np.array(text.get_window_extent().size) / style.DOTS_PER_INCH) for text in texts]
    frame = (_MARGIN, bottom, width - _MARGIN, height - _MARGIN)
    page = LabelPage(frame, in_inches(points), radii, in_inches(lines), gap)
    middles = place_labels(page, sizes, is_strict=is_strict)
    for text, size, place, radius, middle in zip(texts, sizes, page.places, radii, middles, strict=True):
        if middle is None:
            text.remove()
            continue
        rim = np.clip(place, middle - np.array(size) / 2, middle + np.array(size) / 2)
        length = float(np.linalg.norm(rim - place))
        start = place + (rim - place) * min(radius / max(length, 1e-9), 1.0)
        ends = np.stack([middle, start, rim]) * style.DOTS_PER_INCH + window.min
        (across, up), *leader = axes.transData.inverted().transform(ends)
        text.set_position((across, up))
        if length - radius > _LEAST_LEADER:
            axes.plot(*np.transpose(leader), color=style.GREY, linewidth=0.7, zorder=2.5)
    return all(middle is not None for middle in middles)


def _crowded_first(places: Points) -> list[int]:
    """Return the order in which marks choose: those with near neighbours have the least choice."""
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    np.fill_diagonal(apart, np.inf)
    return [int(place) for place in np.argsort(-(1 / np.maximum(apart, 1e-3)).sum(axis=1), kind="stable")]


def _options(page: LabelPage, place: int, size: Points) -> _Options:
    """Return all places that the name of a mark can take, in all directions and at all detours."""
    spot, near = page.places[place], page.radii + page.gap - 1e-9
    detours, directions = np.repeat(_DETOURS, len(_DIRECTIONS)), np.tile(_DIRECTIONS, (len(_DETOURS), 1))
    # From the middle of a box to its rim in each direction.
    rims = np.min(size / 2 / np.maximum(np.abs(directions), 1e-9), axis=1)
    middles = spot + directions * (page.radii[place] + page.gap + detours + rims)[:, None]
    boxes = np.concatenate([middles - size / 2, middles + size / 2], axis=1)
    rim = np.clip(spot, boxes[:, :2], boxes[:, 2:])
    leaders = np.stack([np.broadcast_to(spot, rim.shape), rim], axis=1)
    is_outside = (boxes[:, :2] < page.frame[:2]).any(axis=1) | (boxes[:, 2:] > page.frame[2:]).any(axis=1)
    room, marks = near[:, None], page.places
    is_covered = ((marks > boxes[:, None, :2] - room) & (marks < boxes[:, None, 2:] + room)).all(axis=-1)
    is_crossed = _share_inside(leaders[:, None], np.concatenate([marks, marks], axis=1), room) > 0
    is_crossed[:, place] = False
    breaches = _OUTSIDE * is_outside + _ON_MARK * is_covered.sum(axis=1) + _LEADER_ON_MARK * is_crossed.sum(axis=1)
    away = np.linalg.norm(marks - np.clip(marks, boxes[:, None, :2], boxes[:, None, 2:]), axis=-1)
    away -= page.radii
    nearest_other = np.delete(away, place, axis=1).min(axis=1, initial=np.inf)
    doubt = np.maximum(away[:, place] + 0.1 - nearest_other, 0.0)
    lengths = np.linalg.norm(page.lines[:, 1] - page.lines[:, 0], axis=-1)
    over = (_share_inside(page.lines, boxes[:, None], 0.03) * lengths).sum(axis=1)
    crossed = _do_cross(leaders[:, None], page.lines).sum(axis=1)
    return _Options(boxes, leaders, breaches, detours + _DOUBT * doubt + _COVERING * over + _CROSSING * crossed)


def _do_cross(one: Points, other: Points) -> NDArray[np.bool_]:
    """Return whether straight lines, given by their ends, cross each other."""
    a, b, c, d = one[..., 0, :], one[..., 1, :], other[..., 0, :], other[..., 1, :]
    crosses: NDArray[np.bool_] = (_side(a, b, c) * _side(a, b, d) < 0) & (_side(c, d, a) * _side(c, d, b) < 0)
    return crosses


def _side(start: Points, end: Points, point: Points) -> Points:
    """Return on which side of the way from `start` to `end` points lie: the sign tells, zero is on it."""
    along, beside = end - start, point - start
    side: Points = along[..., 0] * beside[..., 1] - along[..., 1] * beside[..., 0]
    return side


def _share_inside(lines: Points, boxes: Points, room: float | Points) -> Points:
    """Return which share of straight lines, given by their ends, is nearer to boxes than `room`."""
    start, way = lines[..., 0, :], lines[..., 1, :] - lines[..., 0, :]
    way = np.where(np.abs(way) < 1e-12, 1e-12, way)
    enters, leaves = (boxes[..., :2] - room - start) / way, (boxes[..., 2:] + room - start) / way
    first = np.minimum(enters, leaves).max(axis=-1).clip(min=0.0)
    last = np.maximum(enters, leaves).min(axis=-1).clip(max=1.0)
    share: Points = (last - first).clip(min=0.0)
    return share
