"""The assembled model: decompose, propagate, relate, fuse, decode.

| section of the paper | file |
|---|---|
| evolution-structured decomposition | decomposition.py |
| physical propagation graph | physical.py, physical_operator.py, temporal.py |
| functional relation graph | functional.py |
| context-adaptive fusion, prediction | fusion.py |
| learning objectives | losses.py |

Every file begins with the equations it implements, by their labels in the paper, which also stand at the code that
carries them. Operations with gradients written by hand are in ops/.

Equations: context_fusion, app_projected_similarity.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from candor.nets.candor.decomposition import (
    COMPONENT_NAMES,
    CalendarEmbedding,
    Components,
    Decomposition,
    Forecasts,
    HistoryIntegration,
    PatchEmbedding,
    ShockGate,
    States,
    Undecomposed,
)
from candor.nets.candor.functional import FunctionalBranch, FunctionalStates
from candor.nets.candor.fusion import FIRST_WEIGHTS, ForecastInputs, Fusion, Head, MeanFusion, Representations, fuse
from candor.nets.candor.physical import PathStates, PhysicalBranch
from candor.nets.candor.physical_operator import EdgeArrays
from candor.nets.candor.settings import ModelSettings
from candor.nets.shapes import Bins, Forecast, Readings


@dataclass(frozen=True)
class Encoding:
    """The states of a window in z-scores; what only a forecast needs is computed when it is first asked for."""

    network: "CandorNetwork"
    steps: int
    embedded: States
    components: Components | Undecomposed
    refined: States
    paths: dict[str, PathStates]
    functional: FunctionalStates | None
    forecast_inputs: ForecastInputs

    @cached_property
    def representations(self) -> Representations:
        """The representations of the branches, and the weights they are fused with."""
        return self.network.represent(self.forecast_inputs)

    @property
    def fused(self) -> Forecasts:
        """The representation that is decoded (eq. context_fusion)."""
        return fuse(self.representations.fusion_weights, self.representations.branches)

    def branch_forecasts(self) -> dict[str, Float[Tensor, "batch prefix node"]]:
        """Return what each branch alone would forecast."""
        return {name: self.network.head(states, self.steps) for name, states in self.representations.by_branch.items()}


class CandorNetwork(nn.Module):
    """CANDOR: Component-Aware Network Dynamics with Ordered Relations.

    Parts that the settings leave out (ablations) are not built: they have no parameters and take no time.

    Args:
        settings: the sizes.
        edges: the directed physical graph; none is legal.
    """

    patch_starts: Tensor

    def __init__(self, settings: ModelSettings, edges: EdgeArrays) -> None:
        super().__init__()
        self.settings = settings
        self.embedding = PatchEmbedding(settings)
        self.calendar = CalendarEmbedding(settings)
        self.decomposition = Decomposition(settings)
        self.history = HistoryIntegration(settings)
        self.physical = PhysicalBranch(settings, edges) if settings.directions else None
        self.functional = FunctionalBranch(settings) if "functional" in settings.branches else None
        is_weighed = settings.learned_fusion and len(settings.branches) > 1
        self.fusion = Fusion(settings) if is_weighed else MeanFusion(settings)
        self.head = Head(settings)
        has_roles = settings.roles and settings.decomposition and bool(settings.directions)
        self.roles = Roles(settings) if has_roles else None
        starts = [*settings.history_starts, *settings.target_starts]
        self.register_buffer("patch_starts", torch.tensor(starts), persistent=False)
        _initialise(self)

    def forward(
        self,
        values: Readings,
        time_of_day: Bins,
        day_of_week: Bins,
        week_of_year: Bins | None = None,
        rain: Readings | None = None,
    ) -> Forecast:
        """Return the forecast in z-scores.

        Args:
            values: z-scores of the history.
            time_of_day: bins 0..287 of all steps of history and horizon.
            day_of_week: days 0..6 (Monday is 0) of the same steps.
            week_of_year: weeks 0..52 of the same steps; needed if the settings say `season`, else not read.
            rain: over the history, as z-scores of log(1 + rain); needed if the settings say `rain`, else not read.
        """
        states = self.encode(values, time_of_day, day_of_week, week_of_year=week_of_year, rain=rain)
        return self.head(states.fused, self.settings.horizon)

    def encode(
        self,
        values: Readings,
        time_of_day: Bins,
        day_of_week: Bins,
        prefix: int | None = None,
        week_of_year: Bins | None = None,
        rain: Readings | None = None,
    ) -> Encoding:
        """Return the states of a forecast of `prefix` steps (all by default)."""
        settings, patches = self.settings, self.settings.patches
        steps = settings.horizon if prefix is None else prefix
        targets = settings.decoded_patches(steps)
        clock = [index for index in (time_of_day, day_of_week, week_of_year) if index is not None]
        at_starts = [index[:, self.patch_starts] for index in clock]
        rows = self.calendar.rows(*at_starts)
        contexts = self.calendar.context(rows)
        target = slice(patches, patches + targets)
        last = slice(settings.history - 1, settings.history)
        last_row = self.calendar.rows(*(index[:, last] for index in clock))[:, 0]

        embedded = self.embedding(values)
        components = self.decomposition(embedded, contexts[:, :patches], rain)
        refined = self.history.refine(embedded, components)
        paths: dict[str, PathStates] = {}
        if self.physical is not None:
            activity = components.shock_activity if settings.gates_shocks else None
            paths = self.physical(values, refined, activity, rows[:, :patches], rows[:, target], last_row)
        nodes = self.decomposition.nodes.weight
        functional: FunctionalStates | None = None
        states: dict[str, Tensor] = {}
        if self.functional is not None:
            functional = self.functional(components.background, refined, nodes, contexts.mean(dim=1))
            states = dict(zip(COMPONENT_NAMES, components.normalised, strict=False))  # one without decomposition
            states |= {"context": functional.context, "descriptor": functional.descriptor}
        states |= {direction: path.predictions for direction, path in paths.items()}
        inputs = ForecastInputs(states, nodes, rows[:, target], tuple(index[:, target] for index in at_starts))
        return Encoding(self, steps, embedded, components, refined, paths, functional, inputs)

    def represent(self, inputs: ForecastInputs) -> Representations:
        """Return the forecast representations of the branches and how much each counts."""
        by_branch: dict[str, Forecasts] = {}
        for branch in self.settings.branches:
            if branch == "functional":
                assert self.functional is not None
                projected = self.history.project(inputs.states, inputs.target_rows)
                of_branch = inputs.states["context"], inputs.states["descriptor"], inputs.nodes
                by_branch[branch] = self.functional.correct(projected, *of_branch, inputs.target_rows)
            else:
                assert self.physical is not None
                by_branch[branch] = self.physical.path(branch).readout(inputs.states[branch])
        return Representations(by_branch, self.fusion.weights(inputs.nodes, *inputs.clock))


class Roles(nn.Module):
    """Six linear maps, begun as the identity; only the role loss uses them (eq. app_projected_similarity)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        for component in ("background", "accumulation", "release"):
            for side in ("component", "physical"):
                self.add_module(f"{component}_{side}", nn.Linear(settings.hidden, settings.hidden, bias=False))


def _initialise(network: CandorNetwork) -> None:
    """Initialise parameters Xavier-uniform but for stated values; biases keep PyTorch's defaults."""
    for name, parameter in network.named_parameters():
        # Not biases, scales of norms and scalars, nor the season (beyond the paper), which begins at zero.
        if parameter.ndim >= 2 and not name.endswith("season.weight"):
            nn.init.xavier_uniform_(parameter)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, ShockGate):
                module.second.weight.zero_()
                module.second.bias.zero_()
            elif isinstance(module, Fusion):
                shares = torch.tensor([FIRST_WEIGHTS[branch] for branch in network.settings.branches])
                module.mlp.second.weight.zero_()
                module.mlp.second.bias.copy_((shares / shares.sum()).log())
            elif isinstance(module, Roles):
                for role in module.parameters():
                    nn.init.eye_(role)


@dataclass(frozen=True)
class ModuleSummary:
    """A module that holds parameters of its own: its name, their shapes by name, and their number."""

    module: str
    shapes: dict[str, tuple[int, ...]]
    parameters: int


def summarise(settings: ModelSettings) -> list[ModuleSummary]:
    """Return the modules with parameters in the order of the paper; edges carry none, so none are needed."""
    network = CandorNetwork(settings, EdgeArrays(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)))
    rows = []
    for name, module in network.named_modules():
        if own := dict(module.named_parameters(recurse=False)):
            shapes = {key: tuple(parameter.shape) for key, parameter in own.items()}
            rows.append(ModuleSummary(name, shapes, sum(parameter.numel() for parameter in own.values())))
    return rows
