"""How much the branches count: over all sensors, windows and target patches, by the clock, and over the horizon.

Fusion looks at the sensor, the calendar at the start of the target patch and its place in the horizon, never at
readings. So its weights are found without the rest of the network, over many more windows than other states.
"""

from calendar import day_abbr, month_abbr
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from candor.core.arrays import Floats
from candor.core.progress import Report, silent
from candor.core.text import duration, rounded_percent
from candor.data.panel import Panel
from candor.data.protocol import Origins
from candor.data.times import DAY
from candor.explain.explanation import ModelFinding
from candor.explain.pictures import FUSION_CLOCKS, FusionPicture, Spread, WeightGroup
from candor.forecasting.candor import Candor
from candor.forecasting.inference import infer
from candor.nets.candor.trainable import CandorTrainable

NAME, TITLE = "fusion", "How much does each branch count, and when?"
MOST_WINDOWS = 2_000
BRANCH_WORDS = {
    "functional": "own past and sensors alike",
    "forward": "along the edges",
    "reverse": "against the edges",
}


@dataclass(frozen=True, eq=False)
class FusionWeights:
    """Fusion weights over windows."""

    weights: dict[str, Floats]  # by branch, window x sensor x target patch; over branches they sum to one
    starts: list[pd.DatetimeIndex]  # local times at which target patches begin, by target patch, of all windows
    steps: tuple[tuple[int, int], ...]  # first and last forecast step (1 is the first) that each target patch covers
    interval: timedelta  # of the steps
    reads_season: bool = False  # whether weights depend on the week of the year; else months differ by accident alone
    is_learned: bool = True  # else all branches count alike

    def spreads(self) -> dict[str, Spread]:
        """Return the spread of weights by branch over sensors, windows and positions."""
        return {branch: Spread.of(weights) for branch, weights in self.weights.items()}


def fusion_weights(candor: Candor, panel: Panel, origins: Origins, report: Report = silent) -> FusionWeights:
    """Return the weights of all branches at the target patches of the windows at `origins`."""
    trainable = candor.trained()
    settings = trainable.network.settings
    targets = torch.tensor(settings.target_starts)
    names = ("time_of_day", "day_of_week", "week_of_year") if settings.season else ("time_of_day", "day_of_week")

    def weights_of(replica: CandorTrainable, batch: dict[str, Tensor]) -> Tensor:
        network = replica.network
        return network.fusion.weights(network.decomposition.nodes.weight, *(batch[name][:, targets] for name in names))

    found = infer(trainable, candor.windows(panel, origins), weights_of, report, "reading fusion weights")
    whole = torch.cat(list(found)).numpy()  # window sensor target branch
    ahead = [start - settings.history for start in settings.target_starts]
    times = panel.times.slice(0, int(origins.max()) + settings.horizon).local
    return FusionWeights(
        weights={branch: whole[..., place] for place, branch in enumerate(settings.branches)},
        starts=[times[origins + offset] for offset in ahead],
        steps=tuple((max(step, 0) + 1, min(step + settings.patch_length, settings.horizon)) for step in ahead),
        interval=panel.times.interval,
        reads_season=settings.season,
        is_learned=settings.learned_fusion,
    )


def find_fusion(found: FusionWeights) -> ModelFinding:
    """Return how much the branches count."""
    if len(found.weights) == 1:
        (branch,) = found.weights
        sentence = f"This network has one branch, {branch} ({BRANCH_WORDS[branch]}): it counts for everything."
        return ModelFinding(NAME, TITLE, (sentence,))
    if not found.is_learned:
        share = 1 / len(found.weights)
        same = f"each has {rounded_percent(share)} everywhere"
        sentence = f"This network does not learn how much its branches count: {same}."
        return ModelFinding(NAME, TITLE, (sentence,), {branch: {"mean": share} for branch in found.weights})
    picture = picture_fusion(found)
    sentences = [
        f"{branch.capitalize()} ({BRANCH_WORDS[branch]}): {rounded_percent(mean)} on average, from "
        f"{rounded_percent(low)} to {rounded_percent(high)} in four of five cases."
        for branch, (mean, low, high) in picture.overall.items()
    ]
    clock = next(kind for kind in FUSION_CLOCKS if kind in picture.groups)
    named = {clock, "month", "step ahead"}
    sentences += [_swing(kind, rows) for kind, rows in picture.groups.items() if kind in named and len(rows) > 1]
    numbers = {
        branch: {"mean": spread.mean, "low_10": spread.low, "high_90": spread.high}
        for branch, spread in picture.overall.items()
    }
    return ModelFinding(NAME, TITLE, tuple(sentences), numbers, {NAME: picture})


def picture_fusion(found: FusionWeights) -> FusionPicture:
    """Return the weights altogether, and by hour of day, weekday, month and step ahead."""
    windows, sensors, _ = next(iter(found.weights.values())).shape
    note = (
        f"Means over {windows:,} windows, {sensors:,} sensors and their target patches; bands and lines: 10 % to 90 %. "
        "The clock is that at the beginning of the target patch."
    )
    return FusionPicture(found.spreads(), group_weights(found), note)


def group_weights(found: FusionWeights) -> dict[str, list[WeightGroup]]:
    """Return the weights by hour of day, weekday, month and step ahead, in that order.

    Daily readings have no hours, and networks that do not read the season no months.
    """
    stamps = pd.DatetimeIndex(np.concatenate([starts.tz_localize(None) for starts in found.starts]))
    ahead = [first for first, _ in found.steps]
    keys: dict[str, tuple[Any, dict[int, str]]] = {
        "hour of day": (stamps.hour, {hour: f"{hour:02d}:00" for hour in range(24)}),
        "weekday": (stamps.day_of_week, dict(enumerate(day_abbr))),
        "month": (stamps.month, dict(enumerate(month_abbr))),
        "step ahead": (
            np.repeat(ahead, len(found.starts[0])),
            {step: duration(step * found.interval) for step in ahead},
        ),
    }
    left_out = {"hour of day"} if found.interval >= DAY else set()
    left_out |= set() if found.reads_season else {"month"}
    # Target by target, as the stamps are: target x window, each with all sensors.
    flat = {name: weights.transpose(2, 0, 1).reshape(len(stamps), -1) for name, weights in found.weights.items()}
    return {
        kind: [
            WeightGroup(value, words[value], {name: Spread.of(rows[member == value]) for name, rows in flat.items()})
            for value in np.unique(member).tolist()
        ]
        for kind, (member, words) in keys.items()
        if kind not in left_out
    }


def _swing(kind: str, groups: Sequence[WeightGroup]) -> str:
    """Return the sentence about the branch whose mean changes most over groups."""
    means = {branch: [group.weights[branch].mean for group in groups] for branch in groups[0].weights}
    branch = max(means, key=lambda name: max(means[name]) - min(means[name]))
    low, high = int(np.argmin(means[branch])), int(np.argmax(means[branch]))
    return (
        f"By {kind}, {branch} changes most: from {rounded_percent(means[branch][low])} ({groups[low].label}) to "
        f"{rounded_percent(means[branch][high])} ({groups[high].label})."
    )
