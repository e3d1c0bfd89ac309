"""How residuals E of the recent patches become the contribution o that helps to predict the next patch.

o of patch p is made of the residuals of the patches p - K_t + 1 .. p, and is part of the prediction of patch p + 1: a
lag of one patch is that from patch p to the one predicted. Two quantities are computed over windows.

Likeness: how alike is what came in at some lag and o, over all windows? What came in are the neighbours' residuals,
each with its weight. Both are taken as deviations from what is usual at their sensor, patch and hour of the day, and
compared by linear centred kernel alignment, |X'Y|^2 / (|X'X| |Y'Y|): 0 nothing in common, 1 equal up to a rotation.

Influence: how much does o change if the residuals of one patch were what is usual there? Nothing but that is changed,
for the sensor itself or for all others, so this tells what o is made of.
"""

from dataclasses import dataclass

import numpy as np
import torch
from einops import rearrange
from torch import Tensor
from torch.nn import functional as F

from candor.core.arrays import Doubles, Integers
from candor.core.text import rounded_percent
from candor.data.panel import Panel
from candor.explain.analyses.states import WindowStates
from candor.explain.explanation import ModelFinding
from candor.explain.pictures import PropagationPicture
from candor.nets.candor.physical import PathStates

NAME, TITLE = "propagation", "Do residuals travel, and with which delay?"


@dataclass(frozen=True, eq=False)
class Propagation:
    """How residuals become contributions."""

    lags: Integers  # in patches before the one that is predicted; not positive are patches that were not known then
    likeness: Doubles  # by lag, 0 to 1; NaN where nothing can be compared
    own: Doubles  # by lag 1 .. K_t: change of o if the sensor's own residual was as usual, as a share of how o varies
    others: Doubles  # the same for the residuals of all other sensors


def alignment(first: Tensor, second: Tensor) -> float:
    """Return the linear centred kernel alignment of two tables, sample x feature; NaN if one of them never changes."""
    first, second = (table.double() - table.double().mean(dim=0) for table in (first, second))
    scale = torch.linalg.matrix_norm(first.T @ first) * torch.linalg.matrix_norm(second.T @ second)
    together = torch.linalg.matrix_norm(first.T @ second).square()
    return float(together / scale) if scale > 0 else float("nan")


def incoming(states: WindowStates) -> tuple[Tensor, Tensor]:
    """Return the neighbours' residuals by their weights, window x sensor x patch x hidden, and who has neighbours.

    Weights are means over positions; both directions are summed; what a sensor sends itself is left out.
    """
    total = torch.zeros_like(states.embedded)
    has_neighbours = torch.zeros(total.shape[1], dtype=torch.bool)
    for direction, path in states.paths.items():
        support = states.physical.support(direction)
        between_two = support.receiver != support.sender
        receiver, sender = support.receiver[between_two], support.sender[between_two]
        weights = path.weights.mean(dim=1)[:, between_two]
        total.index_add_(1, receiver, weights[..., None, None] * path.residual[:, sender])
        has_neighbours[receiver] = True
    return total, has_neighbours


@torch.no_grad()
def contribution_of(states: WindowStates, direction: str, own: Tensor, others: Tensor) -> Tensor:
    """Return o at the last history patch, window x sensor x hidden.

    Args:
        states: whose operators are used.
        direction: forward or reverse.
        own: residuals of the last K_t patches that a sensor has itself, window x sensor x position x hidden.
        others: those that it hears of from all other sensors, of the same shape.
    """
    path, support = states.physical.path(direction), states.physical.support(direction)
    operator = support.operator(states.paths[direction].weights)
    kept, sent = (
        rearrange(F.relu(path.window_map(window.flatten(-2))), "... (position hidden) -> ... position hidden",
                  position=path.span)
        for window in (own, others)
    )  # fmt: skip
    merged: Tensor = path.merge(torch.cat([kept.mean(dim=-2), *operator.walk(sent)], dim=-1))
    return merged


def last_residuals(path: PathStates, span: int) -> Tensor:
    """Return the residuals of the last `span` patches, oldest first; before the first patch it is repeated."""
    padded = torch.cat([path.residual[..., :1, :]] * (span - 1) + [path.residual], dim=-2)
    return padded[..., -span:, :]


def study_propagation(states: WindowStates) -> Propagation:
    """Return likeness and influence over all windows."""
    span = states.network.settings.temporal_span
    size = _size(states.deviations(states.over_paths("contribution")[..., -1, :]))
    # The newest position is one patch before the one predicted.
    changes = [_changes(states, span, position) if size else (0.0, 0.0) for position in reversed(range(span))]
    own, others = np.array(changes).T / (size or 1.0)
    return Propagation(*_likeness_by_lag(states, span), own, others)


def _likeness_by_lag(states: WindowStates, span: int) -> tuple[Integers, Doubles]:
    arriving, has_neighbours = incoming(states)
    arriving = states.deviations(arriving)[:, has_neighbours]
    outcome = states.deviations(states.over_paths("contribution"))[:, has_neighbours]
    patches = outcome.shape[2]
    lags = np.arange(2 - patches, patches + 1)
    likeness = np.full(len(lags), np.nan)
    for place, lag in enumerate(lags.tolist()):
        # o of patch p predicts patch p + 1; a lag of 1 compares it with what came in at patch p. Lags that o is made of
        # are compared at the same patches: likeness by chance is larger where there is less to compare.
        oldest = span if 1 <= lag <= span <= patches else lag
        ends = [patch for patch in range(patches) if patch + 1 >= oldest and patch + 1 - lag < patches]
        if ends and has_neighbours.any():
            before = torch.stack([arriving[:, :, patch + 1 - lag] for patch in ends]).flatten(0, -2)
            after = torch.stack([outcome[:, :, patch] for patch in ends]).flatten(0, -2)
            likeness[place] = alignment(before, after)
    return lags, likeness


def _changes(states: WindowStates, span: int, position: int) -> tuple[float, float]:
    """Return the size of the changes of o, both directions together, if one residual was as usual: own, others'."""
    of_own = of_others = torch.zeros(())
    for direction, path in states.paths.items():
        window = last_residuals(path, span)
        usual = window.clone()
        usual[..., position, :] = states.usual(window[..., position, :])
        real = contribution_of(states, direction, window, window)
        of_own = of_own + contribution_of(states, direction, usual, window) - real
        of_others = of_others + contribution_of(states, direction, window, usual) - real
    return _size(of_own), _size(of_others)


def find_propagation(states: WindowStates, panel: Panel, window: int) -> ModelFinding:
    """Return whether and when residuals become contributions, with one of the windows as an example."""
    if not states.paths:
        return ModelFinding(NAME, TITLE, ("This network has no physical branch: nothing travels along edges.",))
    if len(states.origins) < 2:
        return ModelFinding(NAME, TITLE, ("There is one window only: what is usual is not known, nor what travels.",))
    found = study_propagation(states)
    causal = np.where((found.lags >= 1) & (found.lags <= len(found.own)), found.likeness, np.nan)
    own, others = (
        ", ".join(f"{rounded_percent(share)} for the patch {lag} back" for lag, share in enumerate(shares, start=1))
        for shares in (found.own, found.others)
    )
    sentences = [
        f"What arrives at a sensor and helps to predict its next patch is made of the last {len(found.own)} patches of "
        f"residuals. If the sensor's own were as usual, it would change by {own}, as a share of how it varies."
    ]
    if not np.isnan(causal).all():
        best = int(found.lags[np.nanargmax(causal)])
        back = "1 patch" if best == 1 else f"{best} patches"
        sentences.append(f"If those of all other sensors were as usual, it would change by {others}.")
        sentences.append(
            f"Of what came along and against the edges it is most like that of {back} before the one that is predicted "
            f"(likeness {np.nanmax(causal):.2f} of 1)."
        )
    else:
        sentences.append("There are no edges between sensors, so nothing comes from others.")
    numbers = {
        "likeness_by_lag": {
            str(lag): None if np.isnan(value) else float(value)
            for lag, value in zip(found.lags, found.likeness, strict=True)
        },
        "influence_of_own_by_lag": found.own.tolist(),
        "influence_of_others_by_lag": found.others.tolist(),
    }
    settings = states.network.settings
    begin = int(states.origins[window]) - settings.history
    starts = [*settings.history_starts, settings.history_starts[-1] + settings.patch_stride]
    times = panel.times.slice(begin, begin + starts[-1] + 1).local.to_pydatetime()
    picture = PropagationPicture(
        sensors=panel.sensor_ids,
        starts=[times[start] for start in starts],
        residual=_unusual(states, states.over_paths("residual"), window),
        contribution=_unusual(states, states.over_paths("contribution"), window),
        windows=len(states.origins),
        **vars(found),
    )
    return ModelFinding(NAME, TITLE, tuple(sentences), numbers, {NAME: picture})


def _unusual(states: WindowStates, of_path: Tensor, window: int) -> Doubles:
    """Return how unusual the states of one window are, sensor x patch: 1 is as far from the mean as states are."""
    away = states.deviations(of_path).double()
    typical = away.square().mean(dim=(0, 3)).sqrt().clamp(min=1e-12)
    sizes: Doubles = (away[window].square().mean(dim=-1).sqrt() / typical).numpy()
    return sizes


def _size(states: Tensor) -> float:
    return float(states.double().square().mean().sqrt())
