"""A network made ready for weeks: demands that vary by chance, controls that go on, nothing in the water so far.

What an input file says about a day or a week is repeated: its patterns, and its controls by the clock of the
simulation. Everything that dissolves, reacts or is traced in it is taken out: the substance is ours, and conservative,
so that concentrations are linear in what is dosed.
"""

from itertools import product

import numpy as np

from candor.core.arrays import Doubles
from candor.data.synthetic.series import DecayingSum
from candor.data.water.inp import Model
from candor.data.water.recipe import WaterRecipe

WARM_UP_DAYS = 3  # simulated before the first reading, so that the water of the first day has gone
_DISTRICTS = 24  # groups of junctions whose demand varies together
_DEMAND_SPREAD = 0.15  # standard deviation of the logarithm of a district's demand around its pattern
_DEMAND_MEMORY = 2.0  # hours over which such a deviation falls to 1/e
_DAY = 86_400  # seconds
_QUALITY_SECONDS = 60


def make_ready(model: Model, recipe: WaterRecipe) -> None:
    """Change the model so that it can be simulated over the warm-up and all readings of the recipe."""
    _repeat_controls(model, recipe)
    rows = rows_of(recipe)
    sampled = _sampled_patterns(model, rows, recipe.seconds)
    _set_times(model, rows, recipe.seconds)
    for name, multipliers in sampled.items():
        model.get_pattern(name).multipliers = multipliers
    _vary_demands(model, recipe, sampled)
    _clear_water(model)


def rows_of(recipe: WaterRecipe) -> int:
    """Return how many moments are simulated: the warm-up and the readings."""
    return WARM_UP_DAYS * recipe.steps_per_day + recipe.steps


def _set_times(model: Model, rows: int, seconds: int) -> None:
    time = model.options.time
    time.duration = (rows - 1) * seconds + seconds // 2
    time.hydraulic_timestep = time.pattern_timestep = seconds
    # What belongs to a moment, doses and demands, begins half a step before it and ends half a step after it, so that
    # delays that are read from the moments are travel times, rounded. A pattern cannot begin before the simulation:
    # the moments lie in the middle of its steps, and every second report is one.
    time.report_timestep = seconds // 2
    time.quality_timestep = time.rule_timestep = min(_QUALITY_SECONDS, seconds // 2)
    time.report_start = time.pattern_start = 0
    time.statistic = "NONE"
    time.pattern_interpolation = False


def _sampled_patterns(model: Model, rows: int, seconds: int) -> dict[str, Doubles]:
    """Return the multipliers of all patterns at the steps of the recipe, over the whole simulation."""
    start = int(model.options.time.pattern_start)
    moments = [start + row * seconds for row in range(rows)]
    return {name: np.array([pattern.at(moment) for moment in moments]) for name, pattern in model.patterns()}


def _vary_demands(model: Model, recipe: WaterRecipe, sampled: dict[str, Doubles]) -> None:
    """Multiply the demand of each junction by what its district deviates."""
    generator, rows = recipe.stream("demands"), rows_of(recipe)
    district = generator.integers(_DISTRICTS, size=model.num_junctions)
    retention = np.exp(-1 / recipe.steps_in(_DEMAND_MEMORY))
    wandering = DecayingSum(np.full(_DISTRICTS, retention)).advance(generator.standard_normal((rows, _DISTRICTS)))
    deviation = np.exp(_DEMAND_SPREAD * np.sqrt(1 - retention**2) * wandering)
    default = model.options.hydraulic.pattern
    kinds = product(range(_DISTRICTS), [*sampled, ""])
    names = {kind: f"candor_demand_{number}" for number, kind in enumerate(kinds)}
    used: set[tuple[int, str]] = set()
    for place, (_, junction) in zip(district.tolist(), model.junctions(), strict=True):
        for demand in junction.demand_timeseries_list:
            pattern = demand.pattern_name or (default if default in sampled else "")
            demand.pattern_name = names[place, pattern]
            used.add((place, pattern))
    for place, pattern in sorted(used):
        model.add_pattern(names[place, pattern], sampled.get(pattern, 1.0) * deviation[:, place])


def _repeat_controls(model: Model, recipe: WaterRecipe) -> None:
    """Repeat what is switched at a time since the start, day by day or over as many days as the file covers."""
    from wntr.network.controls import Control, SimTimeCondition

    timed = [control for _, control in model.controls() if isinstance(control.condition, SimTimeCondition)]
    if not timed:
        return
    # wntr keeps the time of such a condition in a private attribute only.
    last = max(control.condition._threshold for control in timed)
    period = (int(last) // _DAY + 1) * _DAY
    for turn, control in product(range(1, rows_of(recipe) * recipe.seconds // period + 1), timed):
        when = SimTimeCondition(model, "=", control.condition._threshold + turn * period)
        for action in control.actions():
            model.add_control(
                f"candor_control_{len(model.control_name_list)}", Control(when, action, priority=control.priority)
            )


def _clear_water(model: Model) -> None:
    """Make the water carry one conservative substance, at its usual level everywhere, and nothing else."""
    quality, reaction = model.options.quality, model.options.reaction
    quality.parameter, quality.chemical_name, quality.inpfile_units = "CHEMICAL", "Substance", "mg/L"
    quality.tolerance = 1e-4  # mg/L; water that differs by less is merged, which is all that is not linear
    reaction.bulk_coeff = reaction.wall_coeff = 0.0
    reaction.bulk_order = reaction.wall_order = reaction.tank_order = 1.0
    reaction.limiting_potential = reaction.roughness_correl = 0.0
    for _, pipe in model.pipes():
        pipe.bulk_coeff = pipe.wall_coeff = 0.0
    for _, tank in model.tanks():
        tank.bulk_coeff = 0.0
    for name in list(model.source_name_list):
        model.remove_source(name)
    for _, node in model.nodes():
        node.initial_quality = 0.0
