"""Synthetic networks in memory: a panel and the truth about it."""

import numpy as np

from candor.data.panel import Covariate, Panel
from candor.data.synthetic.dynamics import chunks_of
from candor.data.synthetic.recipe import Recipe
from candor.data.synthetic.truth import COMPONENTS, Shocks, Truth
from candor.data.synthetic.world import settle

_A_YEAR_OF_HOURS = 8_760
_EIGHT_WEEKS_OF_FIVE_MINUTES = 8 * 7 * 288


def generate_river(
    sensors: int = 24,
    steps: int = _A_YEAR_OF_HOURS,
    seed: int = 0,
    *,
    noise: float = 0.01,
    missing_share: float = 0.0,
    twin_pairs: int | None = None,
) -> tuple[Panel, Truth]:
    """Returns hourly dissolved oxygen (mg/L) of a river, its covariate `rain`, and the truth.

    Args:
        sensors: how many there are.
        steps: how many hours.
        seed: another seed gives another river with other weather.
        noise: standard deviation of the noise as a share of the mean level, 8.8 mg/L.
        missing_share: share of the readings that is missing, in gaps, from 0 to 0.9.
        twin_pairs: pairs of sensors that share a background; None lets the size decide.
    """
    return generate(Recipe("river", sensors, steps, seed, noise, missing_share, twin_pairs))


def generate_road(
    sensors: int = 40,
    steps: int = _EIGHT_WEEKS_OF_FIVE_MINUTES,
    seed: int = 0,
    *,
    noise: float = 0.01,
    missing_share: float = 0.0,
    twin_pairs: int | None = None,
) -> tuple[Panel, Truth]:
    """Returns speeds (mph) on a road network every five minutes, and the truth about them.

    Args:
        sensors: how many there are.
        steps: how many times five minutes.
        seed: another seed gives another network with other incidents.
        noise: standard deviation of the noise as a share of the mean free flow, 63 mph.
        missing_share: share of the readings that is missing, in gaps, from 0 to 0.9.
        twin_pairs: pairs of sensors that share a background; None lets the size decide.
    """
    return generate(Recipe("road", sensors, steps, seed, noise, missing_share, twin_pairs))


def generate(recipe: Recipe, chunk_steps: int | None = None) -> tuple[Panel, Truth]:
    """Returns the panel and the truth of a recipe; the length of a chunk changes no number."""
    world, kind = settle(recipe), recipe.physics
    shape = (recipe.steps, recipe.sensors)
    readings = np.empty(shape, np.float32)
    covariates = {name: np.empty(shape, np.float32) for name in kind.covariate_units}
    components = {name: np.empty(shape, np.float32) for name in COMPONENTS}
    shocks: list[Shocks] = []
    for chunk in chunks_of(world, chunk_steps):
        rows = slice(chunk.start, chunk.stop)
        readings[rows] = chunk.readings
        for name, series in covariates.items():
            series[rows] = chunk.covariates[name]
        for name, series in components.items():
            series[rows] = chunk.components[name]
        shocks.append(chunk.shocks)
    for series in (readings, *covariates.values(), *components.values()):
        series.flags.writeable = False
    units = kind.covariate_units
    panel = Panel(
        values=readings,
        times=world.times,
        sensors=world.network.sensors,
        edges=world.network.edges,
        covariates={name: Covariate(covariates[name], units[name]) for name in covariates},
        name=world.name,
        provenance=world.provenance,
    )
    truth = Truth(
        delays=world.delays,
        attenuation=world.attenuation,
        shocks=Shocks(
            np.concatenate([part.time for part in shocks]),
            np.concatenate([part.sensor for part in shocks]),
            np.concatenate([part.size for part in shocks]),
        ),
        components=components,
        twins=world.twins,
        storage_retention=world.storage_retention,
        shock_retention=world.shock_retention,
        bounds=kind.bounds,
    )
    return panel, truth
