"""Pathformer: multi-scale transformers with adaptive pathways (Chen, Zhang, Cheng, Shu et al.; ICLR 2024).

Idea: every layer offers experts that cut the history into patches of different sizes, and a router sends each window to
the two that suit it. An expert attends to the steps within each patch and to the patches among each other.

Read: the paper's abstract and `decisionintelligence/pathformer` (no licence file; `models`, `layers`, `utils/Other.py`,
`exp`, `scripts/multivariate`, and issue 15 of the released code). Sizes, rate and batch are those of Electricity. As
released, the router reads the first feature only and sends all nodes of a window the same way. No calendar is read.

Changed; `as_released` takes the first three back:
- The result of attention among patches goes back to its own node and step. The released code reads it in another order,
  which confuses nodes with steps wherever there is more than one node.
- The router's trend is that of the series without its seasonality, as issue 15 reads the paper; the code leaves it in.
- The outputs of the chosen experts are added with their weights. The released code takes exponentials, adds, and takes
  the logarithm; with the switch so do we, but without its overflow.
- Patches of 6, 4, 3 and 2 steps in all layers for histories of less than 48 steps, else those of Electricity, at most
  half the history. Where a size does not divide the history, the oldest step is repeated before it.
- The rate falls along a cosine; the original lets it rise over the first fifth of all steps.
- Left out because nothing depends on them: a convolution at the end of every layer, the batch normalisations that all
  scripts leave off, and the generated biases of keys.
"""

import math
from typing import Annotated

import torch
from einops import rearrange
from jaxtyping import Float, Int
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame, Targets
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import Attention, moving_average, normal_like, standardise, uniform_table
from candor.nets.shapes import Forecast, Hidden, Readings, Terms

SHORT_PATCHES = ((6, 4, 3, 2),) * 3
LONG_PATCHES = ((16, 12, 8, 32), (12, 8, 6, 4), (8, 6, 4, 2))
LEAST_LONG_HISTORY = 48

WITHIN_HEADS = 2
MEMORY, HIDDEN, RANK = 16, 64, 10  # what the weights of a node are made of
AVERAGED_STEPS = (4, 8, 12)
FREQUENCIES = 3
LEAST_NOISE = 0.01
BALANCE_WEIGHT = 0.01
SMALLEST_SQUARE = 1e-10
FIRST_RANGE = 0.02
DROPOUT, HIDDEN_DROPOUT = 0.1, 0.2

States = Float[Tensor, "batch time node width"]
Patches = Float[Tensor, "batch patch step node width"]


class PathformerSizes(Settings):
    """Sizes of Pathformer."""

    width: Annotated[int, Field(gt=0, multiple_of=WITHIN_HEADS)] = 16  # of the states of a step
    feed_forward: Hidden = 128
    patches: tuple[tuple[PositiveInt, ...], ...] | None = None  # of all experts of each layer, see `patches_for`
    chosen: PositiveInt = 2  # experts of a layer that work on a window
    as_released: bool = False  # whether order of steps, trend and sum of the experts are those of the released code

    @model_validator(mode="after")
    def _fits_together(self) -> "PathformerSizes":
        fewest = min((len(experts) for experts in self.patches or SHORT_PATCHES), default=0)
        if fewest < self.chosen:
            raise ValueError(f"every layer must have at least as many patch sizes as are chosen ({self.chosen})")
        return self


@baselines.register("pathformer")
class Pathformer(BaselineNetwork):
    """Layers of experts and a router each, and one linear layer to the horizon that all nodes share."""

    sizes = PathformerSizes()
    tiny = PathformerSizes(width=4, feed_forward=8, patches=((6, 4, 2),))
    needs_whole_batches = True  # how evenly experts are used shows in a whole batch only
    recipe = BaselineRecipe.of(epochs=50, batch=16, learning_rate=1e-3, schedule="cosine", patience=10)

    def __init__(self, sizes: PathformerSizes, frame: Frame) -> None:
        super().__init__()
        self.embedding = nn.Linear(1, sizes.width)
        self.layers = nn.ModuleList(
            PathwayLayer(sizes, frame, experts) for experts in patches_for(sizes, frame.history)
        )
        self.head = nn.Linear(frame.history * sizes.width, frame.horizon)

    def forward(self, values: Readings, *more: Tensor | None) -> Forecast:
        return self.read(values)[0]

    def read(self, values: Readings) -> tuple[Forecast, Tensor]:
        """Return the forecast, and how unevenly windows were spread over experts, summed over the layers."""
        scores, mean, deviation = standardise(values)
        states, unevenness = self.embedding(scores[..., None]), values.new_zeros(())
        for layer in self.layers:
            states, more = layer(states)
            unevenness = unevenness + more
        forecast = self.head(rearrange(states, "b t n w -> b n (t w)"))
        return forecast.transpose(1, 2) * deviation + mean, unevenness

    def objective(self, inputs: tuple[Tensor, ...], targets: Targets) -> tuple[Forecast, Terms]:
        """Return the forecast, its error, and a term that keeps all experts in use."""
        forecast, unevenness = self.read(inputs[0])
        return forecast, {
            "prediction": targets.error(forecast),
            "balance": BALANCE_WEIGHT * targets.unit * targets.share * unevenness,  # beside an error in z-scores
        }


class PathwayLayer(nn.Module):
    """The outputs of the chosen experts for each window, weighted by the router and added to its input."""

    def __init__(self, sizes: PathformerSizes, frame: Frame, patches: tuple[int, ...]) -> None:
        super().__init__()
        self.as_released = sizes.as_released
        self.router = PathwayRouter(sizes, frame, len(patches))
        self.experts = nn.ModuleList(PatchExpert(sizes, frame, patch) for patch in patches)

    def forward(self, states: States) -> tuple[States, Tensor]:
        chosen, logits, unevenness = self.router(states[..., 0])
        seen = states.new_zeros(*chosen.shape, *states.shape[1:])
        for number, expert in enumerate(self.experts):
            windows, places = (chosen == number).nonzero(as_tuple=True)
            if len(windows):
                seen[windows, places] = expert(states[windows])
        if self.as_released:
            together = (seen + logits.log_softmax(dim=1)[..., None, None, None]).logsumexp(dim=1)
        else:
            together = torch.einsum("bc...,bc->b...", seen, logits.softmax(dim=1))
        return states + together, unevenness


class PathwayRouter(nn.Module):
    """Chooses experts by the course of all nodes together; in training with noise, so that all are tried."""

    def __init__(self, sizes: PathformerSizes, frame: Frame, experts: int) -> None:
        super().__init__()
        self.chosen, self.as_released = sizes.chosen, sizes.as_released
        self.averaged = tuple(min(steps, frame.history) for steps in AVERAGED_STEPS)
        self.mixture = nn.Linear(1, len(AVERAGED_STEPS))
        self.over_nodes = nn.Linear(frame.nodes, 1)
        self.logits = nn.Linear(frame.history, experts)
        self.noise = nn.Linear(frame.history, experts)

    def forward(
        self, series: Readings
    ) -> tuple[Int[Tensor, "batch chosen"], Float[Tensor, "batch chosen"], Float[Tensor, ""]]:
        """Return the chosen experts of every window, their logits, and how unevenly experts are used."""
        season = seasonality(series)
        rows = (series if self.as_released else series - season).transpose(1, 2)
        averages = torch.stack([moving_average(rows, steps) for steps in self.averaged], dim=-1)
        trend = (averages * self.mixture(rows[..., None]).softmax(dim=-1)).sum(dim=-1).transpose(1, 2)
        course = self.over_nodes(series + season + trend)[..., 0]  # batch time
        clean = self.logits(course)
        deviation = F.softplus(self.noise(course)) + LEAST_NOISE
        noisy = clean + deviation * normal_like(clean) if self.training else clean
        ranked, order = noisy.sort(dim=1, descending=True, stable=True)
        top, chosen = ranked[:, : self.chosen], order[:, : self.chosen]
        if not self.training or self.chosen == clean.shape[1]:
            loads = torch.zeros_like(clean).scatter(1, chosen, 1.0).sum(dim=0)
        else:  # how likely each expert is chosen if its own noise alone is drawn again
            last_in, first_out = ranked[:, self.chosen - 1, None], ranked[:, self.chosen, None]
            others_best = torch.where(noisy > first_out, first_out, last_in)
            loads = torch.special.ndtr((clean - others_best) / deviation).sum(dim=0)
        importance = torch.zeros_like(clean).scatter(1, chosen, top.softmax(dim=1)).sum(dim=0)
        return chosen, top, squared_variation(importance) + squared_variation(loads)


class PatchExpert(nn.Module):
    """Attention within patches and among patches of one size, and a feed-forward layer; node by node."""

    def __init__(self, sizes: PathformerSizes, frame: Frame, patch: int) -> None:
        super().__init__()
        patches = math.ceil(frame.history / patch)
        flat = patch * sizes.width
        self.patch, self.repeated, self.as_released = patch, patches * patch - frame.history, sizes.as_released
        self.within = WithinPatches(sizes.width, frame.nodes, patches)
        self.to_steps = nn.Linear(patches, frame.history)
        self.embedding = nn.Linear(flat, flat)
        self.positions = uniform_table(patches, flat, bound=FIRST_RANGE)
        self.among = Attention(flat, sizes.width, dropout=0.0)
        self.first = nn.Linear(sizes.width, sizes.feed_forward)
        self.second = nn.Linear(sizes.feed_forward, sizes.width)
        self.dropout, self.hidden_dropout = Dropout(DROPOUT), Dropout(HIDDEN_DROPOUT)

    def forward(self, states: States) -> States:
        oldest = states[:, :1].expand(-1, self.repeated, -1, -1)
        patches = rearrange(torch.cat([oldest, states], dim=1), "b (t p) n w -> b t p n w", p=self.patch)
        within = torch.einsum("bpnw,tp->btnw", self.within(patches), self.to_steps.weight)
        within = within + self.to_steps.bias[:, None, None]
        both = self.dropout(states + within + self._among_patches(patches)[:, self.repeated :])
        return both + self.second(self.hidden_dropout(F.gelu(self.first(both))))

    def _among_patches(self, patches: Patches) -> States:
        batch, count, steps, nodes, width = patches.shape
        tokens = self.embedding(rearrange(patches, "b t p n w -> (b n) t (p w)"))
        tokens = self.dropout(tokens + self.positions)
        found = self.dropout(self.among(tokens, tokens))
        if self.as_released:
            return found.reshape(batch, count * steps, nodes, width)
        return rearrange(found, "(b n) t (p w) -> b (t p) n w", n=nodes, p=steps)


class WithinPatches(nn.Module):
    """Attention of a learned query of every patch and node to its steps; keys and values have weights of the node."""

    def __init__(self, width: int, nodes: int, patches: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(MEMORY)
        self.embeddings = nn.Parameter(torch.rand(patches, nodes, MEMORY))
        self.query = uniform_table(patches, MEMORY, width, bound=bound)
        self.query_bias = uniform_table(patches, 1, width, bound=bound)
        self.memory = nn.Parameter(torch.randn(nodes, MEMORY))
        maps = (nn.Linear(MEMORY, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, RANK**2))
        self.generator = nn.Sequential(maps[0], nn.Tanh(), maps[1], nn.Tanh(), maps[2])
        low, bound = 1 / math.sqrt(RANK), 1 / math.sqrt(width)
        self.left = uniform_table(2, width, RANK, bound=low)  # of keys and of values
        self.right = uniform_table(2, RANK, width, bound=bound)
        self.value_bias = uniform_table(RANK**2, width, bound=bound)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, patches: Patches) -> Float[Tensor, "batch patch node width"]:
        queries = self.embeddings @ self.query + self.query_bias  # patch node width
        steps = torch.cat([queries[:, None].expand(len(patches), -1, -1, -1, -1), patches], dim=2)
        made = self.generator(self.memory)  # node rank^2
        maps = torch.einsum("kwr,nrs,ksv->knwv", self.left, made.unflatten(1, (RANK, RANK)), self.right)
        keys, values = torch.einsum("bpsnw,knwv->kbpsnv", steps, maps)
        values = values + made @ self.value_bias
        queries = rearrange(queries, "p n (h d) -> p n h d", h=WITHIN_HEADS)
        keys, values = (rearrange(part, "b p s n (h d) -> b p s n h d", h=WITHIN_HEADS) for part in (keys, values))
        scores = torch.einsum("pnhd,bpsnhd->bpnhs", queries, keys) / math.sqrt(queries.shape[-1])
        seen = torch.einsum("bpnhs,bpsnhd->bpnhd", scores.softmax(dim=-1), values)
        return self.second(F.relu(self.first(seen.flatten(3))))


def patches_for(sizes: PathformerSizes, history: int) -> tuple[tuple[int, ...], ...]:
    """Return the patch sizes of all layers, none longer than half the history."""
    layers = sizes.patches or (SHORT_PATCHES if history < LEAST_LONG_HISTORY else LONG_PATCHES)
    return tuple(tuple(max(1, min(patch, history // 2)) for patch in experts) for experts in layers)


def seasonality(series: Readings) -> Readings:
    """Return the sum of the strongest waves of every series, its level and its fastest wave left aside."""
    time = series.shape[1]
    spectrum = torch.fft.rfft(series, dim=1)
    waves = spectrum[:, 1 : 1 + (time - 1) // 2]
    strongest = 1 + waves.abs().topk(min(FREQUENCIES, waves.shape[1]), dim=1).indices
    kept = torch.zeros_like(spectrum).scatter(1, strongest, spectrum.gather(1, strongest))
    return torch.fft.irfft(kept, n=time, dim=1)


def squared_variation(amounts: Float[Tensor, " expert"]) -> Tensor:
    """Return the variance of amounts in units of their squared mean; of a single one, zero."""
    if len(amounts) == 1:
        return amounts.new_zeros(())
    return amounts.var() / (amounts.mean().square() + SMALLEST_SQUARE)
