"""water-network: a drinking-water network with known delays, injections and stores, simulated by EPANET.

| fact | value |
|---|---|
| quantity | concentration of a conservative tracer, mg/L, every 15 minutes |
| where | Net3, an example network of EPANET: 92 junctions, 3 tanks, a lake and a river as sources |
| when | 5,376 steps, eight weeks |
| sensors | 40 junctions that always carry water |
| network | chains of pipes whose flow keeps its direction, with travel times up to six hours; kilometres of pipe |
| missing | none |
| truth | travel time and share of the water of every edge, injections, and the series they are the sum of |
| needs | the extra `physics` (wntr, with EPANET inside) |

The truth comes with `candor.data.water.generate_water_network`, of any seed and of any EPANET input file. Input
files have no longitudes: the places of the sensors are to scale, around a made-up origin.
"""

from candor.data.catalog.registry import dataset
from candor.data.panel import Panel


@dataset(
    "water-network",
    title="A drinking-water network simulated by EPANET, with known delays, injections and stores, 15 minutes",
    licence="network and simulator: U.S. Environmental Protection Agency, through wntr (revised BSD)",
    source="candor.data.water, Net3, seed 0",
    package="wntr",
)
def load() -> Panel:
    """Return the readings of Net3, seed 0."""
    from candor.data.water import generate_water_network  # scipy is slow to import, and every command imports this

    return generate_water_network()[0]
