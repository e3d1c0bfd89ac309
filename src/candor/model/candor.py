"""The assembled model: decompose, propagate, relate, fuse, decode.

| section of the paper | file |
|---|---|
| patches and calendar | embedding.py |
| evolution-structured decomposition | decomposition.py, history.py |
| physical propagation graph | physical.py, propagation.py, attention.py |
| functional relation graph | functional.py |
| context-adaptive fusion, prediction | fusion.py, head.py |
| learning objectives | losses.py |
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from candor.model.decomposition import Components, Decomposition, States
from candor.model.embedding import Calendar, PatchEmbedding
from candor.model.functional import FunctionalBranch, FunctionalStates
from candor.model.fusion import Fusion, fuse
from candor.model.head import Head
from candor.model.history import Forecasts, HistoryIntegration
from candor.model.initialisation import initialise
from candor.model.physical import PathStates, PhysicalBranch
from candor.model.propagation import EdgeArrays
from candor.model.roles import Roles
from candor.model.settings import ModelSettings

Values = Float[Tensor, "batch time node"]
CalendarIndex = Int[Tensor, "batch whole"]


@dataclass(frozen=True)
class Explanation:
    """Everything the model computed on the way to a forecast of `prefix` steps, in z-scores."""

    embedded: States
    components: Components
    refined: States
    projected: Forecasts
    forward: PathStates
    reverse: PathStates
    functional: FunctionalStates
    fusion_weights: Float[Tensor, "batch node target branch"]

    @property
    def branches(self) -> tuple[Forecasts, Forecasts, Forecasts]:
        """The forecast representations that were fused, in the order of the fusion weights."""
        return self.functional.forecast, self.forward.forecast, self.reverse.forecast

    @property
    def fused(self) -> Forecasts:
        """The fused representation; the losses never form it whole."""
        return fuse(self.fusion_weights, self.branches)


class CandorNetwork(nn.Module):
    """CANDOR: Component-Aware Network Dynamics with Ordered Relations.

    Args:
        settings: the sizes.
        edges: the directed physical graph; none is legal.
    """

    patch_starts: Tensor

    def __init__(self, settings: ModelSettings, edges: EdgeArrays) -> None:
        super().__init__()
        self.settings = settings
        self.embedding = PatchEmbedding(settings)
        self.calendar = Calendar(settings)
        self.decomposition = Decomposition(settings)
        self.history = HistoryIntegration(settings)
        self.physical = PhysicalBranch(settings, edges)
        self.functional = FunctionalBranch(settings)
        self.fusion = Fusion(settings)
        self.head = Head(settings)
        self.roles = Roles(settings)
        starts = [*settings.history_starts, *settings.target_starts]
        self.register_buffer("patch_starts", torch.tensor(starts), persistent=False)
        initialise(self)

    def forward(
        self, values: Values, time_of_day: CalendarIndex, day_of_week: CalendarIndex
    ) -> Float[Tensor, "batch horizon node"]:
        """Returns the forecast in z-scores.

        Args:
            values: z-scores of the history.
            time_of_day: bins 0..287 of all steps of history and horizon.
            day_of_week: days 0..6 (Monday is 0) of the same steps.
        """
        states = self.explain(values, time_of_day, day_of_week)
        return self.head(states.fused, self.settings.horizon)

    def explain(
        self, values: Values, time_of_day: CalendarIndex, day_of_week: CalendarIndex, prefix: int | None = None
    ) -> Explanation:
        """Returns all states on the way to a forecast of `prefix` steps (all by default)."""
        settings, patches = self.settings, self.settings.patches
        targets = settings.decoded_patches(settings.horizon if prefix is None else prefix)
        at_starts = time_of_day[:, self.patch_starts], day_of_week[:, self.patch_starts]
        rows = self.calendar.rows(*at_starts)
        contexts = self.calendar.context(rows)
        history_rows, target_rows = rows[:, :patches], rows[:, patches : patches + targets]
        last = slice(settings.history - 1, settings.history)
        last_row = self.calendar.rows(time_of_day[:, last], day_of_week[:, last])[:, 0]

        embedded = self.embedding(values)
        components = self.decomposition(embedded, contexts[:, :patches])
        refined = self.history.refine(embedded, components)
        projected = self.history.project(components, target_rows)
        forward, reverse = self.physical(
            values, refined, components.shock_activity, history_rows, target_rows, last_row
        )
        nodes = self.decomposition.nodes.weight
        functional = self.functional(
            components.background, refined, projected, nodes, contexts.mean(dim=1), target_rows
        )
        target = slice(patches, patches + targets)
        weights = self.fusion.weights(nodes, at_starts[0][:, target], at_starts[1][:, target])
        return Explanation(embedded, components, refined, projected, forward, reverse, functional, weights)
