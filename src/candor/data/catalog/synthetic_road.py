"""synthetic-road: a made-up road network whose delays, stores, shocks and twins are known.

| fact | value |
|---|---|
| quantity | speed, mph, 5 minutes |
| network | directed corridors that meet at junctions, kilometres |
| truth | delay and attenuation of every edge, shock times, component series, planted twins |

The truth comes with `candor.data.synthetic.generate_road`; any number of sensors and steps, any seed.
"""

from candor.data.catalog.dataset import dataset
from candor.data.panel import Panel
from candor.data.synthetic import generate_road


@dataset(
    "synthetic-road",
    title="A made-up road network with known delays, stores, incidents and twins, 5 minutes",
    licence="Apache-2.0, made by candor",
    source="candor.data.synthetic, seed 0",
)
def load() -> Panel:
    """Returns the road network of seed 0."""
    return generate_road()[0]
