"""What is dosed: the usual doses at the sources, and injections at sensors."""

import numpy as np

from candor.core.arrays import Doubles
from candor.data.synthetic.generate import Shocks
from candor.data.synthetic.series import DecayingSum
from candor.data.water.recipe import LEVEL, WaterRecipe

_LEVELS = (0.7, 1.3)  # smallest and largest mean dose of a source, as a share of the level
_SWING = (0.05, 0.2)  # of the dose over the day, as a share of it
_WANDERING = 0.04  # standard deviation of the dose around its daily pattern, as a share of it
_WANDERING_MEMORY = 12.0  # hours
_CHANCE_PER_DAY = 1 / 4  # of an injection, per sensor
_SIZES = (
    0.05,
    0.5,
)  # smallest and largest injection at its beginning, as a share of the level; small ones are frequent
_LIFETIMES = (0.5, 1.0, 2.0)  # hours until the dosing of an injection is down to 1/e; each sensor has one of these
_DIGITS = 6  # of a multiplier in an input file


def usual_doses(recipe: WaterRecipe, sources: int, rows: int) -> Doubles:
    """Return what each source is dosed with, moment x source, mg/L: a daily pattern that wanders a little."""
    generator = recipe.stream("dosing")
    level, swing, second, phase, other_phase = (
        generator.uniform(low, high, sources)
        for low, high in (_LEVELS, _SWING, (0.0, _SWING[1] / 2), (0.0, 2 * np.pi), (0.0, 2 * np.pi))
    )
    day = 2 * np.pi * np.arange(rows)[:, None] / recipe.steps_per_day
    retention = np.exp(-1 / recipe.steps_in(_WANDERING_MEMORY))
    wandering = DecayingSum(np.full(sources, retention)).advance(generator.standard_normal((rows, sources)))
    pattern = 1 + swing * np.sin(day + phase) + second * np.sin(2 * day + other_phase)
    doses = LEVEL * level * (pattern + _WANDERING * np.sqrt(1 - retention**2) * wandering)
    rounded: Doubles = np.round(np.maximum(doses, 0.0), _DIGITS)
    return rounded


def shock_retention(recipe: WaterRecipe, sensors: int) -> Doubles:
    """Return by sensor the share of an injection's dose that is left one step later."""
    lifetimes = recipe.stream("lifetimes").choice(_LIFETIMES, sensors)
    return np.exp(-1 / (lifetimes * recipe.steps_in(1.0)))


def draw_injections(recipe: WaterRecipe, sensors: int) -> Shocks:
    """Return when and where an injection begins, and how much it adds to the water there at first, mg/L."""
    chance = _CHANCE_PER_DAY / recipe.steps_per_day
    time, sensor = np.nonzero(recipe.stream("injection times").random((recipe.steps, sensors)) < chance)
    share = recipe.stream("injection sizes").random(len(time))
    size = LEVEL * _SIZES[0] * (_SIZES[1] / _SIZES[0]) ** share
    return Shocks(time.astype(np.int64), sensor.astype(np.int64), np.round(size, _DIGITS))


def injected(shocks: Shocks, retention: Doubles, rows: int) -> Doubles:
    """Return what the injections add to the water at each sensor, moment x sensor, mg/L."""
    jumps = np.zeros((rows, len(retention)))
    jumps[shocks.time, shocks.sensor] = shocks.size
    return np.round(DecayingSum(retention).advance(jumps), _DIGITS)
