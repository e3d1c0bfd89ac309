"""How much the branches count: over all sensors, windows and target patches, by the clock, and over the horizon.

Fusion looks at the sensor, the calendar at the start of the target patch and its place in the horizon, never at
readings. So its weights are found without the rest of the network, over many more windows than other states.
"""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from candor.core.progress import Report, silent
from candor.core.text import duration, rounded_percent
from candor.data.panel import Panel
from candor.data.protocol import Origins, Split
from candor.data.times import DAY
from candor.data.windows import Windows
from candor.explain.finding import Finding
from candor.forecasting.inference import infer
from candor.nets.candor.trainable import CandorTrainable
from candor.render.figures.allocation import CLOCKS, AllocationPicture, Group, draw_allocation
from candor.training.batches import spread_evenly

NAME, TITLE = "fusion", "How much does each branch count, and when?"
MOST_WINDOWS = 2_000
_WORDS = {
    "functional": "own past and sensors alike",
    "forward": "along the edges",
    "reverse": "against the edges",
}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
Weights = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FusionWeights:
    """Fusion weights over windows.

    Args:
        weights: by branch, window x sensor x target patch; over branches they sum to one.
        starts: local times at which the target patches begin, window x target patch.
        ahead: steps from the last reading to the beginning of each target patch, at least one.
        interval: of the steps.
        reads_season: whether weights depend on the week of the year; else months differ by chance alone.
    """

    weights: dict[str, Weights]
    starts: list[pd.DatetimeIndex]
    ahead: tuple[int, ...]
    interval: timedelta
    reads_season: bool = False


def fusion_origins(split: Split, origins: Origins) -> Origins:
    """Returns windows for fusion, evenly spread over the part that other windows are of."""
    parts = (split.test, split.validation, split.train)
    own = next((part for part in parts if len(part)), origins)
    return own[spread_evenly(len(own), MOST_WINDOWS)]


def fusion_weights(
    trainable: CandorTrainable, windows: Windows, panel: Panel, report: Report = silent
) -> FusionWeights:
    """Returns the weights of all branches at the target patches of windows."""
    settings = trainable.network.settings
    targets = torch.tensor(settings.target_starts)
    names = ("time_of_day", "day_of_week", "week_of_year") if settings.season else ("time_of_day", "day_of_week")

    def weights_of(replica: CandorTrainable, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        network = replica.network
        return network.fusion.weights(network.decomposition.nodes.weight, *(batch[name][:, targets] for name in names))

    whole = torch.cat(list(infer(trainable, windows, weights_of, report, "reading fusion weights"))).numpy()
    # whole: window sensor target branch
    ahead = np.array(settings.target_starts) - settings.history
    last = int(windows.origins.max()) + settings.horizon
    times = panel.times.slice(0, last).local
    return FusionWeights(
        weights={branch: whole[..., place] for place, branch in enumerate(settings.branches)},
        starts=[times[windows.origins + offset] for offset in ahead],
        ahead=tuple(int(max(offset, 0)) + 1 for offset in ahead),
        interval=panel.times.interval,
        reads_season=settings.season,
    )


def find_fusion(found: FusionWeights, *, is_learned: bool) -> Finding:
    """Returns how much the branches count.

    Args:
        found: the weights.
        is_learned: whether the network learns them.
    """
    if len(found.weights) == 1:
        (branch,) = found.weights
        sentence = f"This network has one branch, {branch} ({_WORDS[branch]}): it counts for everything."
        return Finding(NAME, TITLE, (sentence,))
    if not is_learned:
        share = rounded_percent(1 / len(found.weights))
        sentence = f"This network does not learn how much its branches count: each has {share} everywhere."
        return Finding(NAME, TITLE, (sentence,), {branch: {"mean": 1 / len(found.weights)} for branch in found.weights})
    groups = group_weights(found)
    overall = spreads(found)
    sentences = [
        f"{branch.capitalize()} ({_WORDS[branch]}): {rounded_percent(mean)} on average, from {rounded_percent(low)} to "
        f"{rounded_percent(high)} in four of five cases."
        for branch, (mean, low, high) in overall.items()
    ]
    clock = next(kind for kind in CLOCKS if kind in groups)
    told = {clock, "month", "step ahead"}
    sentences += [_swing(kind, rows) for kind, rows in groups.items() if kind in told and len(rows) > 1]
    windows, sensors, _ = next(iter(found.weights.values())).shape
    numbers = {
        branch: dict(zip(("mean", "low_10", "high_90"), numbers, strict=True)) for branch, numbers in overall.items()
    }
    note = (
        f"Means over {windows:,} windows, {sensors:,} sensors and their target patches; bands and lines: 10 % to 90 %. "
        "The clock is that at the beginning of the target patch."
    )
    return Finding(NAME, TITLE, tuple(sentences), numbers, draw_allocation(AllocationPicture(overall, groups, note)))


def spreads(found: FusionWeights) -> dict[str, tuple[float, float, float]]:
    """Returns by branch the mean weight, and the 10th and 90th percentile over sensors, windows and positions."""
    return {branch: _spread(weights.ravel()) for branch, weights in found.weights.items()}


def group_weights(found: FusionWeights) -> dict[str, list[Group]]:
    """Returns the weights by hour of day, weekday, month and step ahead, in that order.

    Daily readings have no hours, and networks that do not read the season no months.
    """
    stamps = pd.DatetimeIndex(np.concatenate([starts.tz_localize(None) for starts in found.starts]))
    windows = len(found.starts[0])
    # Target by target, as the stamps are: target x window, each with all sensors.
    flat = {name: weights.transpose(2, 0, 1).reshape(len(stamps), -1) for name, weights in found.weights.items()}
    steps = np.repeat(np.array(found.ahead), windows)
    keys: dict[str, tuple[NDArray[np.int64], dict[int, str]]] = {}
    if found.interval < DAY:
        keys["hour of day"] = np.asarray(stamps.hour, np.int64), {hour: f"{hour:02d}:00" for hour in range(24)}
    keys["weekday"] = np.asarray(stamps.day_of_week, np.int64), dict(enumerate(_WEEKDAYS))
    if found.reads_season:
        keys["month"] = np.asarray(stamps.month, np.int64), dict(enumerate(_MONTHS, start=1))
    keys["step ahead"] = steps, {step: duration(step * found.interval) for step in found.ahead}
    return {
        kind: [
            Group(value, words[value], {name: _spread(rows[member == value].ravel()) for name, rows in flat.items()})
            for value in np.unique(member).tolist()
        ]
        for kind, (member, words) in keys.items()
    }


def _spread(weights: NDArray[np.floating]) -> tuple[float, float, float]:
    low, high = np.quantile(weights, (0.1, 0.9))
    return float(weights.mean(dtype=np.float64)), float(low), float(high)


def _swing(kind: str, groups: list[Group]) -> str:
    """Returns the sentence about the branch whose mean changes most over groups."""
    branches = groups[0].weights
    reach = {branch: [group.weights[branch][0] for group in groups] for branch in branches}
    branch = max(branches, key=lambda name: max(reach[name]) - min(reach[name]))
    low, high = int(np.argmin(reach[branch])), int(np.argmax(reach[branch]))
    return (
        f"By {kind}, {branch} changes most: from {rounded_percent(reach[branch][low])} ({groups[low].label}) to "
        f"{rounded_percent(reach[branch][high])} ({groups[high].label})."
    )
