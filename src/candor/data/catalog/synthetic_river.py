"""synthetic-river: a made-up river network whose delays, stores, shocks and twins are known.

| fact | value |
|---|---|
| quantity | dissolved oxygen, mg/L, hourly, with rain (mm per hour) as covariate |
| network | a directed tree with confluences, river kilometres |
| truth | delay and attenuation of every edge, shock times, component series, planted twins |

The truth comes with `candor.data.synthetic.generate_river`; any number of sensors and steps, any seed.
"""

from candor.data.catalog.dataset import dataset
from candor.data.panel import Panel
from candor.data.synthetic import generate_river


@dataset(
    "synthetic-river",
    title="A made-up river with known delays, stores, shocks and twins, hourly, with rain",
    licence="Apache-2.0, made by candor",
    source="candor.data.synthetic, seed 0",
)
def load() -> Panel:
    """Returns the river of seed 0."""
    return generate_river()[0]
