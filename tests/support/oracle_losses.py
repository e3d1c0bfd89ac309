"""The learning objectives as their equations stand (appendix "Learning Objectives")."""

from collections.abc import Mapping

import torch
from oracle import BRANCHES, COMPONENTS, OracleOutput
from oracle_branches import DIRECTIONS
from oracle_parameters import OracleSettings
from torch import Tensor

COSINE_EPSILON = 1e-8  # the floor of each vector's length
WEIGHTED_TERMS = (
    "branch",
    "hist",
    "sep",
    "bg",
    "shock",
    "rec",
    "role_background",
    "role_accumulation",
    "role_release",
)


def masked_error(forecast: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
    """Returns the mean absolute error over valid targets, 0 where there are none."""
    errors = (forecast - torch.where(mask, targets, 0.0)).abs() * mask
    return errors.sum() / max(1, int(mask.sum()))


def cosine(left: Tensor, right: Tensor) -> Tensor:
    """Returns the cosine between the feature vectors of two tensors."""
    return torch.nn.functional.cosine_similarity(left, right, dim=-1, eps=COSINE_EPSILON)


def mean_or_zero(terms: list[Tensor], like: Tensor) -> Tensor:
    """Returns the mean over all entries of equally shaped terms, 0 where there are no terms."""
    return torch.stack(terms).mean() if terms else torch.zeros((), dtype=like.dtype)


def smooth_absolute(errors: Tensor) -> Tensor:
    """Returns half the square of errors below 1, and their size less a half beyond."""
    return torch.where(errors.abs() < 1, errors**2 / 2, errors.abs() - 0.5)


def both_directions(states: Mapping[str, Tensor]) -> Tensor:
    """Returns the sum of the forward and the reverse state."""
    return states["forward"] + states["reverse"]


def history_loss(output: OracleOutput) -> Tensor:
    """Returns L_hist: the next refined patch against the mean of what the two paths predicted for it."""
    history = output.refined_history
    predicted = (both_directions(output.temporal_state) + both_directions(output.graph_output)) / 2
    patches = range(history.shape[2] - 1)
    terms = [((predicted[:, :, p] - history[:, :, p + 1]) ** 2).sum(dim=-1) / history.shape[-1] for p in patches]
    return mean_or_zero(terms, history)


def separation_loss(output: OracleOutput) -> Tensor:
    """Returns L_sep: how parallel temporal states and propagation residuals are within each direction."""
    terms = []
    for direction in DIRECTIONS:
        temporal = output.temporal_state[direction].mean(dim=2)
        residual = output.propagation_residual[direction].mean(dim=2)
        temporal = temporal - temporal.mean(dim=-1, keepdim=True)
        residual = residual - residual.mean(dim=-1, keepdim=True)
        terms.append(cosine(temporal, residual).abs().mean())
    return (terms[0] + terms[1]) / 2


def background_loss(output: OracleOutput) -> Tensor:
    """Returns L_bg: the size of the background's second differences."""
    background = output.components["background"]
    terms = []
    for patch in range(2, background.shape[2]):
        bend = background[:, :, patch] - 2 * background[:, :, patch - 1] + background[:, :, patch - 2]
        terms.append(bend.abs().sum(dim=-1) / background.shape[-1])
    return mean_or_zero(terms, background)


def reconstruction_loss(output: OracleOutput) -> Tensor:
    """Returns L_rec: the embedding, without gradient, against the two sums that should explain it."""
    raw = output.raw_components
    background, accumulation, release, shock = (raw[name] for name in COMPONENTS)
    target = output.embedding.detach()
    present = smooth_absolute(background + accumulation + shock - target).mean()
    if target.shape[2] == 1:
        return present / 2
    explained = background[:, :, 1:] + release[:, :, :-1] + shock[:, :, :-1]
    return present / 2 + smooth_absolute(explained - target[:, :, :-1]).mean() / 2


def role_losses(output: OracleOutput, parameters: Mapping[str, Tensor], span: int) -> dict[str, Tensor]:
    """Returns the three terms of L_role without their weights: minus the mean similarities."""

    def similarity(component: str, part: Tensor, state: Tensor) -> Tensor:
        left = part @ parameters[f"roles.{component}_component.weight"].T
        return cosine(left, state @ parameters[f"roles.{component}_physical.weight"].T)

    parts = output.components
    temporal, graph = both_directions(output.temporal_state), both_directions(output.graph_output)
    residual = both_directions(output.propagation_residual)
    patches = temporal.shape[2]
    earlier = range(max(span - 1, 1), patches)  # the paper's p, counted from 1; index p - 1, its successor index p
    background = [similarity("background", parts["background"][:, :, p], temporal[:, :, p - 1]) for p in earlier]
    accumulation = [similarity("accumulation", parts["accumulation"][:, :, p], graph[:, :, p - 1]) for p in earlier]
    release = [similarity("release", parts["release"][:, :, p], residual[:, :, p]) for p in range(patches)]
    return {
        "role_background": -mean_or_zero(background, temporal),
        "role_accumulation": -mean_or_zero(accumulation, temporal),
        "role_release": -mean_or_zero(release, temporal),
    }


def oracle_losses(
    output: OracleOutput,
    parameters: Mapping[str, Tensor],
    settings: OracleSettings,
    targets: Tensor,
    mask: Tensor,
    weights: Mapping[str, float],
    activation: bool,
    prefix: int | None = None,
    unscale: tuple[Tensor | float, Tensor | float] | None = None,
) -> dict[str, Tensor]:
    """Returns every term of the objective by name, and their weighted sum as "total".

    Args:
        output: a forward pass with the same prefix.
        parameters: tensors by the names of `parameter_shapes`.
        settings: sizes of the model.
        targets: (batch, horizon, node), in original units if `unscale` is given, scaled otherwise.
        mask: true where a target is valid; other targets are not read.
        weights: coefficient of every term of WEIGHTED_TERMS.
        activation: chi; without it reconstruction and roles are neither computed nor returned.
        prefix: supervised steps, the horizon unless given.
        unscale: mean and deviation of the scaling of the input.
    """
    prefix = settings.horizon if prefix is None else prefix
    if output.forecast.shape[1] != prefix:
        raise ValueError(f"the forward pass has {output.forecast.shape[1]} steps, the losses were asked for {prefix}")
    mean, deviation = (0.0, 1.0) if unscale is None else unscale

    def error(forecast: Tensor) -> Tensor:
        return masked_error(forecast * deviation + mean, targets[:, :prefix], mask[:, :prefix])

    terms = {
        "pred": error(output.forecast),
        "branch": torch.stack([error(output.branch_forecasts[branch]) for branch in BRANCHES]).sum() / 3,
        "hist": history_loss(output),
        "sep": separation_loss(output),
        "bg": background_loss(output),
        "shock": ((output.gates["shock_u"] + output.gates["shock_v"]) / 2).mean(),
    }
    if activation:
        terms["rec"] = reconstruction_loss(output)
        terms |= role_losses(output, parameters, settings.temporal_span)
    total = terms["pred"]
    for name in WEIGHTED_TERMS:
        if name in terms:
            total = total + weights[name] * terms[name]
    return {**terms, "total": total}
