"""The small operations of the paper's equations, written out: affine maps, norms, recurrence, attention, selection."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from oracle_parameters import OracleSettings, target_starts
from torch import Tensor

Parameters = Mapping[str, Tensor]
Activation = Callable[[Tensor], Tensor]

LAYER_NORM_EPSILON = 1e-5
ROW_NORM_FLOOR = 1e-300


@dataclass(frozen=True)
class OracleInputs:
    """Everything a part of the model may read: parameters, sizes, network and one batch."""

    parameters: Parameters
    settings: OracleSettings
    adjacency: Tensor
    values: Tensor
    time_of_day: Tensor
    day_of_week: Tensor

    def calendar_rows(self, steps: list[int], tables: str = "calendar") -> Tensor:
        """Returns `[time of day || day of week]` at the given steps of the window, (batch, step, 2 hidden)."""
        time_of_day = self.parameters[f"{tables}.time_of_day.weight"][self.time_of_day[:, steps]]
        day_of_week = self.parameters[f"{tables}.day_of_week.weight"][self.day_of_week[:, steps]]
        return torch.cat([time_of_day, day_of_week], dim=-1)

    def calendar_context(self, steps: list[int]) -> Tensor:
        """Returns m, the calendar MLP at the given steps of the window, (batch, step, hidden)."""
        return mlp(self.parameters, "calendar.mlp", self.calendar_rows(steps))

    def for_each_node(self, rows: Tensor) -> Tensor:
        """Returns rows (batch, patch, feature) repeated for every node, (batch, node, patch, feature)."""
        return rows[:, None].expand(-1, self.settings.nodes, -1, -1)

    def for_each_patch(self, rows: Tensor, patches: int) -> Tensor:
        """Returns rows (node, feature) repeated for every sample and patch, (batch, node, patch, feature)."""
        return rows[None, :, None].expand(len(self.values), -1, patches, -1)


def gelu(inputs: Tensor) -> Tensor:
    """Returns GELU in its exact form, x times the normal distribution function."""
    return 0.5 * inputs * (1 + torch.erf(inputs / math.sqrt(2)))


def linear(parameters: Parameters, name: str, inputs: Tensor) -> Tensor:
    """Returns W x + b, or W x where the map has no bias."""
    mapped = inputs @ parameters[f"{name}.weight"].T
    return mapped + parameters[f"{name}.bias"] if f"{name}.bias" in parameters else mapped


def mlp(parameters: Parameters, name: str, inputs: Tensor, activation: Activation = gelu) -> Tensor:
    """Returns two affine maps with an activation between them."""
    return linear(parameters, f"{name}.second", activation(linear(parameters, f"{name}.first", inputs)))


def over_patches(parameters: Parameters, name: str, sequence: Tensor) -> Tensor:
    """Returns an affine map of the patch axis, P history patches to P_out target patches."""
    return linear(parameters, name, sequence.transpose(-1, -2)).transpose(-1, -2)


def layer_norm(parameters: Parameters, name: str, inputs: Tensor) -> Tensor:
    """Returns the features of each row standardised by their own mean and population variance, scaled and shifted."""
    centred = inputs - inputs.mean(dim=-1, keepdim=True)
    variance = (centred**2).mean(dim=-1, keepdim=True)
    standardised = centred / torch.sqrt(variance + LAYER_NORM_EPSILON)
    return standardised * parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def causal_convolution(parameters: Parameters, name: str, sequence: Tensor) -> Tensor:
    """Returns a depthwise convolution over patches, zeros before the first; the last tap meets the current patch."""
    weight = parameters[f"{name}.weight"]  # (hidden, 1, kernel)
    kernel = weight.shape[-1]
    outputs = []
    for patch in range(sequence.shape[-2]):
        total = torch.zeros_like(sequence[..., 0, :]) + parameters[f"{name}.bias"]
        for tap in range(kernel):
            position = patch - (kernel - 1) + tap
            if position >= 0:
                total = total + weight[:, 0, tap] * sequence[..., position, :]
        outputs.append(total)
    return torch.stack(outputs, dim=-2)


def difference(sequence: Tensor) -> Tensor:
    """Returns the change from the patch before, zero at the first patch."""
    patches = range(1, sequence.shape[-2])
    changes = [sequence[..., patch, :] - sequence[..., patch - 1, :] for patch in patches]
    return torch.stack([torch.zeros_like(sequence[..., 0, :]), *changes], dim=-2)


def gru(parameters: Parameters, name: str, sequence: Tensor) -> Tensor:
    """Returns the hidden state after every patch, starting from zero."""
    state = torch.zeros_like(sequence[..., 0, :])
    states = []
    for patch in range(sequence.shape[-2]):
        from_input = sequence[..., patch, :] @ parameters[f"{name}.weight_ih"].T + parameters[f"{name}.bias_ih"]
        from_state = state @ parameters[f"{name}.weight_hh"].T + parameters[f"{name}.bias_hh"]
        input_reset, input_update, input_new = from_input.chunk(3, dim=-1)
        state_reset, state_update, state_new = from_state.chunk(3, dim=-1)
        reset = torch.sigmoid(input_reset + state_reset)
        update = torch.sigmoid(input_update + state_update)
        new = torch.tanh(input_new + reset * state_new)
        state = (1 - update) * new + update * state
        states.append(state)
    return torch.stack(states, dim=-2)


def sinusoidal_positions(count: int, width: int, like: Tensor) -> Tensor:
    """Returns the encoding of positions 0 to count - 1, (count, width): sine at even features, cosine at odd ones."""
    rows = []
    for position in range(count):
        row = []
        for feature in range(width):
            angle = position / 10000 ** (2 * (feature // 2) / width)
            row.append(math.sin(angle) if feature % 2 == 0 else math.cos(angle))
        rows.append(row)
    return torch.tensor(rows, dtype=like.dtype)


def causal_attention(parameters: Parameters, name: str, sequence: Tensor, heads: int) -> Tensor:
    """Returns multi-head attention in which every patch sees itself and the patches before it."""
    projected = sequence @ parameters[f"{name}.in_weight"].T + parameters[f"{name}.in_bias"]
    query, key, value = projected.chunk(3, dim=-1)
    width = sequence.shape[-1] // heads
    outputs = []
    for patch in range(sequence.shape[-2]):
        results = []
        for head in range(heads):
            features = slice(head * width, (head + 1) * width)
            seen = key[..., : patch + 1, features]
            scores = (seen @ query[..., patch, features].unsqueeze(-1)).squeeze(-1) / math.sqrt(width)
            weights = torch.softmax(scores, dim=-1)
            results.append((weights.unsqueeze(-1) * value[..., : patch + 1, features]).sum(dim=-2))
        outputs.append(torch.cat(results, dim=-1))
    return linear(parameters, f"{name}.out", torch.stack(outputs, dim=-2))


def row_norm(matrix: Tensor) -> Tensor:
    """Returns the matrix with every row divided by its sum; zero rows stay zero."""
    floor = max(ROW_NORM_FLOOR, torch.finfo(matrix.dtype).tiny)  # single precision cannot hold 1e-300
    return matrix / matrix.sum(dim=-1, keepdim=True).clamp(min=floor)


def top_k_softmax(scores: Tensor, pairs: int) -> Tensor:
    """Returns the weights pi of one sample, (node, node, channel), from scores of the same shape.

    For every receiving node the best `pairs` pairs of another node and a channel share a softmax.
    """
    nodes, _, channels = scores.shape
    known = scores.tolist()
    weights = torch.zeros_like(scores)
    for receiver in range(nodes):
        others = [source for source in range(nodes) if source != receiver]
        ranked = [
            (known[receiver][source][channel], source, channel) for source in others for channel in range(channels)
        ]
        chosen = sorted(ranked, reverse=True)[: min(pairs, len(ranked))]
        if not chosen:
            continue
        best = torch.stack([scores[receiver, source, channel] for _, source, channel in chosen])
        for (_, source, channel), share in zip(chosen, torch.softmax(best, dim=0), strict=True):
            weights[receiver, source, channel] = share
    return weights


def overlap_average(patches: Tensor, settings: OracleSettings, prefix: int) -> Tensor:
    """Returns the forecast of the first `prefix` steps, (batch, prefix, node), from patches (batch, node, patch, step).

    The divisor counts the covering patches of the full grid, also where only its first patches were decoded.
    """
    starts = target_starts(settings)
    steps = []
    for step in range(1, prefix + 1):
        covering = [q for q, start in enumerate(starts) if 0 <= settings.history + step - 1 - start < patches.shape[-1]]
        total = torch.zeros_like(patches[:, :, 0, 0])
        for q in covering:
            total = total + patches[:, :, q, settings.history + step - 1 - starts[q]]
        steps.append(total / max(1, len(covering)))
    return torch.stack(steps, dim=1)
