"""Drinking-water networks whose truth is the physics': what EPANET simulates, inside wntr (extra `physics`).

panel, truth = generate_water_network("Net3", seed=0)
panel, truth = generate_water_network("town.inp", seed=0, steps=2_000)

| file | what it does |
|---|---|
| recipe.py | the arguments that determine the numbers |
| inp.py | input files, and what is refused in them |
| scenario.py | a network made ready for weeks: demands, controls, a conservative substance |
| dosing.py | the usual doses at the sources, and injections |
| epanet.py | runs of EPANET |
| pipework.py | flows in links, and travel times |
| layout.py | where sensors stand, and which edges join them |
| generate.py | the panel and its truth |
"""

from candor.data.water.generate import WaterTruth, generate_water_network
from candor.data.water.recipe import WaterRecipe

__all__ = ["WaterRecipe", "WaterTruth", "generate_water_network"]
