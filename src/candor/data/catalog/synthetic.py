"""Made-up networks whose delays, stores, shocks and twins are known: see `candor.data.synthetic`."""

from candor.data.catalog.registry import dataset
from candor.data.panel import Panel
from candor.data.synthetic import generate_river, generate_road

_FACTS = """synthetic-{kind}: a made-up {kind} network whose delays, stores, shocks and twins are known.

| fact | value |
|---|---|
| quantity | {quantity} |
| network | {network} |
| truth | delay and attenuation of every edge, shock times, component series, planted twins |

The truth comes with `candor.data.synthetic.generate_{kind}`; any number of sensors and steps, any seed."""
_LICENCE, _SOURCE = "Apache-2.0, made by candor", "candor.data.synthetic, seed 0"


@dataset(
    "synthetic-river",
    title="A made-up river with known delays, stores, shocks and twins, hourly, with rain",
    licence=_LICENCE,
    source=_SOURCE,
    facts=_FACTS.format(
        kind="river",
        quantity="dissolved oxygen, mg/L, hourly, with rain (mm per hour) as covariate",
        network="a directed tree with confluences, river kilometres",
    ),
)
def load_river() -> Panel:
    """Return the river of seed 0."""
    return generate_river()[0]


@dataset(
    "synthetic-road",
    title="A made-up road network with known delays, stores, incidents and twins, 5 minutes",
    licence=_LICENCE,
    source=_SOURCE,
    facts=_FACTS.format(
        kind="road",
        quantity="speed, mph, 5 minutes",
        network="directed corridors that meet at junctions, kilometres",
    ),
)
def load_road() -> Panel:
    """Return the road network of seed 0."""
    return generate_road()[0]
