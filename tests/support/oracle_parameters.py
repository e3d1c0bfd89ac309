"""What the oracle is given: sizes, the grid of patches, parameters by name, and random problems to solve."""

from dataclasses import dataclass

import torch
from torch import Tensor

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class OracleSettings:
    """Sizes of one model; any object with these attributes serves the oracle as well."""

    nodes: int
    history: int
    horizon: int
    patch_length: int
    patch_stride: int
    hidden: int = 32
    forecast_width: int = 256
    head_width: int = 512
    node_width: int = 64
    relation_width: int = 32
    value_width: int = 64
    kernel: int = 3
    temporal_span: int = 2
    spatial_orders: int = 2
    pairs: int = 16
    relations: int = 4
    heads: int = 4
    dropout: float = 0.1
    fusion_width: int = 128
    shock_threshold: float = 0.1
    trend_weight: float = 0.5
    rollout_gate: bool = True


# A model on which laws can be checked in no time.
SMALL = OracleSettings(
    nodes=4,
    history=9,
    horizon=6,
    patch_length=3,
    patch_stride=2,
    hidden=8,
    forecast_width=10,
    head_width=12,
    node_width=6,
    relation_width=5,
    value_width=7,
    pairs=3,
    relations=2,
    heads=2,
    fusion_width=9,
)


def history_starts(settings: OracleSettings) -> list[int]:
    """Returns the first step of each of the P history patches, counted from the start of the input window."""
    patches = (settings.history - settings.patch_length) // settings.patch_stride + 1
    return [patch * settings.patch_stride for patch in range(patches)]


def target_starts(settings: OracleSettings) -> list[int]:
    """Returns kappa_q, the first step of each of the P_out target patches, counted from the start of the window."""
    starts = []
    start = len(history_starts(settings)) * settings.patch_stride
    while start < settings.history + settings.horizon:
        starts.append(start)
        start += settings.patch_stride
    return starts


def parameter_shapes(settings: OracleSettings) -> Shapes:
    """Returns the shape of every parameter by its name."""
    return {
        **_decomposition_shapes(settings),
        **_history_shapes(settings),
        **_physical_shapes(settings),
        **_functional_shapes(settings),
        **_output_shapes(settings),
    }


def _linear(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _mlp(name: str, inputs: int, hidden: int, outputs: int) -> Shapes:
    return {**_linear(f"{name}.first", inputs, hidden), **_linear(f"{name}.second", hidden, outputs)}


def _norm(name: str, width: int) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _gru(name: str, width: int) -> Shapes:
    weights = {f"{name}.weight_{side}": (3 * width, width) for side in ("ih", "hh")}
    return {**weights, **{f"{name}.bias_{side}": (3 * width,) for side in ("ih", "hh")}}


def _calendar_tables(name: str, width: int) -> Shapes:
    return {f"{name}.time_of_day.weight": (288, width), f"{name}.day_of_week.weight": (7, width)}


def _decomposition_shapes(settings: OracleSettings) -> Shapes:
    hidden = settings.hidden
    shapes = {
        **_linear("embedding.linear", settings.patch_length, hidden),
        **_norm("embedding.norm", hidden),
        **_calendar_tables("calendar", hidden),
        **_mlp("calendar.mlp", 2 * hidden, 2 * hidden, hidden),
        "decomposition.nodes.weight": (settings.nodes, hidden),
        **_linear("decomposition.node_projection", hidden, hidden),
    }
    for component in ("background", "accumulation", "release"):
        shapes[f"decomposition.{component}_convolution.weight"] = (hidden, 1, settings.kernel)
        shapes[f"decomposition.{component}_convolution.bias"] = (hidden,)
    for component in ("background", "accumulation", "release", "shock"):
        shapes |= _norm(f"decomposition.{component}_norm", hidden)
    for component in ("accumulation", "release"):
        shapes |= _mlp(f"decomposition.{component}_gate", 6 * hidden, 2 * hidden, hidden)
    for view in ("u", "v"):
        name = f"decomposition.shock_{view}"
        shapes |= _mlp(f"{name}.magnitude", 3 * hidden, 2 * hidden, 1)
        shapes |= _linear(f"{name}.node", hidden, hidden) | _linear(f"{name}.calendar", hidden, hidden)
        shapes |= _linear(f"{name}.first", 2 * hidden, 2 * hidden) | _linear(f"{name}.second", 2 * hidden, 1)
        shapes |= _linear(f"decomposition.shock_projection_{view}", hidden, hidden)
    return shapes


def _history_shapes(settings: OracleSettings) -> Shapes:
    hidden, width = settings.hidden, settings.forecast_width
    shapes = {**_linear("history.mix", 4 * hidden, hidden), "history.scale": (), **_norm("history.norm", hidden)}
    for component in ("background", "accumulation", "release", "shock"):
        patches, targets = len(history_starts(settings)), len(target_starts(settings))
        shapes |= _linear(f"history.temporal.{component}", patches, targets)
        shapes |= _linear(f"history.feature.{component}", hidden, width)
    shapes |= _linear("history.merge", 4 * width, width) | _norm("history.forecast_norm", width)
    return shapes | _mlp("history.calendar", 2 * hidden, width, width)


def _physical_shapes(settings: OracleSettings) -> Shapes:
    hidden, node_width, span = settings.hidden, settings.node_width, settings.temporal_span
    shapes: Shapes = {
        "physical.first_nodes.weight": (settings.nodes, node_width),
        "physical.second_nodes.weight": (settings.nodes, node_width),
        "physical.query.weight": (node_width, node_width),
        **{f"physical.keys.{position}.weight": (node_width, node_width) for position in range(span)},
        **_mlp("physical.window", settings.history, 2 * hidden, hidden),
        "physical.sample_query.weight": (hidden, 3 * hidden + node_width),
        "physical.sample_key.weight": (hidden, 3 * hidden + node_width),
        "physical.shock_strength": (),
    }
    for direction in ("forward", "reverse"):
        name = f"physical.{direction}_path"
        shapes |= _mlp(f"{name}.gate", node_width + 2 * hidden, 2 * hidden, 1) | _gru(f"{name}.gru", hidden)
        shapes[f"{name}.attention.in_weight"] = (3 * hidden, hidden)
        shapes[f"{name}.attention.in_bias"] = (3 * hidden,)
        shapes |= _linear(f"{name}.attention.out", hidden, hidden)
        shapes |= _linear(f"{name}.backcast", hidden, hidden) | _norm(f"{name}.norm", hidden)
        shapes[f"{name}.window_map.weight"] = (span * hidden, span * hidden)
        shapes |= _linear(f"{name}.merge", (settings.spatial_orders + 1) * hidden, hidden)
        shapes |= _linear(f"{name}.readout", hidden, settings.forecast_width)
    return shapes


def _functional_shapes(settings: OracleSettings) -> Shapes:
    hidden, relation, width = settings.hidden, settings.relation_width, settings.forecast_width
    shapes = {
        **_gru("functional.gru", hidden),
        **_mlp("functional.descriptor", 5 * hidden, 2 * hidden, relation),
        **_norm("functional.descriptor_norm", relation),
        **_mlp("functional.trend", 3 * hidden, 2 * hidden, relation),
        **_norm("functional.trend_norm", relation),
        **_linear("functional.node_context", hidden, hidden),
        **_mlp("functional.context", 2 * hidden, hidden, 2 * relation),
        **_norm("functional.relation_norm", relation),
        "functional.level_relations": (settings.relations, relation, relation),
        "functional.trend_relations": (settings.relations, relation, relation),
        "functional.relation_bias": (settings.relations,),
        **_linear("functional.reduce", hidden, settings.value_width),
    }
    for channel in range(settings.relations):
        shapes |= _linear(f"functional.channels.{channel}", settings.value_width, settings.value_width)
    return {
        **shapes,
        **_linear("functional.restore", settings.value_width, hidden),
        **_linear("functional.temporal", len(history_starts(settings)), len(target_starts(settings))),
        **_linear("functional.feature", hidden, width),
        **_norm("functional.context_norm", width),
        **_linear("functional.joint", 2 * width + relation + 3 * hidden, 2 * hidden),
        **_linear("functional.correction", 2 * hidden, width),
        **_linear("functional.gate", 2 * hidden, width),
        "functional.scale": (),
        **_norm("functional.norm", width),
    }


def _output_shapes(settings: OracleSettings) -> Shapes:
    hidden = settings.hidden
    shapes = {
        **_calendar_tables("fusion", hidden),
        **_mlp("fusion.mlp", 4 * hidden, settings.fusion_width, 3),
        **_linear("head.first", settings.forecast_width, settings.head_width),
        **_linear("head.second", settings.head_width, settings.patch_length),
    }
    for component in ("background", "accumulation", "release"):
        for side in ("component", "physical"):
            shapes[f"roles.{component}_{side}.weight"] = (hidden, hidden)
    return shapes


def random_parameters(settings: OracleSettings, seed: int, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Returns random values for every parameter, also for those that training starts at zero or the identity.

    The same seed gives the same numbers in every dtype, up to rounding.
    """
    generator = torch.Generator().manual_seed(seed)
    parameters = {}
    for name, shape in parameter_shapes(settings).items():
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        if name.endswith("norm.weight"):
            value = 1 + 0.2 * noise
        elif not shape:
            value = 0.5 + 0.1 * noise
        elif len(shape) == 1:
            value = 0.3 * noise
        elif any(table in name for table in ("nodes.weight", "time_of_day", "day_of_week")):
            value = 0.7 * noise
        else:
            value = noise / shape[-1] ** 0.5
        parameters[name] = value.to(dtype)
    return parameters


@dataclass(frozen=True)
class OracleProblem:
    """One batch with its network: adjacency (node, node), values and targets (batch, time, node), clock and mask."""

    adjacency: Tensor
    values: Tensor
    time_of_day: Tensor
    day_of_week: Tensor
    targets: Tensor
    mask: Tensor


def random_problem(
    settings: OracleSettings, seed: int, batch: int = 2, density: float = 0.5, self_loops: bool = False
) -> OracleProblem:
    """Returns a random batch in double precision on a random directed network, about a fifth of the targets missing.

    Consecutive steps have unrelated calendar positions, so that reading a wrong row shows.
    """
    generator = torch.Generator().manual_seed(seed)
    nodes, steps = settings.nodes, settings.history + settings.horizon

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    adjacency = torch.where(uniform(nodes, nodes) < density, 0.2 + uniform(nodes, nodes), 0.0)
    if not self_loops:
        adjacency = adjacency * (1 - torch.eye(nodes, dtype=torch.float64))
    return OracleProblem(
        adjacency=adjacency,
        values=torch.randn((batch, settings.history, nodes), generator=generator, dtype=torch.float64),
        time_of_day=torch.randint(288, (batch, steps), generator=generator),
        day_of_week=torch.randint(7, (batch, steps), generator=generator),
        targets=torch.randn((batch, settings.horizon, nodes), generator=generator, dtype=torch.float64),
        mask=uniform(batch, settings.horizon, nodes) < 0.8,
    )
