"""Sensor networks with known truth, to test whether a model's explanations are true.

panel, truth = generate_river(sensors=24, steps=8_760, seed=0)
panel, truth = generate_road(sensors=40, steps=16_128, seed=0)

write_synthetic(folder, "river", sensors=2_000, steps=100_000)   # larger than memory
panel, truth = load_panel(folder), load_truth(folder)
"""

from candor.data.synthetic.generate import COMPONENTS, Shocks, Truth, generate, generate_river, generate_road
from candor.data.synthetic.recipe import SyntheticRecipe
from candor.data.synthetic.store import load_truth, write_synthetic

__all__ = [
    "COMPONENTS",
    "Shocks",
    "SyntheticRecipe",
    "Truth",
    "generate",
    "generate_river",
    "generate_road",
    "load_truth",
    "write_synthetic",
]
