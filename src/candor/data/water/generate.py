"""The readings of a drinking-water network that EPANET simulates, and the truth about them.

reading     = background + storage + shock + transported + noise, not below zero, then NaN where missing
background  = what the sources' usual doses make
shock       = what is injected here
transported = what arrives of other injections, and comes back of this one, without having been in a tank
storage     = what tanks took in of injections and give out again

The substance is conservative, so all of these are differences of runs with the same water: the sources' doses alone,
the injections alone, and the injections alone with tanks that give nothing out.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from candor.core.arrays import Doubles
from candor.core.errors import InputError
from candor.data.panel import Panel
from candor.data.synthetic.generate import START, ZONE, Shocks, Truth, total_of
from candor.data.synthetic.series import RandomGaps
from candor.data.times import TimeAxis
from candor.data.water.dosing import draw_injections, injected, shock_retention, usual_doses
from candor.data.water.epanet import Epanet, epanet
from candor.data.water.inp import Model, open_model, path_of, sources_of
from candor.data.water.layout import Layout, lay_out
from candor.data.water.recipe import LEVEL, WaterRecipe
from candor.data.water.scenario import make_ready, rows_of

BOUNDS = (0.0, 1e6)  # mg/L; a litre of water weighs a kilogram
_GAP_HOURS = 6.0  # of missing readings, on average


@dataclass(frozen=True, eq=False, kw_only=True)
class WaterTruth(Truth):
    """The truth of a water network: delays are rounded travel times, attenuation the share of the water.

    How fast tanks empty depends on the hour: `storage_retention` is NaN. There are no twins.
    """

    travel: Doubles  # per edge, median travel time in steps
    travel_range: Doubles  # edge x 2: one tenth of the water is faster than the first, one tenth slower than the second


def generate_water_network(
    source: str = "Net3",
    seed: int = 0,
    steps: int = 8 * 7 * 96,
    *,
    sensors: int = 40,
    noise: float = 0.03,
    missing_share: float = 0.0,
    minutes: int = 15,
    twin_pairs: int = 0,
) -> tuple[Panel, WaterTruth]:
    """Return concentrations (mg/L) of a tracer in a drinking-water network, and the truth about them.

    Args:
        source: a network that ships with wntr, such as Net3, or the path of an EPANET input file (.inp).
        seed: another seed gives other demands, other dosing and other injections in the same network.
        steps: how many readings each sensor has; by default eight weeks.
        sensors: at most; places at edges come first, then the junctions that most water passes.
        noise: standard deviation of the noise as a share of the mean dose, 1 mg/L.
        missing_share: share of the readings that is missing, in gaps, from 0 to 0.9.
        minutes: between two readings; a day must be a whole number of them.
        twin_pairs: only 0: nobody plants twins in a network that is given.
    """
    if twin_pairs:
        raise InputError("no twins can be planted in a network that is given", hint="leave out twin_pairs")
    recipe = WaterRecipe(source, seed, steps, sensors, noise, missing_share, minutes)
    model = open_model(source)
    clock = int(model.options.time.start_clocktime)
    make_ready(model, recipe)
    with epanet(model, path_of(source)) as water:
        layout, shocks, retention, components = _simulate(water, model, recipe)
    readings = total_of(components).clip(*BOUNDS).astype(np.float32)
    gaps = RandomGaps(recipe.stream("gaps"), len(layout.nodes), recipe.missing_share, recipe.steps_in(_GAP_HOURS))
    readings[gaps.advance(recipe.steps)] = np.nan
    panel = Panel(
        values=readings,
        times=TimeAxis(START + timedelta(seconds=clock), recipe.interval, recipe.steps, ZONE),
        sensors=layout.sensors,
        edges=layout.edges,
        name=f"water network {path_of(source).stem}",
        provenance={"source": "candor.data.water", "recipe": asdict(recipe)},
    )
    return panel, _truth_of(layout, shocks, retention, components)


def _truth_of(
    layout: Layout, shocks: Shocks, retention: Doubles, components: Mapping[str, NDArray[np.float32]]
) -> WaterTruth:
    return WaterTruth(
        delays=np.rint(layout.travel).astype(np.int64).clip(min=1),
        attenuation=layout.share,
        twins=(),
        storage_retention=np.full(len(layout.nodes), np.nan),
        shock_retention=retention,
        bounds=BOUNDS,
        shocks=shocks,
        components=components,
        travel=layout.travel,
        travel_range=layout.travel_range,
    )


def _simulate(
    water: Epanet, model: Model, recipe: WaterRecipe
) -> tuple[Layout, Shocks, Doubles, Mapping[str, NDArray[np.float32]]]:
    """Return the layout, the injections, how they fade, and the components of the readings."""
    rows = rows_of(recipe)
    sources = sources_of(model)
    usual = dict(zip(sources, usual_doses(recipe, len(sources), rows).T, strict=True))
    background = water.concentrations(usual, at_first=LEVEL)
    layout = lay_out(water.pipework(), recipe)
    if not len(layout.nodes):
        raise InputError("no junction of this network always carries water", where=recipe.source)
    retention = shock_retention(recipe, len(layout.nodes))
    shocks = draw_injections(recipe, len(layout.nodes))
    own = injected(shocks, retention, recipe.steps)
    everywhere = np.concatenate([np.zeros((rows - recipe.steps, own.shape[1])), own])
    doses = {sensor.id: series for sensor, series in zip(layout.sensors, everywhere.T, strict=True) if series.any()}
    through_tanks, without_tanks = (
        water.concentrations(injections=doses, passes_tanks=passes) for passes in (True, False)
    )
    columns = [model.junction_name_list.index(sensor.id) for sensor in layout.sensors]
    background, whole, direct = (part[-recipe.steps :, columns] for part in (background, through_tanks, without_tanks))
    noise = recipe.stream("noise").standard_normal(own.shape) * recipe.noise * LEVEL
    components = {
        "background": background,
        "storage": whole - direct,
        "shock": own,
        "transported": direct - own,
        "noise": noise,
    }
    return layout, shocks, retention, {name: part.astype(np.float32) for name, part in components.items()}
