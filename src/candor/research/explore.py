"""What a model of a panel has to cope with: coexisting dynamics, delays along edges, likeness of distant sensors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.progress import Report, silent
from candor.core.text import sensor_label
from candor.data.panel import Panel
from candor.data.times import DAY
from candor.forecasting.explanation import find_sensor
from candor.graph import downstream_pairs, great_circle_km
from candor.research.dynamics import choose_stretch, find_dynamics, liveliest
from candor.research.patterns import deviations_of, lagged_correlations, pair_correlations, profiles_of, slots_of
from candor.research.rotation import Numbers

CLEAR = 0.1
"""Correlation from which on a peak can count as clear."""
_FALL = 0.05  # by which correlations must be lower somewhere on either side of a clear peak
_BEYOND_CHANCE = 3.5  # standard errors, that one of 49 lags of unrelated series has once in a hundred times
_LONGEST_LAG, _LONGEST_LAG_OF_DAYS = 24, 14  # steps
_LEAST_READINGS = 0.5  # share a sensor must have to be one of a pair
_MOST_SENSORS = 1_000  # whose pairs are compared
_FARTHEST = 0.9  # quantile of hops from which on sensors are distant if every two are connected
_LONGEST_LABEL = 34
_SENSORS_TRIED = 10  # to find one in which all dynamics coexist


@dataclass(frozen=True, eq=False)
class DynamicsPicture:
    """A stretch of one sensor's readings.

    Args:
        sensor: its label.
        unit: of readings and background.
        times: local times.
        readings: NaN where missing.
        background: what they move about slowly.
        is_rise: where they climb fast.
        is_fall: where they fall fast.
        is_shock: where they jump.
    """

    sensor: str
    unit: str
    times: Sequence[datetime]
    readings: NDArray[np.floating]
    background: NDArray[np.floating]
    is_rise: NDArray[np.bool_]
    is_fall: NDArray[np.bool_]
    is_shock: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LagPicture:
    """The peak lag of each edge.

    Args:
        source: ids of the sensors that edges leave.
        target: ids of those they lead to.
        distance: along the edges; None if unknown.
        distance_unit: its unit.
        lag: in steps, positive where the target follows the source.
        correlation: at that lag.
        is_clear: whether the peak is one to rely on.
        interval: of a step.
    """

    source: Sequence[str]
    target: Sequence[str]
    distance: NDArray[np.floating] | None
    distance_unit: str
    lag: NDArray[np.integer]
    correlation: NDArray[np.floating]
    is_clear: NDArray[np.bool_]
    interval: timedelta


@dataclass(frozen=True, eq=False)
class PairPicture:
    """What is usual at two distant sensors.

    Args:
        first: label of the one.
        second: label of the other.
        correlation: of their profiles.
        profiles: slot x 2, in standard deviations of each profile.
        slots: of the calendar: bins of the week, or weeks of the year.
        is_of_the_year: whether they are weeks of the year.
    """

    first: str
    second: str
    correlation: float
    profiles: NDArray[np.floating]
    slots: NDArray[np.integer]
    is_of_the_year: bool


@dataclass(frozen=True, eq=False)
class ExplorePicture:
    """All that the figure shows.

    Args:
        name: of the data.
        dynamics: of one sensor.
        lags: None if there are no edges.
        similar: the distant pair most alike; None if there is none.
        opposite: the distant pair least alike; None if there is no second pair.
        pairs: columns of the table of all distant pairs.
        has_no_path: whether distant means without a path; if not, the farthest tenth in hops.
        are_apart: whether pairs that are close on the map are left out.
    """

    name: str
    dynamics: DynamicsPicture
    lags: LagPicture | None
    similar: PairPicture | None
    opposite: PairPicture | None
    pairs: Mapping[str, Sequence[str] | NDArray[np.floating]]
    has_no_path: bool
    are_apart: bool


@dataclass(frozen=True, eq=False)
class EdgeLags:
    """For each edge of a panel, the lag in steps at which the ends' deviations correlate most, and how much they do.

    A positive lag means that the target follows the source. Lag 0 may be a common cause, such as rain on both. A peak
    is clear if it is beyond what chance makes of series that are related to themselves only, and if correlations fall
    on either side of it: those of slow series that share a season are high at every lag.
    """

    lag: NDArray[np.int64]
    correlation: Numbers
    is_clear: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class DistantPairs:
    """Pairs of sensors far from one another on the graph, the most alike first.

    Args:
        first: column of the one sensor.
        second: column of the other.
        profile: correlation of what is usual over the week (over the year for daily readings).
        deviation: correlation of the deviations from it.
        has_no_path: whether no path leads from either sensor to the other; if not, they are the farthest in hops.
        are_apart: whether those that are close on the map are left out; if not, places or edges are unknown.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    profile: Numbers
    deviation: Numbers
    has_no_path: bool
    are_apart: bool


def edge_lags(panel: Panel, longest: int | None = None, report: Report = silent) -> EdgeLags:
    """Returns the peak lags of the edges; that of an edge from a sensor to itself says nothing.

    Args:
        panel: readings and edges.
        longest: lag in steps, either way; None means 24, for daily readings 14.
        report: is told how far it has come.
    """
    if longest is None:
        longest = _LONGEST_LAG_OF_DAYS if panel.times.interval >= DAY else _LONGEST_LAG
    longest = min(longest, panel.times.length - 1)
    deviations, source, target = deviations_of(panel), panel.edges.source, panel.edges.target
    found = lagged_correlations(deviations, source, target, longest, report)
    known = np.where(np.isnan(found), -np.inf, found)
    place = known.argmax(axis=1)
    correlation = found[np.arange(len(found)), place]
    lags = np.arange(2 * longest + 1)
    falls = [
        np.where(is_side(lags, place[:, None]), np.nan_to_num(correlation[:, None] - found), 0.0).max(axis=1, initial=0)
        for is_side in (np.less, np.greater)
    ]
    least = np.maximum(CLEAR, _BEYOND_CHANCE * _standard_errors(deviations, source, target, longest))
    is_clear = (np.nan_to_num(correlation) >= least) & (np.minimum(*falls) >= _FALL)
    return EdgeLags(place - longest, correlation, is_clear)


def _standard_errors(
    deviations: Numbers, source: NDArray[np.integer], target: NDArray[np.integer], longest: int
) -> Numbers:
    """Returns the standard error of each edge's correlations if its ends were unrelated (Bartlett 1946).

    It is larger than that of independent readings by how much both ends resemble their own past.
    """
    every = np.arange(deviations.shape[1])
    own = np.nan_to_num(lagged_correlations(deviations, every, every, longest))
    memory = np.maximum((own[source] * own[target]).sum(axis=1), 1.0)
    known = ~np.isnan(deviations)
    pairs = [np.count_nonzero(known[:, one] & known[:, other]) for one, other in zip(source, target, strict=True)]
    return np.asarray(np.sqrt(memory / np.maximum(np.array(pairs, np.float64), 1.0)))


def distant_pairs(panel: Panel) -> DistantPairs:
    """Returns the pairs of sensors without a path between them; where every two have one, the farthest tenth by hops.

    Where places are known, pairs no farther apart than half of the edges are long are left out: two sensors in one
    place are not distant, whatever the graph says.
    """
    well_read = np.flatnonzero(panel.mask.mean(axis=0) >= _LEAST_READINGS)
    chosen = well_read[np.linspace(0, len(well_read) - 1, min(len(well_read), _MOST_SENSORS)).round().astype(int)]
    hops = _hops(panel)[np.ix_(chosen, chosen)]
    first, second = np.triu_indices(len(chosen), 1)
    apart = hops[first, second]
    has_no_path, near = bool(np.isinf(apart).any()), None
    if len(apart):
        is_distant = np.isinf(apart) if has_no_path else apart >= max(2.0, float(np.quantile(apart, _FARTHEST)))
        near = _are_near(panel, chosen[first], chosen[second])
        if near is not None:
            is_distant &= ~near
        first, second = first[is_distant], second[is_distant]
    profile = pair_correlations(profiles_of(panel)[0][:, chosen])[first, second]
    deviation = pair_correlations(deviations_of(panel)[:, chosen])[first, second]
    known = np.flatnonzero(~np.isnan(profile))
    order = known[np.argsort(-profile[known], kind="stable")]
    return DistantPairs(
        chosen[first[order]], chosen[second[order]], profile[order], deviation[order], has_no_path, near is not None
    )


def explore(
    panel: Panel, sensor: str | None = None, longest_lag: int | None = None, report: Report = silent
) -> ExplorePicture:
    """Returns the three parts of the figure.

    Args:
        panel: any panel with readings.
        sensor: whose dynamics are shown; None means a lively one with many readings.
        longest_lag: in steps, either way; None chooses by the interval.
        report: is told how far it has come.
    """
    if not panel.mask.any():
        raise InputError("there are no readings", where=panel.name, hint="give a record with readings")
    report("looking at one sensor", None)
    columns = liveliest(panel, deviations_of(panel), _SENSORS_TRIED) if sensor is None else [find_sensor(panel, sensor)]
    tried = (_picture_dynamics(panel, column) for column in columns)
    shows_all = (one for one in tried if one.is_rise.any() and one.is_fall.any() and one.is_shock.any())
    dynamics = next(shows_all, None) or _picture_dynamics(panel, columns[0])
    is_between_two = panel.edges.source != panel.edges.target
    lags = _picture_lags(panel, longest_lag, report) if is_between_two.any() else None
    report("comparing distant sensors", None)
    pairs = distant_pairs(panel)
    return ExplorePicture(
        name=panel.name,
        dynamics=dynamics,
        lags=lags,
        similar=_picture_pair(panel, pairs, 0) if len(pairs.first) else None,
        opposite=_picture_pair(panel, pairs, -1) if len(pairs.first) > 1 else None,
        pairs=_pair_table(panel, pairs),
        has_no_path=pairs.has_no_path,
        are_apart=pairs.are_apart,
    )


def _hops(panel: Panel) -> Numbers:
    """Returns the least edges from any sensor to any other, whichever of the two is downstream; inf without a path."""
    source, target = panel.edges.source, panel.edges.target
    begin, end, hops = downstream_pairs(source, target, np.ones(len(source)), len(panel.sensors))
    result = np.full((len(panel.sensors), len(panel.sensors)), np.inf)
    result[begin, end] = hops
    return np.asarray(np.minimum(result, result.T))


def _picture_dynamics(panel: Panel, column: int) -> DynamicsPicture:
    readings = panel.values[:, column]
    found = find_dynamics(readings, panel.times)
    rows = choose_stretch(readings, found, panel.times)
    return DynamicsPicture(
        sensor=_label(panel, column),
        unit=panel.sensors[column].unit,
        times=list(panel.times.slice(rows.start, rows.stop).local.to_pydatetime()),
        readings=readings[rows],
        background=found.background[rows],
        is_rise=found.is_rise[rows],
        is_fall=found.is_fall[rows],
        is_shock=found.is_shock[rows],
    )


def _picture_lags(panel: Panel, longest: int | None, report: Report) -> LagPicture:
    found = edge_lags(panel, longest, report)
    kept = (panel.edges.source != panel.edges.target) & ~np.isnan(found.correlation)
    edges, ids = panel.edges, panel.sensor_ids
    distance, unit = _distances(panel)
    return LagPicture(
        source=[ids[place] for place in edges.source[kept]],
        target=[ids[place] for place in edges.target[kept]],
        distance=None if distance is None else distance[kept],
        distance_unit=unit,
        lag=found.lag[kept],
        correlation=found.correlation[kept],
        is_clear=found.is_clear[kept],
        interval=panel.times.interval,
    )


def _distances(panel: Panel) -> tuple[NDArray[np.floating] | None, str]:
    """Returns the lengths of the edges and their unit: as given, else as the crow flies, else None."""
    edges = panel.edges
    if edges.distance is not None:
        return edges.distance, edges.distance_unit
    straight = _straight(panel, edges.source, edges.target)
    return (None, "") if np.isnan(straight).any() else (straight, "km, straight")


def _straight(panel: Panel, first: NDArray[np.integer], second: NDArray[np.integer]) -> Numbers:
    """Returns the straight distances of sensors in km, NaN where a place is unknown."""
    places = np.array([(sensor.latitude, sensor.longitude) for sensor in panel.sensors], np.float64)  # None is NaN
    return great_circle_km(*places[first].T, *places[second].T)


def _are_near(panel: Panel, first: NDArray[np.integer], second: NDArray[np.integer]) -> NDArray[np.bool_] | None:
    """Returns which pairs are no farther apart than half of the edges are long; None where that is not known."""
    lengths = _straight(panel, panel.edges.source, panel.edges.target)
    lengths = lengths[~np.isnan(lengths) & (panel.edges.source != panel.edges.target)]
    if not len(lengths):
        return None
    return np.asarray(_straight(panel, first, second) <= np.median(lengths))


def _picture_pair(panel: Panel, pairs: DistantPairs, place: int) -> PairPicture:
    columns = [int(pairs.first[place]), int(pairs.second[place])]
    profiles = profiles_of(panel)[0][:, columns]
    scores = (profiles - np.nanmean(profiles, axis=0)) / np.nanstd(profiles, axis=0)
    return PairPicture(
        first=_label(panel, columns[0]),
        second=_label(panel, columns[1]),
        correlation=float(pairs.profile[place]),
        profiles=scores,
        slots=np.unique(slots_of(panel.times)),
        is_of_the_year=panel.times.interval >= DAY,
    )


def _pair_table(panel: Panel, pairs: DistantPairs) -> dict[str, list[str] | Numbers]:
    ids = panel.sensor_ids
    return {
        "first": [ids[place] for place in pairs.first],
        "second": [ids[place] for place in pairs.second],
        "profile_correlation": pairs.profile,
        "deviation_correlation": pairs.deviation,
    }


def _label(panel: Panel, column: int) -> str:
    return sensor_label(panel.sensors[column].id, panel.sensors[column].name, _LONGEST_LABEL)
