"""What CANDOR computed for one sensor on the way to one forecast, with times.

States are vectors of the network, as wide as its `hidden`; their size is the root mean square over that width.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
import torch
from einops import rearrange
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from candor.core.errors import InputError
from candor.data.panel import Panel
from candor.data.windows import Windows
from candor.forecasting.forecaster import refuse_unbounded
from candor.nets.candor.candor import Encoding
from candor.nets.candor.decomposition import COMPONENT_NAMES, Components
from candor.nets.candor.functional import FunctionalStates, resemblances
from candor.nets.candor.physical import PhysicalBranch
from candor.nets.candor.trainable import CandorTrainable, rain_in
from candor.nets.trainable import tensors_of

Direction = Literal["forward", "reverse"]
Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Span:
    """A stretch of steps: the times of its first and of its last one, on the local clock."""

    start: datetime
    end: datetime


@dataclass(frozen=True, eq=False)
class Component:
    """One of the four components of the sensor's recent past."""

    states: Singles  # after the norm, patch x hidden: what the rest of the network reads
    strength: Singles  # size of the states by patch; the norm brings it near that of its own learned scale
    raw_strength: Singles  # size before the norm by patch: how much of the component there was


@dataclass(frozen=True, eq=False)
class Gates:
    """How far the gates were open, 0 to 1, by patch."""

    accumulation: Singles  # mean over hidden
    release: Singles  # mean over hidden
    # of the residual from the background of the same patch, g_U; None where rain stands for shocks
    shock_current: Singles | None
    shock_following: Singles | None  # of the residual from the background of the next patch, g_V, or None

    def by_name(self) -> dict[str, Singles]:
        """Return the gates that there are, by name."""
        found = {
            "accumulation": self.accumulation,
            "release": self.release,
            "shock, against this background": self.shock_current,
            "shock, against the next": self.shock_following,
        }
        return {name: gate for name, gate in found.items() if gate is not None}

    @property
    def shock_activity(self) -> Singles | None:
        """The mean of the two shock gates, if there are any."""
        if self.shock_current is None or self.shock_following is None:
            return None
        return (self.shock_current + self.shock_following) / np.float32(2)


@dataclass(frozen=True, eq=False)
class Contribution:
    """What arrived at the last history patch along one edge from one position of the sender's window."""

    direction: Direction  # forward along the edges of the panel, or reverse, against them
    sensor: str  # id of the sender
    position: int  # place in the window of the sender, 0 is the oldest
    patch: Span  # the history patch of this position
    weight: float  # of the operator; those of all senders to one receiver sum to one at each position
    # affinity of the two sensors at this position, the same for all windows; None if none is learned
    shared_score: float | None
    sample_score: float | None  # affinity of the two sensors in this window; None if none is learned
    # the weight times what the sender has at this position; what comes along longer walks is not in it
    arrived: Singles
    size: float  # root mean square of what arrived


@dataclass(frozen=True)
class Peer:
    """A functional relation to another sensor, wherever that one stands."""

    sensor: str  # its id
    channel: int  # the relation channel that found it
    weight: float  # how much it counts; those of all peers sum to one
    resemblance: float  # of the two backgrounds, -1 to 1: the cosine of their descriptors


@dataclass(frozen=True)
class FusedPatch:
    """How much each branch counts in one target patch; the span is of the forecast steps that the patch covers."""

    span: Span
    functional: float = 0.0
    forward: float = 0.0
    reverse: float = 0.0


@dataclass(frozen=True, eq=False)
class ForecastExplanation:
    """The forecast of one sensor and where it came from."""

    sensor: str  # id of the sensor
    time: datetime  # of the first forecast step, on the local clock
    unit: str  # of the forecast
    times: tuple[datetime, ...]  # of the forecast steps
    forecast: Singles  # by step
    patches: tuple[Span, ...]  # the patches that the history was cut into, oldest first
    # background, accumulation, release and shock by name; none if the network does not decompose
    components: dict[str, Component]
    gates: Gates | None  # what chose accumulation, release and shock
    # what came along edges in one step, the largest first; self-loops contribute nothing
    contributions: tuple[Contribution, ...]
    peers: tuple[Peer, ...]  # functional relations, the heaviest first
    fusion: tuple[FusedPatch, ...]  # how much the branches count, by target patch


def find_sensor(panel: Panel, sensor: str) -> int:
    """Return the column of a sensor."""
    if sensor not in panel.sensor_ids:
        panel.select([sensor])  # says which sensors there are
    return panel.sensor_ids.index(sensor)


def find_origin(panel: Panel, time: datetime | str | None, history: int) -> int:
    """Return the row of the first step at or after a time; None means the row after the last one.

    Args:
        panel: the readings.
        time: on the local clock of the panel, or with an offset.
        history: rows that must be there before it.
    """
    length = panel.times.length
    origin = length if time is None else panel.times.index_of(time)
    if history <= origin <= length:
        return origin
    hint = "give a longer record"
    if history <= length:
        first, last = (panel.times.slice(row, row + 1).local[0].isoformat() for row in (history, length))
        hint = f"choose a time from {first} to {last}"
    raise InputError(
        f"a forecast from {time or 'the end of the record'} on cannot be explained: it needs the {history} steps "
        "before it, and they must be in the record",
        where=panel.name,
        hint=hint,
    )


def network_states(trainable: CandorTrainable, batch: dict[str, Tensor]) -> tuple[Encoding, Tensor]:
    """Return all states of the network for some windows, and the forecasts they give in the sensors' unit."""
    values, anchor = trainable.anchored(batch)
    network, scaler = trainable.network, trainable.scaler
    clock = batch["time_of_day"], batch["day_of_week"]
    states = network.encode(values, *clock, week_of_year=batch["week_of_year"], rain=rain_in(batch))
    scores: Tensor = network.head(states.fused, network.settings.horizon) + anchor
    return states, scores * scaler.deviation + scaler.mean


@torch.no_grad()
def explain_window(trainable: CandorTrainable, windows: Windows, panel: Panel, column: int) -> ForecastExplanation:
    """Return the explanation of the forecast of one sensor from the only window of `windows`."""
    (origin,) = windows.origins
    states, forecast = network_states(trainable, tensors_of(windows.batch(np.array([0]))))
    settings, ids = trainable.network.settings, panel.sensor_ids
    begin, end, length = int(origin) - settings.history, int(origin) + settings.horizon, settings.patch_length
    times = tuple(panel.times.slice(begin, end).local.to_pydatetime())
    patches = tuple(Span(times[start], times[start + length - 1]) for start in settings.history_starts)
    contributions = _contributions(trainable.network.physical, states, ids, patches, column)
    components, gates = split_history(states, column, settings.gates_shocks)
    covered = [
        Span(times[max(start, settings.history)], times[min(start + length, len(times)) - 1])
        for start in settings.target_starts
    ]
    weights = states.representations.fusion_weights[0, column].tolist()
    fused = (dict(zip(settings.branches, shares, strict=True)) for shares in weights)
    return ForecastExplanation(
        sensor=ids[column],
        time=times[settings.history],
        unit=panel.sensors[column].unit,
        times=times[settings.history :],
        forecast=refuse_unbounded(forecast[0, :, column].numpy(), panel.name),
        patches=patches,
        components=components,
        gates=gates,
        contributions=tuple(sorted(contributions, key=lambda one: one.size, reverse=True)),
        peers=_peers(states.functional, ids, column),
        fusion=tuple(FusedPatch(span, **shares) for span, shares in zip(covered, fused, strict=True)),
    )


def split_history(
    states: Encoding, column: int | slice, gates_shocks: bool
) -> tuple[dict[str, Component], Gates | None]:
    """Return the components of the history of one sensor, or of several, and what chose them; nothing if undivided.

    Args:
        states: of one window.
        column: of the sensor; of several sensors all arrays have one axis more, the first.
        gates_shocks: whether shocks are gated; else rain stands for them.
    """
    components = states.components
    if not isinstance(components, Components):
        return {}, None
    found = {}
    for name in COMPONENT_NAMES:
        normalised: Tensor = getattr(components, name)[0, column]
        raw: Tensor = getattr(components, f"raw_{name}")[0, column]
        found[name] = Component(normalised.numpy(), _size(normalised).numpy(), _size(raw).numpy())
    gates = Gates(
        accumulation=components.accumulation_gate[0, column].mean(dim=-1).numpy(),
        release=components.release_gate[0, column].mean(dim=-1).numpy(),
        shock_current=components.shock_gate_u[0, column].numpy() if gates_shocks else None,
        shock_following=components.shock_gate_v[0, column].numpy() if gates_shocks else None,
    )
    return found, gates


def _contributions(
    physical: PhysicalBranch | None, states: Encoding, ids: tuple[str, ...], patches: tuple[Span, ...], column: int
) -> Iterator[Contribution]:
    """Yield what arrived in one step along the edges of the directions that the network has."""
    if physical is None:
        return
    for direction, found in states.paths.items():
        path, support = physical.path(direction), physical.support(direction)
        edges = torch.nonzero((support.receiver == column) & (support.sender != column))[:, 0]
        senders = support.sender[edges]
        # The window of the last history patch; what would lie before the first patch is the first one again.
        patch_of = [max(len(patches) - path.span + position, 0) for position in range(path.span)]
        window = found.residual[0, senders][:, patch_of].flatten(1)
        mapped = F.relu(path.window_map(window))  # Psi
        mapped = rearrange(mapped, "edge (position hidden) -> edge position hidden", position=path.span)
        weights = found.weights[0][:, edges].T
        arrived = weights[..., None] * mapped
        sizes = _size(arrived)
        for place, edge in enumerate(edges.tolist()):
            for position, patch in enumerate(patch_of):
                yield Contribution(
                    direction="forward" if direction == "forward" else "reverse",
                    sensor=ids[int(senders[place])],
                    position=position,
                    patch=patches[patch],
                    weight=float(weights[place, position]),
                    shared_score=None if found.shared_scores is None else float(found.shared_scores[position, edge]),
                    sample_score=None if found.sample_scores is None else float(found.sample_scores[0, edge]),
                    arrived=arrived[place, position].numpy(),
                    size=float(sizes[place, position]),
                )


def _peers(functional: FunctionalStates | None, ids: tuple[str, ...], column: int) -> tuple[Peer, ...]:
    if functional is None:
        return ()
    columns = (functional.neighbour, functional.channel, functional.weights)
    alike = resemblances(functional.descriptor)[0, column].tolist()
    found = zip(*(states[0, column].tolist() for states in columns), strict=True)
    peers = (Peer(ids[neighbour], channel, weight, alike[neighbour]) for neighbour, channel, weight in found)
    return tuple(sorted(peers, key=lambda peer: peer.weight, reverse=True))


def _size(states: Tensor) -> Tensor:
    """Return the root mean square over hidden."""
    return states.square().mean(dim=-1).sqrt()
