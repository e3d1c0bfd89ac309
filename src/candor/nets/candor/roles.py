"""The maps that compare components with physical states.

| equation | where |
|---|---|
| app_projected_similarity | `Roles` |
"""

from torch import nn

from candor.nets.candor.settings import ModelSettings


class Roles(nn.Module):
    """Six linear maps, begun as the identity; only the role loss uses them (eq. app_projected_similarity)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        for component in ("background", "accumulation", "release"):
            for side in ("component", "physical"):
                self.add_module(f"{component}_{side}", nn.Linear(settings.hidden, settings.hidden, bias=False))
