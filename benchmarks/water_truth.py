"""How well simple methods find the shocks and delays of a water network.

python benchmarks/water_truth.py --seeds 0,1,2 [--network Net3]
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from candor.core.arrays import Booleans, Doubles
from candor.data.panel import Panel
from candor.data.water import WaterTruth, generate_water_network
from candor.research.truth.rules import over_patches, usual_readings
from candor.research.truth.scores import area_under_curve, rank_correlation

PATCH = 4  # readings, an hour
LONGEST = 30  # lag that is tried, in steps
CLIP = 8.0  # robust spreads
ORDER = 2  # of the autoregression that whitens
OWN_LAGS, AROUND = 3, 3  # readings of the sensor itself, and of its senders before and after the delay that was found
ROUNDS = 5  # of the robust regression
TRAIN, TEST = 0.6, 0.8  # shares of the record at which the training part ends and the test part begins

Lags = NDArray[np.int64]


def spread_of(series: Doubles) -> Doubles:
    """Returns the robust standard deviation of each column."""
    spread: Doubles = 1.4826 * np.median(np.abs(series - np.median(series, axis=0)), axis=0) + 1e-12
    return spread


def innovations_of(residuals: Doubles, end: int) -> Doubles:
    """Returns what an autoregression that is fitted before `end` leaves, in robust spreads."""
    found = np.zeros_like(residuals)
    for sensor, series in enumerate(residuals.T):
        past = np.stack([series[ORDER - lag : len(series) - lag] for lag in range(1, ORDER + 1)], axis=1)
        known, ahead = past[: end - ORDER], series[ORDER:end]
        ridge = 1e-6 * len(known) * series.var() * np.eye(ORDER)
        found[ORDER:, sensor] = series[ORDER:] - past @ np.linalg.solve(known.T @ known + ridge, known.T @ ahead)
    return found / spread_of(found[ORDER:end])


def delays_of(innovations: Doubles, panel: Panel, end: int) -> Lags:
    """Returns the lag of the largest mean product of what is new at both ends of each edge."""
    clipped, edges = innovations[:end].clip(-CLIP, CLIP), panel.edges
    products = [
        (clipped[:-lag, edges.source] * clipped[lag:, edges.target]).mean(axis=0) for lag in range(1, LONGEST + 1)
    ]
    return np.argmax(products, axis=0) + 1


def less_arrivals(residuals: Doubles, panel: Panel, delays: Lags, end: int) -> Doubles:
    """Returns what robust regressions on the own past and on that of the senders leave, in robust spreads."""
    found, begin = np.zeros_like(residuals), LONGEST + AROUND
    for sensor, series in enumerate(residuals.T):
        read = [(sensor, lag) for lag in range(1, OWN_LAGS + 1)]
        for edge in np.flatnonzero(panel.edges.target == sensor):
            lags = range(max(delays[edge] - AROUND, 0), delays[edge] + AROUND + 1)
            read += [(int(panel.edges.source[edge]), lag) for lag in lags]
        inputs = np.stack([residuals[begin - lag : len(series) - lag, source] for source, lag in read], axis=1)
        known, ahead = inputs[: end - begin], series[begin:end]
        weights = np.ones(len(known))
        for _ in range(ROUNDS):
            product = (known * weights[:, None]).T
            ridge = 1e-4 * np.trace(product @ known) / len(read) * np.eye(len(read))
            left = series[begin:] - inputs @ np.linalg.solve(product @ known + ridge, product @ ahead)
            spread = spread_of(left[: len(known)])
            weights = 1 / np.maximum(1, np.abs(left[: len(known)]) / (3 * spread))
        found[begin:, sensor] = left / spread
    return found


def rises(series: Doubles) -> Doubles:
    """Returns by how much each column rose since the step before."""
    return np.maximum(np.diff(series, axis=0, prepend=series[:1]), 0)


def report(panel: Panel, truth: WaterTruth) -> None:
    """Prints the scores of one network."""
    end, test = (int(share * len(panel.values)) for share in (TRAIN, TEST))
    residuals = panel.values - usual_readings(panel, end)
    innovations = innovations_of(residuals, end)
    found = delays_of(innovations, panel, end)
    left = less_arrivals(residuals, panel, found, end)
    starts = np.arange(test - test % PATCH, len(residuals) - PATCH, PATCH)
    injected = np.zeros(residuals.shape)
    injected[truth.shocks.time, truth.shocks.sensor] = 1
    is_shocked: Booleans = over_patches(injected, starts, PATCH).max(axis=1) > 0
    answers = {
        "largest change": np.diff(residuals, axis=0, prepend=residuals[:1]) / residuals[:end].std(axis=0),
        "innovations": innovations,
        "less arrivals": left,
        "less arrivals, rises only": np.maximum(left, 0),
        "rises of true shock and noise": rises(truth.components["shock"].astype(float) + truth.components["noise"]),
    }
    print(f"  shocks in {np.count_nonzero(is_shocked)} of {is_shocked.size} hours, AUROC:")
    for name, answer in answers.items():
        score = area_under_curve(is_shocked, np.abs(over_patches(answer, starts, PATCH)).max(axis=1))
        print(f"    {name:30} {score:.3f}")
    fast, slow = truth.travel_range.T
    rank = rank_correlation(truth.delays.astype(float), found.astype(float))
    misses = np.abs(found - truth.delays)
    in_range = ((found >= fast - 0.5) & (found <= slow + 0.5)).mean()
    print(f"  delays of {len(found)} edges: rank correlation {rank:.2f}")
    print(f"    exact {(misses == 0).mean():.2f}, within one {(misses <= 1).mean():.2f}, in range {in_range:.2f}")


def main() -> None:
    """Reads the arguments and prints the scores of every seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="Net3", help="one that ships with wntr, or an .inp file")
    parser.add_argument("--seeds", default="0,1,2", help="with commas")
    arguments = parser.parse_args()
    for seed in arguments.seeds.split(","):
        print(f"{arguments.network}, seed {seed}")
        report(*generate_water_network(arguments.network, int(seed)))


if __name__ == "__main__":
    main()
