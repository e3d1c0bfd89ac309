"""Section "Evolution-Structured Dynamics Decomposition": historical integration and temporal projection.

| symbol | code | shape |
|---|---|---|
| H0 | refined | batch node patch hidden |
| M_out | calendar MLP at target patches | batch target forecast |
| F0 | projected | batch node target forecast |

| equation | where |
|---|---|
| app_history_integration | `HistoryIntegration.refine` |
| app_temporal_projection | `HistoryIntegration.project` |
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from candor.nets.candor.decomposition import Components, States, Undecomposed
from candor.nets.candor.settings import ModelSettings
from candor.nets.layers import NORM_FLOOR, Mlp

Forecasts = Float[Tensor, "batch node target forecast"]
COMPONENT_NAMES = ("background", "accumulation", "release", "shock")


class ComponentMaps(nn.Module):
    """An affine map of its own for each component."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.background = nn.Linear(inputs, outputs)
        self.accumulation = nn.Linear(inputs, outputs)
        self.release = nn.Linear(inputs, outputs)
        self.shock = nn.Linear(inputs, outputs)

    def of(self, component: str) -> nn.Linear:
        """Returns the map of the component of that name."""
        layer: nn.Linear = getattr(self, component)
        return layer


class HistoryIntegration(nn.Module):
    """H0, the history refined by its components, and F0, the components projected onto target patches.

    Only the functional branch needs F0.
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width, forecast = settings.hidden, settings.forecast_width
        self.mix = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.tensor(0.1))
        self.norm = nn.LayerNorm(width, eps=NORM_FLOOR)
        if "functional" in settings.branches:
            self.temporal = ComponentMaps(settings.patches, settings.target_patches)
            self.feature = ComponentMaps(width, forecast)
            self.merge = nn.Linear(4 * forecast, forecast)
            self.forecast_norm = nn.LayerNorm(forecast, eps=NORM_FLOOR)
            self.calendar = Mlp(2 * width, forecast, forecast, settings.dropout)

    def projecting(self) -> list[nn.Parameter]:
        """Returns the parameters that `project` uses."""
        modules = (self.temporal, self.feature, self.merge, self.forecast_norm, self.calendar)
        return [parameter for module in modules for parameter in module.parameters()]

    def refine(self, embedded: States, components: Components) -> States:
        """Returns H0 = LN_H(Z + alpha P_H([B || A || R || S])) (eq. app_history_integration)."""
        mixed = self.mix(torch.cat(components.normalised, dim=-1))
        return self.norm(embedded + self.scale * mixed)

    def project(self, components: tuple[States, ...], rows: Float[Tensor, "batch target twice_hidden"]) -> Forecasts:
        """Returns F0 at the target patches whose calendar rows are given (eq. app_temporal_projection).

        T_c, F_c and P_F are affine with nothing between, so F_c and P_F are multiplied first: one map from the four
        components to the forecast width.
        """
        targets, forecast = rows.shape[1], self.merge.out_features
        blocks = self.merge.weight.split(forecast, dim=1)
        ahead, weights, bias = [], [], self.merge.bias
        for name, component, block in zip(COMPONENT_NAMES, components, blocks, strict=True):
            ahead.append(project_patches(self.temporal.of(name), component, targets))
            weights.append(block @ self.feature.of(name).weight)
            bias = bias + block @ self.feature.of(name).bias
        merged = nn.functional.linear(torch.cat(ahead, dim=-1), torch.cat(weights, dim=1), bias)
        return self.forecast_norm(merged + self.calendar(rows)[:, None])


class PlainHistory(nn.Module):
    """H0 = Z, and F0 by one map over patches and one over features of Z (w/o Decomp.)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width, forecast = settings.hidden, settings.forecast_width
        if "functional" in settings.branches:
            self.temporal = nn.Linear(settings.patches, settings.target_patches)
            self.feature = nn.Linear(width, forecast)
            self.forecast_norm = nn.LayerNorm(forecast, eps=NORM_FLOOR)
            self.calendar = Mlp(2 * width, forecast, forecast, settings.dropout)

    def projecting(self) -> list[nn.Parameter]:
        """Returns the parameters that `project` uses: all."""
        return list(self.parameters())

    def refine(self, embedded: States, components: Undecomposed) -> States:
        """Returns Z itself."""
        return embedded

    def project(self, components: tuple[States, ...], rows: Float[Tensor, "batch target twice_hidden"]) -> Forecasts:
        """Returns F0 at the target patches whose calendar rows are given."""
        (embedded,) = components
        projected = self.feature(project_patches(self.temporal, embedded, rows.shape[1]))
        return self.forecast_norm(projected + self.calendar(rows)[:, None])


def project_patches(layer: nn.Linear, states: States, targets: int) -> Float[Tensor, "batch node target hidden"]:
    """Returns the affine map from history patches to the first `targets` target patches, feature by feature."""
    weight, bias = layer.weight[:targets], layer.bias[:targets]
    return torch.matmul(weight, states) + bias[:, None]
