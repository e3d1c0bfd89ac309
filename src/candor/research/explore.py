"""What a model of a panel has to cope with: coexisting dynamics, delays along edges, likeness of distant sensors."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.core.arrays import Doubles
from candor.core.errors import InputError
from candor.core.progress import Report, silent
from candor.core.text import sensor_label
from candor.data.panel import Panel
from candor.data.times import DAY, TimeAxis
from candor.forecasting.explanation import find_sensor
from candor.graph import downstream_pairs, great_circle_km
from candor.research.patterns import (
    deviations_of,
    lagged_correlations,
    pair_correlations,
    profiles_of,
    slots_of,
)

_MONTH = 29  # days; odd, so that the middle is a day
_SLOPES_MARKED = 0.75  # quantile of the sizes of slopes from which on they are rises and falls
_ROBUST_DEVIATIONS = 6.0  # from which on a step is a shock
_MEDIAN_TO_DEVIATION = 1.4826  # of normal numbers
_MOST_MISSING = 0.1
_CLEAR = 0.1  # correlation from which on a peak can count as clear
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
    """A stretch of one sensor's readings with its label, unit and local times; `series` as of `find_dynamics`."""

    sensor: str
    unit: str
    times: Sequence[datetime]
    series: pd.DataFrame


@dataclass(frozen=True, eq=False)
class LagPicture:
    """The peak lag of each edge; those at which the target follows are positive."""

    table: pd.DataFrame  # from, to, distance, lag_steps, lag_hours, correlation, is_clear: whether to rely on it
    distance_unit: str | None  # None if distances are unknown
    interval: timedelta  # of a step


@dataclass(frozen=True, eq=False)
class PairPicture:
    """What is usual at two distant sensors."""

    first: str  # label of the one
    second: str  # label of the other
    correlation: float  # of their profiles
    profiles: NDArray[np.floating]  # slot x 2, in standard deviations of each profile
    slots: NDArray[np.integer]  # of the calendar: bins of the week, or weeks of the year
    is_of_the_year: bool  # whether they are weeks of the year


@dataclass(frozen=True, eq=False)
class DistantPairs:
    """Pairs of sensors far from one another on the graph, the most alike first."""

    table: pd.DataFrame  # first, second, profile_correlation (of what is usual), deviation_correlation
    has_no_path: bool  # between either two; if not, they are the farthest in hops
    are_apart: bool  # those close on the map are left out; if not, places or edges are unknown


@dataclass(frozen=True, eq=False)
class ExplorePicture:
    """All that the figure shows."""

    name: str  # of the data
    dynamics: DynamicsPicture  # of one sensor
    lags: LagPicture | None  # None if there are no edges
    similar: PairPicture | None  # the distant pair most alike; None if there is none
    opposite: PairPicture | None  # the distant pair least alike; None if there is no second pair
    pairs: DistantPairs  # all distant pairs, by the ids of their sensors


def explore(
    panel: Panel, sensor: str | None = None, longest_lag: int | None = None, report: Report = silent
) -> ExplorePicture:
    """Return the three parts of the figure.

    Args:
        panel: any panel with readings.
        sensor: whose dynamics are shown; None means a lively one with many readings.
        longest_lag: see `edge_lags`.
        report: progress callback.
    """
    if not panel.mask.any():
        raise InputError("there are no readings", where=panel.name, hint="give a record with readings")
    report("looking at one sensor", None)
    columns = _liveliest(panel, deviations_of(panel)) if sensor is None else [find_sensor(panel, sensor)]
    tried = (_picture_dynamics(panel, column) for column in columns)
    shows_all = (one for one in tried if one.series[["is_rise", "is_fall", "is_shock"]].any().all())
    dynamics = next(shows_all, None) or _picture_dynamics(panel, columns[0])
    is_between_two = panel.edges.source != panel.edges.target
    lags = _picture_lags(panel, longest_lag, report) if is_between_two.any() else None
    report("comparing distant sensors", None)
    pairs, ids = distant_pairs(panel), np.array(panel.sensor_ids, object)
    table = pairs.table.assign(**{end: ids[pairs.table[end].to_numpy()] for end in ("first", "second")})
    return ExplorePicture(
        name=panel.name,
        dynamics=dynamics,
        lags=lags,
        similar=_picture_pair(panel, pairs, 0) if len(table) else None,
        opposite=_picture_pair(panel, pairs, -1) if len(table) > 1 else None,
        pairs=DistantPairs(table, pairs.has_no_path, pairs.are_apart),
    )


def find_dynamics(readings: NDArray[np.floating], times: TimeAxis) -> pd.DataFrame:
    """Return what happens at one sensor by step, from its readings, NaN where missing, by plain statistics.

    reading     as given
    background  running median over a day (over 29 steps where a step is a day or longer)
    is_rise     the smoothed deviation from the background climbs fast: the quarter of steepest slopes, upward
    is_fall     the same, downward
    is_shock    the reading differs from the one before by more than 6 robust deviations of such differences
    """
    period = _MONTH if times.interval >= DAY else DAY // times.interval
    series = pd.Series(readings.astype(np.float64))
    background = series.rolling(period, center=True, min_periods=max(1, period // 4)).median()
    span = max(3, period // 12)
    smooth = (series - background).rolling(span, center=True, min_periods=(span + 1) // 2).mean()
    half = (span + 1) // 2
    slope = smooth.shift(-half) - smooth.shift(half)
    steep = max(_quantile(slope.abs(), _SLOPES_MARKED), 0.0)
    change = series.diff()
    middle = _quantile(change, 0.5)
    spread = _MEDIAN_TO_DEVIATION * _quantile((change - middle).abs(), 0.5)
    if spread == 0:  # rounded readings hardly ever change: fall back on the plain deviation
        spread = float(np.nan_to_num(change.std(ddof=0)))
    return pd.DataFrame(
        {
            "reading": readings,
            "background": background,
            "is_rise": slope > steep,
            "is_fall": slope < -steep,
            "is_shock": (change - middle).abs() > _ROBUST_DEVIATIONS * spread,
        }
    )


def _quantile(values: "pd.Series[float]", share: float) -> float:
    """Return a quantile of what is known, 0 where nothing is."""
    return float(np.nan_to_num(values.quantile(share)))


def _liveliest(panel: Panel, deviations: Doubles) -> list[int]:
    """Return columns of a few sensors, first those that deviate much from what is usual compared with how they jitter.

    They have 95 % of the most readings that a sensor has, or more.
    """
    counts = panel.mask.sum(axis=0)
    columns = np.flatnonzero(counts >= 0.95 * counts.max())
    ratios = []
    for column in columns.tolist():
        known = deviations[~np.isnan(deviations[:, column]), column]
        jitter = float(np.diff(known).std()) if len(known) > 1 else 0.0
        ratios.append(float(known.std()) / jitter if jitter > 0 else 0.0)
    order = np.argsort(-np.array(ratios), kind="stable")
    return [int(column) for column in columns[order[:_SENSORS_TRIED]]]


def choose_stretch(dynamics: pd.DataFrame, times: TimeAxis) -> slice:
    """Return the stretch in which all dynamics coexist: few gaps, and even the rarest of the three kinds often.

    It is 3 days of minutes, 10 days of hours or a year of days long.
    """
    length = len(dynamics)
    wanted = timedelta(days=3) if times.interval < timedelta(minutes=30) else timedelta(days=10)
    steps = min(length, 365 if times.interval >= DAY else wanted // times.interval)
    is_missing, kinds = dynamics["reading"].isna().to_numpy(), dynamics[["is_rise", "is_fall", "is_shock"]].to_numpy()
    shares = np.maximum(kinds.mean(axis=0), 1e-12)
    best, best_score = slice(0, steps), -np.inf
    for start in range(0, length - steps + 1, max(1, steps // 3)):
        rows = slice(start, start + steps)
        missing = float(is_missing[rows].mean())
        # More than half again as many as usual is no better: a stretch of nothing but shocks shows no coexistence.
        score = float(np.minimum(kinds[rows].mean(axis=0) / shares, 1.5).min())
        score -= 10 * max(missing - _MOST_MISSING, 0) + missing
        if score > best_score:
            best, best_score = rows, score
    return best


def _picture_dynamics(panel: Panel, column: int) -> DynamicsPicture:
    found = find_dynamics(panel.values[:, column], panel.times)
    rows = choose_stretch(found, panel.times)
    times = list(panel.times.slice(rows.start, rows.stop).local.to_pydatetime())
    return DynamicsPicture(_label(panel, column), panel.sensors[column].unit, times, found[rows])


def _label(panel: Panel, column: int) -> str:
    return sensor_label(panel.sensors[column].id, panel.sensors[column].name, _LONGEST_LABEL)


def edge_lags(panel: Panel, longest: int | None = None, report: Report = silent) -> pd.DataFrame:
    """Return for each edge the lag at which the ends' deviations correlate most: lag (steps), correlation, is_clear.

    A positive lag means that the target follows the source. Lag 0 may be a common cause, such as rain on both. A peak
    is clear if it is beyond what chance makes of series that are related to themselves only, and if correlations fall
    on either side of it: those of slow series that share a season are high at every lag. The lag of an edge from a
    sensor to itself says nothing.

    Args:
        panel: readings and edges.
        longest: lag in steps, either way; None means 24, for daily readings 14.
        report: progress callback.
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
    least = np.maximum(_CLEAR, _BEYOND_CHANCE * _standard_errors(deviations, source, target, longest))
    is_clear = (np.nan_to_num(correlation) >= least) & (np.minimum(*falls) >= _FALL)
    return pd.DataFrame({"lag": place - longest, "correlation": correlation, "is_clear": is_clear})


def _standard_errors(
    deviations: Doubles, source: NDArray[np.integer], target: NDArray[np.integer], longest: int
) -> Doubles:
    """Return the standard error of each edge's correlations if its ends were unrelated (Bartlett 1946).

    It is larger than that of independent readings by how much both ends resemble their own past.
    """
    every = np.arange(deviations.shape[1])
    own = np.nan_to_num(lagged_correlations(deviations, every, every, longest))
    memory = np.maximum((own[source] * own[target]).sum(axis=1), 1.0)
    known = ~np.isnan(deviations)
    pairs = [np.count_nonzero(known[:, one] & known[:, other]) for one, other in zip(source, target, strict=True)]
    return np.asarray(np.sqrt(memory / np.maximum(np.array(pairs, np.float64), 1.0)))


def _picture_lags(panel: Panel, longest: int | None, report: Report) -> LagPicture:
    found, edges, ids = edge_lags(panel, longest, report), panel.edges, np.array(panel.sensor_ids, object)
    given, straight = edges.distance, _straight(panel, edges.source, edges.target)
    is_known = given is not None or not np.isnan(straight).any()
    unit = edges.distance_unit if given is not None else "km, straight"
    table = pd.DataFrame(
        {
            "from": ids[edges.source],
            "to": ids[edges.target],
            "distance": np.nan if not is_known else straight if given is None else given,
            "lag_steps": found["lag"],
            "lag_hours": found["lag"] * (panel.times.interval / timedelta(hours=1)),
            "correlation": found["correlation"],
            "is_clear": found["is_clear"],
        }
    )
    kept = (edges.source != edges.target) & found["correlation"].notna().to_numpy()
    return LagPicture(table[kept], unit if is_known else None, panel.times.interval)


def _straight(panel: Panel, first: NDArray[np.integer], second: NDArray[np.integer]) -> Doubles:
    """Return the straight distances of sensors in km, NaN where a place is unknown."""
    places = np.array([(sensor.latitude, sensor.longitude) for sensor in panel.sensors], np.float64)  # None is NaN
    return great_circle_km(*places[first].T, *places[second].T)


def distant_pairs(panel: Panel) -> DistantPairs:
    """Return the pairs of sensors without a path between them; where every two have one, the farthest tenth by hops.

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
    table = pd.DataFrame(
        {
            "first": chosen[first],
            "second": chosen[second],
            "profile_correlation": pair_correlations(profiles_of(panel)[0][:, chosen])[first, second],
            "deviation_correlation": pair_correlations(deviations_of(panel)[:, chosen])[first, second],
        }
    )
    known = table.dropna(subset="profile_correlation")
    table = known.sort_values("profile_correlation", ascending=False, kind="stable", ignore_index=True)
    return DistantPairs(table, has_no_path, near is not None)


def _hops(panel: Panel) -> Doubles:
    """Return the least edges from any sensor to any other, whichever of the two is downstream; inf without a path."""
    source, target = panel.edges.source, panel.edges.target
    begin, end, hops = downstream_pairs(source, target, np.ones(len(source)), len(panel.sensors))
    result = np.full((len(panel.sensors), len(panel.sensors)), np.inf)
    result[begin, end] = hops
    return np.asarray(np.minimum(result, result.T))


def _are_near(panel: Panel, first: NDArray[np.integer], second: NDArray[np.integer]) -> NDArray[np.bool_] | None:
    """Return which pairs are no farther apart than half of the edges are long; None where that is not known."""
    lengths = _straight(panel, panel.edges.source, panel.edges.target)
    lengths = lengths[~np.isnan(lengths) & (panel.edges.source != panel.edges.target)]
    if not len(lengths):
        return None
    return np.asarray(_straight(panel, first, second) <= np.median(lengths))


def _picture_pair(panel: Panel, pairs: DistantPairs, place: int) -> PairPicture:
    columns = [int(pairs.table[end].iloc[place]) for end in ("first", "second")]
    profiles = profiles_of(panel)[0][:, columns]
    return PairPicture(
        first=_label(panel, columns[0]),
        second=_label(panel, columns[1]),
        correlation=float(pairs.table["profile_correlation"].iloc[place]),
        profiles=(profiles - np.nanmean(profiles, axis=0)) / np.nanstd(profiles, axis=0),
        slots=np.unique(slots_of(panel.times)),
        is_of_the_year=panel.times.interval >= DAY,
    )
