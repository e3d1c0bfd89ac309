"""How the shared network is made and trained."""

from pydantic import PositiveInt

from candor.nets.additive.settings import SharedSizes
from candor.nets.recipe import NetworkRecipe, TrainingSettings


class SharedRecipe(NetworkRecipe):
    """Sizes and training of the shared network."""

    sizes: SharedSizes = SharedSizes()
    """Of each network."""
    networks: PositiveInt | None = None
    """How many are trained one after the other and blended; None: as many as the budget lets learn to their end."""
    training: TrainingSettings = TrainingSettings(
        epochs=30, batch=16, optimiser="adamw", learning_rate=3e-3, weight_decay=1e-3, schedule="one-cycle",
        rate_warm_up=100, averaging=0.999, keeps_start=True, patience=6,
    )  # fmt: skip
    """Optimiser and schedules."""
