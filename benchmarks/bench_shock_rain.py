"""Shock against rain, the test by circular shifts: all lags and shifts by FFT against a loop over them.

The loop ranks every series once and correlates pairs with NumPy, at a size that it can bear; both must find the same p.
Data: made-up activity and rain, 1,000 hours at 4 stations, 121 lags, 300 shifts. A third line shows the FFT at the size
of a basin: a year of hours, 14 stations, 5 horizons x 3 seeds, 20,000 shifts.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from candor.research.shock_rain import ModelActivity, compare_with_rain
from measure import cost_of, report

LAGS = range(-120, 121, 2)
HOURS, STATIONS, SHIFTS = 1_000, 4, 300
Numbers = NDArray[np.float64]


def made_up(hours: int, stations: int, horizons: int, seeds: int) -> tuple[list[ModelActivity], Numbers]:
    """Returns activity that follows the rain a little, two hours late, and rain in spells."""
    generator = np.random.default_rng(0)
    rain = np.where(generator.random((hours, stations)) < 0.05, generator.gamma(1.0, 2.0, (hours, stations)), 0.0)
    rain[:, :] += np.roll(rain, 1, axis=0) / 2
    checkpoints = []
    for horizon in range(horizons):
        for seed in range(seeds):
            activity = 0.1 * np.roll(rain, 2, axis=0) + generator.standard_normal((hours, stations))
            activity[generator.random(activity.shape) < 0.05] = np.nan
            checkpoints.append(ModelActivity("", horizon, seed, activity))
    return checkpoints, rain


def by_fft(hours: int, stations: int, horizons: int, seeds: int, shifts: int) -> float:
    """Returns p of candor's test."""
    return compare_with_rain(*made_up(hours, stations, horizons, seeds), LAGS, shifts).p


def by_loop(hours: int, stations: int, horizons: int, seeds: int, shifts: int) -> float:
    """Returns p of the same test, one shift, lag, model and station after the other."""
    checkpoints, rain = made_up(hours, stations, horizons, seeds)

    def ranked(series: Numbers) -> Numbers:
        ranks = rankdata(series, axis=0, nan_policy="omit")
        return np.pad(ranks, ((0, max(LAGS)), (0, 0)), constant_values=np.nan)

    activities, gauges = [ranked(checkpoint.activity) for checkpoint in checkpoints], ranked(rain)

    def statistic(shift: int) -> float:
        curves = np.zeros((horizons, len(LAGS)))
        for place, lag in enumerate(LAGS):
            turned = np.roll(gauges, shift + lag, axis=0)
            for checkpoint, activity in zip(checkpoints, activities, strict=True):
                for station in range(stations):
                    first, second = activity[:, station], turned[:, station]
                    known = ~(np.isnan(first) | np.isnan(second))
                    first, second = first[known] - first[known].mean(), second[known] - second[known].mean()
                    rho = (first @ second) / np.sqrt((first @ first) * (second @ second))
                    curves[checkpoint.horizon, place] += rho / (stations * seeds)
        return float(curves.max(axis=1).mean())

    happened = statistic(0)
    drawn = np.random.default_rng(0).choice(np.arange(1, len(gauges)), size=shifts)
    null = np.array([statistic(int(shift)) for shift in drawn])
    return float((np.count_nonzero(null >= happened - 1e-9) + 1) / (shifts + 1))


if __name__ == "__main__":
    size = (HOURS, STATIONS, 1, 1, SHIFTS)
    fast, slow = by_fft(*size), by_loop(*size)
    if fast != slow:
        raise SystemExit(f"the FFT finds p = {fast}, the loop p = {slow}")
    costs = {
        "by FFT": cost_of(by_fft, *size),
        "by loop": cost_of(by_loop, *size, repeats=1),
        "by FFT, a basin and 20,000 shifts": cost_of(by_fft, 8_760, 14, 5, 3, 20_000),
    }
    report(
        f"Shock against rain, {HOURS:,} hours, {STATIONS} stations, {SHIFTS} shifts, p = {fast:.4f} both ways",
        costs,
        {"times faster": costs["by loop"].seconds / costs["by FFT"].seconds},
    )
