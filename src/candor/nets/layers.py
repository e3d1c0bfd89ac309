"""Layers and functions that several networks share."""

import math
from collections.abc import Callable, Iterator

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK
from candor.data.windows import Windows
from candor.nets.dropout import Dropout, current_generator
from candor.nets.shapes import Bins, EncoderSizes, Graph, Readings, Tokens
from candor.nets.trainable import tensors_of

Groups = Float[Tensor, "batch group place width"]
Places = Int[Tensor, "*shape"]

NORM_FLOOR = 1e-5
LEAST_PATCHES = 4  # without overlap; short histories have shorter patches
_WINDOWS_AT_A_TIME = 1024
_VARIANCE_FLOOR = 1e-5


# Perceptrons and attention


class Mlp(nn.Module):
    """Linear, activation, dropout, Linear."""

    def __init__(
        self, inputs: int, hidden: int, outputs: int, dropout: float, activation: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, outputs)
        self.activation = activation or nn.GELU()
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:
        return self.finish(self.first(inputs))

    def finish(self, hidden: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows outputs"]:
        """Return the output for the sum of the first layer, for callers that compute it part by part."""
        return self.second(self.dropout(self.activation(hidden)))


def split_linear(layer: nn.Linear, *widths: int) -> tuple[Tensor, ...]:
    """Return the blocks of a layer's weight that belong to the parts of a concatenated input.

    W [x || y] = W_x x + W_y y: parts that are shared by nodes, samples or patches are multiplied once and broadcast.
    """
    if sum(widths) != layer.in_features:
        raise ValueError(f"parts of widths {widths} do not make up {layer.in_features} inputs")
    return torch.split(layer.weight, list(widths), dim=1)


def sinusoidal_positions(count: int, width: int) -> Float[Tensor, "count width"]:
    """Return encodings of positions 0, 1, ...: sine at even features, cosine at odd (eq. app_fusion_position)."""
    position = torch.arange(count, dtype=torch.float64)[:, None]
    feature = torch.arange(width)
    angle = position / 10000 ** ((feature - feature % 2) / width)
    return torch.where(feature % 2 == 0, angle.sin(), angle.cos()).to(torch.get_default_dtype())


def attend(
    queries: Float[Tensor, "#rows token width"],
    keys: Float[Tensor, "rows token2 width"],
    values: Float[Tensor, "rows token2 width"],
    heads: int,
    dropout: Dropout | None = None,
    mask: Bool[Tensor, "token token2"] | None = None,
) -> Tokens:
    """Return scaled dot-product attention of several heads (Vaswani et al. 2017), the heads side by side.

    Dropout is applied to the weights; the mask says which tokens may attend to which.
    """
    queries, keys, values = (rearrange(part, "r t (h d) -> r h t d", h=heads) for part in (queries, keys, values))
    if dropout is None and mask is None:
        seen = F.scaled_dot_product_attention(queries, keys, values)
    else:
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
        weights = scores.softmax(dim=-1)
        seen = (weights if dropout is None else dropout(weights)) @ values
    return rearrange(seen, "r h t d -> r t (h d)")


class Attention(nn.Module):
    """Multi-head attention with biases and dropout of its weights."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.dropout = Dropout(dropout)

    def forward(self, queries: Float[Tensor, "#rows token width"], source: Tokens) -> Tokens:
        keys, values = self.key_value(source).chunk(2, dim=-1)
        return self.out(attend(self.query(queries), keys, values, self.heads, self.dropout))


class GroupAttention(nn.Module):
    """Multi-head attention among the places of each group, or from them to the places of a source in each group."""

    def __init__(self, width: int, heads: int, has_bias: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias=has_bias) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(self, states: Groups, source: Groups | None = None) -> Groups:
        places = states.flatten(0, 1)
        source = places if source is None else source.flatten(0, 1)
        return self.out(attend(self.query(places), self.key(source), self.value(source), self.heads)).view_as(states)


class EncoderLayer(nn.Module):
    """Attention among tokens, and a feed-forward layer; each is added and normalised."""

    def __init__(
        self, sizes: EncoderSizes, attention: nn.Module, norm: Callable[[int], nn.Module] = nn.LayerNorm
    ) -> None:
        super().__init__()
        self.attention = attention
        self.first = nn.Linear(sizes.width, sizes.feed_forward)
        self.second = nn.Linear(sizes.feed_forward, sizes.width)
        self.attention_norm, self.norm = norm(sizes.width), norm(sizes.width)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, tokens: Tokens) -> Tokens:
        return self.feed_forward(self.attention_norm(tokens + self.dropout(self.attention(tokens, tokens))))

    def feed_forward(self, tokens: Tokens) -> Tokens:
        """Return tokens after the second half of the layer."""
        return self.norm(tokens + self.dropout(self.second(self.dropout(F.gelu(self.first(tokens))))))


# Normalisation, series and patches


class FeatureNorm(nn.BatchNorm1d):
    """Batch normalisation of every feature; a single row, which has no deviation, uses the running statistics."""

    def forward(self, states: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
        rows = states.flatten(0, -2)
        if rows.shape[0] > 1:
            return super().forward(rows).view_as(states)
        running = self.running_mean, self.running_var, self.weight, self.bias
        return F.batch_norm(rows, *running, eps=self.eps).view_as(states)


def standardise(
    series: Float[Tensor, "*shape"], dim: int = 1, correction: int = 0
) -> tuple[Float[Tensor, "*shape"], Tensor, Tensor]:
    """Return series with mean 0 and deviation 1 within each window, their means and their deviations."""
    mean = series.mean(dim=dim, keepdim=True)
    deviation = (series.var(dim=dim, keepdim=True, correction=correction) + _VARIANCE_FLOOR).sqrt()
    return (series - mean) / deviation, mean, deviation


def moving_average(series: Float[Tensor, "row series time"], steps: int) -> Float[Tensor, "row series time"]:
    """Return the centred moving average; beyond its ends a series goes on with its first and last value."""
    longer = F.pad(series, (steps // 2, (steps - 1) // 2), mode="replicate")
    return F.avg_pool1d(longer, steps, stride=1)


def odd_at_most(size: int) -> int:
    """Return the largest odd number up to a size, at least 1: a window of so many steps has a middle."""
    return max(1, size - 1 + size % 2)


def patch_length(longest: int, history: int, least_patches: int = LEAST_PATCHES) -> int:
    """Return the steps of a patch, so few that a history has at least so many patches."""
    return max(1, min(longest, history // least_patches))


def cut_patches(series: Readings, patch: int) -> Float[Tensor, "batch node patch step"]:
    """Return patches side by side; where they do not fill the series its oldest steps are left out."""
    return rearrange(series[:, series.shape[1] % patch :], "b (t p) n -> b n t p", p=patch)


def normal_like(tensor: Tensor) -> Tensor:
    """Return standard normal numbers from the generator that dropout masks are drawn from."""
    return torch.empty_like(tensor).normal_(generator=current_generator())


def side_by_side(*parts: Float[Tensor, "*#rows _"]) -> Float[Tensor, "*rows width"]:
    """Return the features of all parts, each repeated along the axes that only others have."""
    rows = torch.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return torch.cat([part.expand(*rows, -1) for part in parts], dim=-1)


# Calendar and training windows


def calendar_series(time_of_day: Bins, day_of_week: Bins, steps: int) -> Float[Tensor, "batch time 2"]:
    """Return time of day and day of week of the first steps, each as a series from -1/2 to 1/2."""
    both = torch.stack([time_of_day / (BINS_PER_DAY - 1), day_of_week / (DAYS_PER_WEEK - 1)], dim=-1)
    return both[:, :steps] - 0.5


def with_calendar(values: Readings, *calendar: Float[Tensor, "batch time"]) -> Float[Tensor, "batch time node channel"]:
    """Return the channels of every reading: its value, and numbers that tell its time."""
    return torch.stack([values, *(series[:, :, None].expand_as(values) for series in calendar)], dim=-1)


def slot_of_day(time_of_day: Places, slots: int) -> Places:
    """Return the row of a table with so many rows a day."""
    return time_of_day * slots // BINS_PER_DAY


def slot_of_week(time_of_day: Places, day_of_week: Places, slots: int) -> Places:
    """Return the row of a table of the week with so many rows a day."""
    return day_of_week * slots + slot_of_day(time_of_day, slots)


def training_batches(training: Windows) -> Iterator[dict[str, Tensor]]:
    """Yield all training windows, as many at a time as fit into memory."""
    for begin in range(0, len(training), _WINDOWS_AT_A_TIME):
        yield tensors_of(training.batch(slice(begin, begin + _WINDOWS_AT_A_TIME)))


def training_rows(training: Windows) -> Iterator[tuple[Tensor, ...]]:
    """Yield values, masks, times of day and days of week of the rows that training windows read, each row once."""
    last = training.history - 1
    for number, batch in enumerate(training_batches(training)):
        fields = [batch[name] for name in ("inputs", "input_mask", "time_of_day", "day_of_week")]
        if number == 0:
            yield tuple(field[0, :last] for field in fields)
        yield tuple(field[:, last] for field in fields)


def weekly_sums(training: Windows, slots: int) -> tuple[Float[Tensor, "slot node"], Float[Tensor, "slot node"]]:
    """Return sums and count of the observed training readings in every slot of the week, in double precision."""
    sums = counts = torch.zeros(())
    for values, mask, time_of_day, day_of_week in training_rows(training):
        if not sums.ndim:
            sums, counts = torch.zeros(2, DAYS_PER_WEEK * slots, values.shape[1], dtype=torch.float64)
        rows = slot_of_week(time_of_day, day_of_week, slots)
        sums.index_add_(0, rows, torch.where(mask, values, 0.0).double())
        counts.index_add_(0, rows, mask.double())
    return sums, counts


# Tables and graphs


def xavier_table(*shape: int) -> nn.Parameter:
    """Return learned vectors with Xavier's uniform first values."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(shape)))


def uniform_table(*shape: int, bound: float) -> nn.Parameter:
    """Return learned vectors with uniform first values between a bound and its negative."""
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def hops(
    states: Float[Tensor, "*#rows node width"], graph: Float[Tensor, "*#rows node2 node"], count: int
) -> list[Tensor]:
    """Return states, and what one, two, ... steps over a graph, receiver x sender, bring to every node."""
    found = [states]
    for _ in range(count):
        found.append(graph @ found[-1])
    return found


def transitions(adjacency: Graph) -> Graph:
    """Return the shares of what each node sends, sender x receiver; a node without edges sends nothing."""
    sums = adjacency.sum(dim=1, keepdim=True)
    return torch.where(sums > 0, adjacency / sums.clamp(min=torch.finfo(sums.dtype).tiny), 0.0)


def scaled_by_degrees(adjacency: Graph) -> Graph:
    """Return the weights divided by the roots of the outgoing weights of both ends."""
    degree = adjacency.sum(dim=1)
    root = torch.where(degree > 0, degree.clamp(min=torch.finfo(degree.dtype).tiny).rsqrt(), 0.0)
    return root[:, None] * adjacency * root
