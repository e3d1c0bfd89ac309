"""Sizes of the model, its patch grid, and the coefficients of its objective."""

from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from candor.core.settings import Settings

Branch = Literal["functional", "forward", "reverse"]
Rain = Literal["unread", "added", "alone"]


class ModelSettings(Settings):
    """Everything that the shape of the network depends on; the paper's symbol ends each line."""

    nodes: PositiveInt
    """Sensors, N."""
    history: PositiveInt
    """Steps that are read, L."""
    horizon: PositiveInt
    """Steps that are forecast, H."""
    patch_length: PositiveInt
    """Steps of a patch, l."""
    patch_stride: PositiveInt
    """Steps from one patch to the next, s."""
    hidden: PositiveInt = 32
    """Width of the states of a patch, D."""
    forecast_width: PositiveInt = 256
    """Width of forecast representations, D_f."""
    head_width: PositiveInt = 512
    """Hidden width of the prediction head, D_o."""
    node_width: PositiveInt = 64
    """Width of the directional node embeddings, D_e."""
    relation_width: PositiveInt = 32
    """Width of the relation descriptors, D_b."""
    value_width: PositiveInt = 64
    """Width inside the value maps of the functional branch."""
    kernel: PositiveInt = 3
    """Patches that a temporal convolution sees, K."""
    temporal_span: int = Field(2, ge=1, le=4)
    """Patches in the window of a propagation feature, K_t."""
    spatial_orders: int = Field(2, ge=1, le=3)
    """Longest walk along edges, K_s."""
    pairs: PositiveInt = 16
    """Pairs of neighbour and relation channel kept per node, k."""
    relations: NonNegativeInt = 4
    """Relation channels, R_rel; without any the functional branch reads no other sensor."""
    heads: PositiveInt = 4
    """Attention heads."""
    dropout: float = Field(0.1, ge=0.0, lt=1.0)
    """Share of activations dropped in training."""
    fusion_width: PositiveInt = 128
    """Hidden width of the fusion MLP."""
    shock_threshold: float = Field(0.1, ge=0.0)
    """Shock activity below which propagation is not modulated."""
    trend_weight: float = 0.5
    """Weight of trend compatibility in functional scores, eta."""
    rollout_gate: bool = True
    """Whether predicted states pass the node-calendar gate before they are fed back."""
    season: bool = False
    """Beyond the paper, for records of years: whether the calendar includes the week of the year."""

    decomposition: bool = True
    """Whether the past is decomposed; if not, its embedding replaces all components (w/o Decomp.)."""
    branches: tuple[Branch, ...] = ("functional", "forward", "reverse")
    """Branches whose forecasts are fused, in this order (w/o Physical, w/o Functional, Forward only, Reverse only)."""
    rain: Rain = "unread"
    """Whether rain over the history adds to the shock component (RainAdd) or replaces it (RainOnly)."""
    learned_operator: bool = True
    """Whether edges are weighed by learned affinities beside their support (if not: Raw adjacency)."""
    roles: bool = True
    """Whether there are maps that compare components with physical states; only the role loss uses them."""
    learned_fusion: bool = True
    """Whether branches are weighed by context, or all alike (avg Fusion)."""

    @model_validator(mode="after")
    def _fits_together(self) -> "ModelSettings":
        if not self.patch_stride <= self.patch_length <= self.history:
            raise ValueError(
                f"patch_stride <= patch_length <= history is needed, not {self.patch_stride}, {self.patch_length}, "
                f"{self.history}: every step must be covered and a patch must fit into the history"
            )
        if self.hidden % self.heads:
            raise ValueError(f"hidden ({self.hidden}) must be a multiple of heads ({self.heads})")
        if not self.branches or len(set(self.branches)) < len(self.branches):
            raise ValueError("branches must name at least one of functional, forward, reverse, and none of them twice")
        if self.reads_rain and not self.decomposition:
            raise ValueError("rain enters through the shock component, which needs decomposition=true")
        return self

    @property
    def directions(self) -> tuple[Branch, ...]:
        """The directions of propagation among the branches."""
        return tuple(branch for branch in self.branches if branch != "functional")

    @property
    def reads_rain(self) -> bool:
        """Whether the network is given rain beside the readings."""
        return self.rain != "unread"

    @property
    def gates_shocks(self) -> bool:
        """Whether gates find shocks in the readings."""
        return self.decomposition and self.rain != "alone"

    @property
    def patches(self) -> int:
        """Patches in the history, P."""
        return (self.history - self.patch_length) // self.patch_stride + 1

    @property
    def history_starts(self) -> list[int]:
        """First steps of the history patches, counted from the start of the window."""
        return [patch * self.patch_stride for patch in range(self.patches)]

    @property
    def uncovered(self) -> int:
        """Newest steps of the history that lie in no patch: none if patches fit into it."""
        return self.history - self.history_starts[-1] - self.patch_length

    @property
    def target_starts(self) -> list[int]:
        """First steps of the target patches, kappa_q, counted from the start of the window."""
        first = self.patches * self.patch_stride
        return list(range(first, self.history + self.horizon, self.patch_stride))

    @property
    def target_patches(self) -> int:
        """Target patches, P_out."""
        return len(self.target_starts)

    def decoded_patches(self, prefix: int) -> int:
        """Return how many target patches begin within the first `prefix` steps of the horizon."""
        return sum(start < self.history + prefix for start in self.target_starts)


class LossWeights(Settings):
    """The coefficients of the terms; defaults are the paper's for traffic."""

    branch: NonNegativeFloat = 0.2
    history: NonNegativeFloat = 0.2
    separation: NonNegativeFloat = 0.2
    background: NonNegativeFloat = 1e-4
    shock: NonNegativeFloat = 1e-4
    reconstruction: NonNegativeFloat = 0.1
    role_background: NonNegativeFloat = 0.2
    role_accumulation: NonNegativeFloat = 0.2
    role_release: NonNegativeFloat = 0.2
