"""Section "Learning Objectives": every term by itself, and their weighted sum.

| symbol | code |
|---|---|
| L_pred, L_branch | prediction, branch |
| L_hist, L_sep | history, separation |
| L_bg, L_shock | background, shock |
| L_rec, L_role | reconstruction, role_background, role_accumulation, role_release |
| chi(e) | is_active |

Equations: overall_objective, app_auxiliary_objective, app_branch_supervision, app_historical_consistency,
app_state_separation, app_component_regularization, evolution_reconstruction, app_role_consistency.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from candor.nets.candor.candor import CandorNetwork, Encoding
from candor.nets.candor.decomposition import Components
from candor.nets.candor.ops.decoding import Supervision, decoded_errors
from candor.nets.candor.settings import LossWeights

Targets = Float[Tensor, "batch horizon node"]
_ROLES = ("role_background", "role_accumulation", "role_release")


@dataclass(frozen=True)
class LossSpace:
    """The unit of errors: z-scores (mean 0, deviation 1), or the original one after inverse scaling."""

    mean: float = 0.0
    deviation: float = 1.0


@dataclass(frozen=True)
class Losses:
    """The objective, to be differentiated, and every term of it by name, to be read."""

    total: Tensor
    terms: dict[str, Tensor]


def losses(
    network: CandorNetwork,
    states: Encoding,
    targets: Targets,
    mask: Bool[Tensor, "batch horizon node"],
    weights: LossWeights,
    *,
    prefix: int,
    space: LossSpace,
    is_active: bool,
    valid: int | None = None,
    share: float = 1.0,
) -> Losses:
    """Return the objective of a batch (eq. overall_objective, app_auxiliary_objective) and its terms.

    Args:
        network: for its head and role maps.
        states: of this batch and prefix.
        targets: the future, in the space of the loss; anything where the mask is False.
        mask: which targets count.
        weights: the coefficients.
        prefix: steps that are supervised.
        space: the unit of the errors.
        is_active: chi; before the activation epoch reconstruction and roles are not computed at all.
        valid: for a micro-batch, the number of valid targets of the whole optimiser batch, over which errors are
            averaged; None counts those of this batch.
        share: for a micro-batch, its part of the samples: it weighs the terms that are means over samples.
    """
    counts = rearrange(mask[:, :prefix], "batch prefix node -> batch node prefix")
    wanted = rearrange(targets[:, :prefix], "batch prefix node -> batch node prefix")
    # Missing targets are replaced first, so that no NaN reaches a gradient.
    wanted = torch.where(counts, (wanted - space.mean) / space.deviation, 0.0)
    factor = space.deviation / max(int(counts.sum()) if valid is None else valid, 1)
    supervision = Supervision(wanted, counts.to(wanted.dtype), factor, weights.branch)
    # eq. app_branch_supervision
    errors, prediction, branch = decoded_errors(network, states.forecast_inputs, supervision)
    found: dict[str, Callable[[Encoding], Tensor]] = {}  # terms whose states exist
    if states.paths:
        found |= {"history": _history, "separation": _separation}
    if isinstance(states.components, Components):
        found |= {"background": _smoothness, "shock": _shock}
        if is_active:
            found |= {"reconstruction": _reconstruction}
    terms = {name: term(states) for name, term in found.items() if getattr(weights, name)}
    if is_active and network.roles is not None and any(getattr(weights, name) for name in _ROLES):
        terms |= _roles(network, states)
    total = errors
    for name, term in terms.items():
        total = total + share * getattr(weights, name) * term
    return Losses(total, {"prediction": prediction, "branch": branch} | terms)


def _history(states: Encoding) -> Tensor:
    """Return the mean squared error of the next state that the paths predict (eq. app_historical_consistency)."""
    if states.refined.shape[-2] == 1:
        return states.refined.new_zeros(())
    predicted = _sum(path.temporal + path.contribution for path in states.paths.values()) / len(states.paths)
    return F.mse_loss(predicted[..., :-1, :], states.refined[..., 1:, :])


def _separation(states: Encoding) -> Tensor:
    """Return the mean absolute cosine of temporal states and residuals (eq. app_state_separation)."""
    total = states.refined.new_zeros(())
    for path in states.paths.values():
        temporal, residual = path.temporal.mean(dim=-2), path.residual.mean(dim=-2)
        temporal = temporal - temporal.mean(dim=-1, keepdim=True)
        residual = residual - residual.mean(dim=-1, keepdim=True)
        total = total + F.cosine_similarity(temporal, residual, dim=-1).abs().mean()
    return total / len(states.paths)


def _smoothness(states: Encoding) -> Tensor:
    """Return the mean absolute second difference of the background (eq. app_component_regularization)."""
    background = states.components.background
    if background.shape[-2] < 3:
        return background.new_zeros(())
    return background.diff(n=2, dim=-2).abs().mean()


def _shock(states: Encoding) -> Tensor:
    """Return the mean shock activity (eq. app_component_regularization)."""
    assert isinstance(states.components, Components)
    return states.components.shock_activity.mean()


def _reconstruction(states: Encoding) -> Tensor:
    """Return how far the components are from the embedding they explain (eq. evolution_reconstruction)."""
    components, embedded = states.components, states.embedded.detach()
    assert isinstance(components, Components)
    now = components.raw_background + components.raw_accumulation + components.raw_shock
    total = F.smooth_l1_loss(now, embedded)
    if embedded.shape[-2] > 1:
        following = components.raw_background[..., 1:, :]
        released = (components.raw_release + components.raw_shock)[..., :-1, :]
        total = total + F.smooth_l1_loss(following + released, embedded[..., :-1, :])
    return total / 2


def _roles(network: CandorNetwork, states: Encoding) -> dict[str, Tensor]:
    """Return the negative similarities of components and physical states (eq. app_role_consistency)."""
    components, paths = states.components, states.paths.values()
    assert isinstance(components, Components)
    first = max(network.settings.temporal_span - 1, 1) - 1  # the paper counts patches from one
    following = slice(first + 1, None)
    current = slice(first, -1)
    temporal, contribution = _sum(path.temporal for path in paths), _sum(path.contribution for path in paths)
    compared = {
        "background": (components.background[..., following, :], temporal[..., current, :]),
        "accumulation": (components.accumulation[..., following, :], contribution[..., current, :]),
        "release": (components.release, _sum(path.residual for path in paths)),
    }
    terms = {}
    for name, (component, physical) in compared.items():
        if component.shape[-2] == 0:
            terms[f"role_{name}"] = component.new_zeros(())
            continue
        ours = getattr(network.roles, f"{name}_component")(component)
        theirs = getattr(network.roles, f"{name}_physical")(physical)
        terms[f"role_{name}"] = -F.cosine_similarity(ours, theirs, dim=-1).mean()
    return terms


def _sum(tensors: Iterable[Tensor]) -> Tensor:
    return reduce(torch.add, tensors)
