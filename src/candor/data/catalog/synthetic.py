"""Made-up networks whose delays, stores, shocks and twins are known: see `candor.data.synthetic`."""

from candor.data.catalog.registry import dataset
from candor.data.panel import Panel
from candor.data.synthetic import generate_river, generate_road

_TRUTH = "| truth | delay and attenuation of every edge, shock times, component series, planted twins |"


@dataset(
    "synthetic-river",
    title="A made-up river with known delays, stores, shocks and twins, hourly, with rain",
    licence="Apache-2.0, made by candor",
    source="candor.data.synthetic, seed 0",
    facts=f"""synthetic-river: a made-up river network whose delays, stores, shocks and twins are known.

| fact | value |
|---|---|
| quantity | dissolved oxygen, mg/L, hourly, with rain (mm per hour) as covariate |
| network | a directed tree with confluences, river kilometres |
{_TRUTH}

The truth comes with `candor.data.synthetic.generate_river`; any number of sensors and steps, any seed.""",
)
def load_river() -> Panel:
    """Returns the river of seed 0."""
    return generate_river()[0]


@dataset(
    "synthetic-road",
    title="A made-up road network with known delays, stores, incidents and twins, 5 minutes",
    licence="Apache-2.0, made by candor",
    source="candor.data.synthetic, seed 0",
    facts=f"""synthetic-road: a made-up road network whose delays, stores, shocks and twins are known.

| fact | value |
|---|---|
| quantity | speed, mph, 5 minutes |
| network | directed corridors that meet at junctions, kilometres |
{_TRUTH}

The truth comes with `candor.data.synthetic.generate_road`; any number of sensors and steps, any seed.""",
)
def load_road() -> Panel:
    """Returns the road network of seed 0."""
    return generate_road()[0]
