"""Section "Context-Adaptive Forecast Fusion": what is fused, and what it is made of.

| symbol | code | shape |
|---|---|---|
| F0 | projected | batch node target forecast |
| F^func, F->, F<- | functional, forward, reverse | batch node target forecast |
| lambda | fusion_weights | batch node target branch |
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jaxtyping import Float, Int
from torch import Tensor

from candor.model.decomposition import States
from candor.model.history import Forecasts

Predictions = Float[Tensor, "batch node target hidden"]


@dataclass(frozen=True)
class Representations:
    """The forecast representations of the branches and the weights they are fused with."""

    projected: Forecasts
    functional: Forecasts
    forward: Forecasts
    reverse: Forecasts
    fusion_weights: Float[Tensor, "batch node target branch"]

    @property
    def branches(self) -> tuple[Forecasts, Forecasts, Forecasts]:
        """The branches in the order of the fusion weights."""
        return self.functional, self.forward, self.reverse


@dataclass(frozen=True)
class ForecastInputs:
    """What representations are made of. They are eight times as wide as this, so they are made block by block."""

    components: tuple[States, States, States, States]
    context: States
    descriptor: Float[Tensor, "batch node relation"]
    forward: Predictions
    reverse: Predictions
    nodes: Float[Tensor, "node hidden"]
    target_rows: Float[Tensor, "batch target twice_hidden"]
    clock: tuple[Int[Tensor, "batch target"], ...]
    """Time of day, day of week and, if the network is given it, week of the year at the target patches."""

    def differentiable(self) -> list[Tensor]:
        """Returns the tensors that gradients flow into."""
        return [*self.components, *(getattr(self, name) for name in _DIFFERENTIABLE)]

    def with_differentiable(self, tensors: list[Tensor]) -> "ForecastInputs":
        """Returns the same with other tensors in place of those of `differentiable`."""
        four = tensors[0], tensors[1], tensors[2], tensors[3]
        others = dict(zip(_DIFFERENTIABLE, tensors[4:], strict=True))
        return replace(self, components=four, **others, clock=self.clock)

    def block(self, samples: slice, nodes: slice) -> "ForecastInputs":
        """Returns the part of some samples and some nodes."""

        def cut(name: str, tensor: Tensor) -> Tensor:
            if name == "nodes":
                return tensor[nodes]
            return tensor[samples] if name == "target_rows" else tensor[samples, nodes]

        first, second, third, fourth = (cut("components", component) for component in self.components)
        others = {name: cut(name, getattr(self, name)) for name in _DIFFERENTIABLE}
        clock = tuple(index[samples] for index in self.clock)
        return ForecastInputs((first, second, third, fourth), **others, clock=clock)

    def blocks(self, rows: int) -> Iterator[tuple[slice, slice]]:
        """Yields samples and nodes of blocks of about `rows` rows of the representations each."""
        samples, nodes, targets, _ = self.forward.shape
        many_samples = max(1, rows // (nodes * targets))
        many_nodes = nodes if many_samples > 1 else max(1, rows // targets)
        for sample in range(0, samples, many_samples):
            for node in range(0, nodes, many_nodes):
                yield slice(sample, sample + many_samples), slice(node, node + many_nodes)


_DIFFERENTIABLE = ("context", "descriptor", "forward", "reverse", "nodes", "target_rows")
