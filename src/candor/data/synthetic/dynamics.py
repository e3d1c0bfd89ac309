"""The series of a synthetic network, chunk by chunk.

reading     = background + storage + shock + transported + noise, clipped, then NaN where missing
transported = sum over incoming edges of attenuation x (storage + shock + transported) upstream,
              `delay` steps ago
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.data.synthetic.ingredients import DecayingSum, Gaps, Storage, Transport
from candor.data.synthetic.shocks import shocks_of
from candor.data.synthetic.truth import Shocks, total_of
from candor.data.synthetic.world import World

_NUMBERS_PER_CHUNK = 2_000_000
_FEWEST_STEPS = 256  # Parquet files of very short row groups are mostly headings


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive steps of a synthetic network; all series are time x sensor."""

    start: int
    stop: int
    readings: NDArray[np.float32]
    covariates: dict[str, NDArray[np.float32]]
    components: dict[str, NDArray[np.float32]]
    shocks: Shocks


def chunks_of(world: World, chunk_steps: int | None = None) -> Iterator[Chunk]:
    """Yields all steps of the world in order; the length of a chunk changes no number."""
    if chunk_steps is not None and chunk_steps < 1:
        raise InputError(f"a chunk of {chunk_steps} steps is too short; expected 1 or more")
    recipe, network = world.recipe, world.network
    length = chunk_steps or max(_FEWEST_STEPS, _NUMBERS_PER_CHUNK // recipe.sensors)
    source = shocks_of(recipe, network)
    storing = Storage(recipe, world.storage_retention)
    fading = DecayingSum(world.shock_retention)
    moving = Transport(network.edges, world.delays, world.attenuation, recipe.sensors)
    noise = recipe.stream("noise")
    noise_size = recipe.noise * recipe.physics.level
    gaps = Gaps(recipe)
    for start in range(0, recipe.steps, length):
        stop = min(start + length, recipe.steps)
        steps = stop - start
        jumps, covariates = source.advance(steps)
        storage, shock = storing.advance(steps), fading.advance(jumps)
        components = {
            "background": world.background.between(start, stop),
            "storage": storage,
            "shock": shock,
            "transported": moving.advance(storage + shock),
            "noise": noise.standard_normal((steps, recipe.sensors)) * noise_size,
        }
        rounded = {name: part.astype(np.float32) for name, part in components.items()}
        # The rounded components are summed, so that the truth on record sums to the readings.
        readings = total_of(rounded).clip(*recipe.physics.bounds).astype(np.float32)
        readings[gaps.advance(steps)] = np.nan
        time, sensor = np.nonzero(jumps)
        yield Chunk(
            start=start,
            stop=stop,
            readings=readings,
            covariates={name: part.astype(np.float32) for name, part in covariates.items()},
            components=rounded,
            shocks=Shocks(time + start, sensor, jumps[time, sensor]),
        )
