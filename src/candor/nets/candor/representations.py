"""Section "Context-Adaptive Forecast Fusion": what is fused, and what it is made of.

| symbol | code | shape |
|---|---|---|
| F^func, F->, F<- | by_branch | batch node target forecast |
| lambda | fusion_weights | batch node target branch |
"""

from collections.abc import Iterator
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from candor.nets.candor.decomposition import States
from candor.nets.candor.history import Forecasts

Predictions = Float[Tensor, "batch node target hidden"]


@dataclass(frozen=True)
class Representations:
    """The forecast representations of the branches and the weights they are fused with.

    Args:
        by_branch: the representations by branch, in the order of the fusion weights.
        fusion_weights: how much each branch counts.
    """

    by_branch: dict[str, Forecasts]
    fusion_weights: Float[Tensor, "batch node target branch"]

    @property
    def branches(self) -> tuple[Forecasts, ...]:
        """The branches in the order of the fusion weights."""
        return tuple(self.by_branch.values())


@dataclass(frozen=True)
class ForecastInputs:
    """What representations are made of. They are eight times as wide as this, so they are made block by block.

    Args:
        components: after normalisation; none without the functional branch, which alone reads them here.
        context: what related nodes brought, C^func; None without the functional branch.
        descriptor: h^B; None without the functional branch.
        predictions: states that the paths predict, by direction.
        nodes: the node table e.
        target_rows: calendar rows at the target patches.
        clock: time of day, day of week and, if the network is given it, week of the year at the target patches.
    """

    components: tuple[States, ...]
    context: States | None
    descriptor: Float[Tensor, "batch node relation"] | None
    predictions: dict[str, Predictions]
    nodes: Float[Tensor, "node hidden"]
    target_rows: Float[Tensor, "batch target twice_hidden"]
    clock: tuple[Int[Tensor, "batch target"], ...]

    def differentiable(self) -> list[Tensor]:
        """Returns the tensors that gradients flow into: those by sample and node first, then nodes and rows."""
        functional = [part for part in (self.context, self.descriptor) if part is not None]
        return [*self.components, *functional, *self.predictions.values(), self.nodes, self.target_rows]

    def with_differentiable(self, tensors: list[Tensor], samples: slice = slice(None)) -> "ForecastInputs":
        """Returns the same with other tensors in place of those of `differentiable`, which may be of some samples."""
        given = iter(tensors)
        return ForecastInputs(
            components=tuple(next(given) for _ in self.components),
            context=None if self.context is None else next(given),
            descriptor=None if self.descriptor is None else next(given),
            predictions={direction: next(given) for direction in self.predictions},
            nodes=next(given),
            target_rows=next(given),
            clock=tuple(index[samples] for index in self.clock),
        )

    def block(self, samples: slice, nodes: slice) -> "ForecastInputs":
        """Returns the part of some samples and some nodes."""
        *of_both, table, rows = self.differentiable()
        parts = [*(tensor[samples, nodes] for tensor in of_both), table[nodes], rows[samples]]
        return self.with_differentiable(parts, samples)

    def blocks(self, rows: int) -> Iterator[tuple[slice, slice]]:
        """Yields samples and nodes of blocks of about `rows` rows of the representations each."""
        (samples, targets, _), nodes = self.target_rows.shape, len(self.nodes)
        many_samples = max(1, rows // (nodes * targets))
        many_nodes = nodes if many_samples > 1 else max(1, rows // targets)
        for sample in range(0, samples, many_samples):
            for node in range(0, nodes, many_nodes):
                yield slice(sample, sample + many_samples), slice(node, node + many_nodes)
