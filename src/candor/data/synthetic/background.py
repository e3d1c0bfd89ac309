"""What a sensor would read if nothing ever happened: its level, its days and its weeks.

background(t) = level + sum over shapes k of amplitude_k x shape_k(t - phase_k)

Every shape repeats after a week. Twins have the same phases and, up to one common factor, the same
amplitudes; their levels differ.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from candor.data.synthetic.kinds import Kind
from candor.data.synthetic.recipe import Recipe

_FIRST_WEEKDAY = 2  # the first of January 2020 is a Wednesday
_DAYS = 7

Levels = NDArray[np.float64]  # per sensor


@dataclass(frozen=True, eq=False)
class Background:
    """The weekly shapes and what each sensor makes of them.

    Args:
        level: per sensor, in the unit of the readings.
        amplitude: shape x sensor, in the unit of the readings.
        phase: shape x sensor, in steps.
        shapes: shape x step of the week, without unit.
    """

    level: Levels
    amplitude: NDArray[np.float64]
    phase: NDArray[np.int64]
    shapes: NDArray[np.float64]

    def between(self, start: int, stop: int) -> NDArray[np.float64]:
        """Returns the background of the steps `start` to `stop - 1`, time x sensor."""
        steps = np.arange(start, stop)[:, None]
        values = np.repeat(self.level[None], stop - start, axis=0)
        for shape, amplitude, phase in zip(self.shapes, self.amplitude, self.phase, strict=True):
            values += amplitude * shape[(steps - phase) % len(shape)]
        return values


def draw_background(recipe: Recipe, twins: tuple[tuple[int, int], ...]) -> Background:
    """Returns a background of own amplitudes and phases for every sensor, alike for twins."""
    generator = recipe.stream("background")
    kind = recipe.physics
    draw = _river_background if kind.name == "river" else _road_background
    level = kind.level + generator.uniform(-1, 1, recipe.sensors) * kind.level_spread
    background = draw(kind, level, generator)
    amplitude, phase = background.amplitude.copy(), background.phase.copy()
    for first, second in twins:
        amplitude[:, second] = amplitude[:, first] * generator.uniform(0.85, 1.15)
        phase[:, second] = phase[:, first]
    return replace(background, amplitude=amplitude, phase=phase)


def _river_background(kind: Kind, level: Levels, generator: np.random.Generator) -> Background:
    """Returns oxygen that peaks in the afternoon, twice a day and once a week besides."""
    day, count = kind.steps_per_day, len(level)
    turns = 2 * np.pi * np.arange(_DAYS * day) / day
    ranges = [(0.5, 1.1), (0.15, 0.45), (0.15, 0.45)]  # mg/L
    afternoon = np.rint(generator.normal(9, 2.5, count))  # a sine peaks six hours later
    return Background(
        level=level,
        amplitude=np.stack([generator.uniform(*ends, count) for ends in ranges]),
        phase=np.stack(
            [
                afternoon.astype(np.int64),
                generator.integers(day // 2, size=count),
                generator.integers(_DAYS * day, size=count),
            ]
        ),
        shapes=np.stack([np.sin(turns), np.sin(2 * turns), np.sin(turns / _DAYS)]),
    )


def _road_background(kind: Kind, level: Levels, generator: np.random.Generator) -> Background:
    """Returns speeds that fall in the morning and evening of working days and on weekends."""
    day, count = kind.steps_per_day, len(level)
    step = np.arange(_DAYS * day)
    hour = step % day * 24 / day
    is_weekend = (_FIRST_WEEKDAY + step // day) % _DAYS >= 5
    morning = np.where(is_weekend, 0.0, _dip(hour, at=7.75, width=0.9))
    evening = np.where(is_weekend, 0.0, _dip(hour, at=17.25, width=1.3))
    outing = np.where(is_weekend, _dip(hour, at=14.0, width=2.2), 0.0)
    ranges = [(1.0, 22.0), (1.0, 22.0), (0.5, 8.0)]  # mph
    minutes_apart = generator.normal(0, 60, (3, count)).clip(-150, 150)
    return Background(
        level=level,
        amplitude=np.stack([generator.uniform(*ends, count) for ends in ranges]),
        phase=np.rint(minutes_apart / (24 * 60 / day)).astype(np.int64),
        shapes=np.stack([morning, evening, outing]),
    )


def _dip(hour: NDArray[np.float64], at: float, width: float) -> NDArray[np.float64]:
    """Returns a bell of depth -1 around the hour `at`, `width` hours from centre to shoulder."""
    return -np.exp(-0.5 * ((hour - at) / width) ** 2)
