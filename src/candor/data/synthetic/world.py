"""Everything about a synthetic network that is settled before its first step."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.data.panel import Edges
from candor.data.synthetic.background import Background, draw_background
from candor.data.synthetic.kinds import Kind
from candor.data.synthetic.network import Network, build_network
from candor.data.synthetic.recipe import Recipe
from candor.data.synthetic.twins import choose_twins
from candor.data.times import TimeAxis

ZONE = "UTC-08:00"  # a fixed offset: no day of a synthetic network has 23 or 25 hours
START = datetime(2020, 1, 1, 8, tzinfo=UTC)  # midnight there
_MOST_ARRIVING = 0.8  # share of what the upstream sensors have; below 1 nothing can build up


@dataclass(frozen=True, eq=False)
class World:
    """A network and the laws it will follow.

    Args:
        recipe: what it was made from.
        times: of the readings.
        network: sensors and edges.
        delays: per edge, in steps, at least 1.
        attenuation: per edge, the share of a deviation that arrives, between 0 and 1.
        twins: pairs of positions of sensors that share a background.
        background: what the sensors read when nothing happens.
        storage_retention: per sensor, the share of what is stored that is left one step later.
        shock_retention: per sensor, the share of a shock that is left one step later.
    """

    recipe: Recipe
    times: TimeAxis
    network: Network
    delays: NDArray[np.int64]
    attenuation: NDArray[np.float64]
    twins: tuple[tuple[int, int], ...]
    background: Background
    storage_retention: NDArray[np.float64]
    shock_retention: NDArray[np.float64]

    @property
    def name(self) -> str:
        """What people call the panel."""
        return f"synthetic {self.recipe.kind}"

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the panel comes from: the recipe that makes it again."""
        return {"source": "candor.data.synthetic", "recipe": asdict(self.recipe)}


def settle(recipe: Recipe) -> World:
    """Returns the world that the recipe describes."""
    kind = recipe.physics
    network = build_network(recipe)
    twins = choose_twins(network, recipe)
    lifetimes = recipe.stream("lifetimes")
    return World(
        recipe=recipe,
        times=TimeAxis(START, kind.interval, recipe.steps, ZONE),
        network=network,
        delays=_delays(network.edges, kind),
        attenuation=_attenuation(network.edges, kind, recipe),
        twins=twins,
        background=draw_background(recipe, twins),
        storage_retention=np.exp(-1 / lifetimes.choice(kind.storage_lifetimes, recipe.sensors)),
        shock_retention=np.exp(-1 / lifetimes.choice(kind.shock_lifetimes, recipe.sensors)),
    )


def _kilometres(edges: Edges) -> NDArray[np.float64]:
    assert edges.distance is not None  # every synthetic network knows its distances
    return edges.distance.astype(np.float64)


def _delays(edges: Edges, kind: Kind) -> NDArray[np.int64]:
    """Returns the steps that a deviation takes along each edge, rounded, at least 1."""
    kilometres_per_step = kind.wave_speed * (kind.interval / timedelta(hours=1))
    return np.maximum(np.rint(_kilometres(edges) / kilometres_per_step), 1).astype(np.int64)


def _attenuation(edges: Edges, kind: Kind, recipe: Recipe) -> NDArray[np.float64]:
    """Returns the share that arrives along each edge: it falls with distance and mixes at joints.

    The shares that arrive at one sensor sum to less than 1, so that deviations stay bounded
    whatever the network looks like.
    """
    flow = recipe.stream("attenuation").uniform(0.5, 1.5, len(edges))
    together = np.bincount(edges.target, weights=flow, minlength=recipe.sensors)
    mixing = flow / together[edges.target]
    return _MOST_ARRIVING * mixing * np.exp(-_kilometres(edges) / kind.reach)
