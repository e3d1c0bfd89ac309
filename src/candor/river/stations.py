"""The sensor that speaks for each site, and which sites are complete enough."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.data.gridding import Grid, lay_series
from candor.data.times import TimeAxis
from candor.river.readings import Readings, valid_readings
from candor.river.settings import BasinSettings
from candor.river.sites import Site


@dataclass(frozen=True)
class Station:
    """A site with its hourly values.

    Args:
        site: where it is.
        values: in `unit`, one per hour of the axis, NaN where missing.
        sensor: id of the sensor (time series) that speaks for the site; empty where none sent anything.
        readings: what that sensor sent.
        observed: hours with a value, for every sensor of the site.
    """

    site: Site
    values: NDArray[np.float32]
    sensor: str
    readings: Readings
    observed: Mapping[str, int] = field(default_factory=dict)

    @property
    def missing_share(self) -> float:
        """The share of hours without a value."""
        return float(np.isnan(self.values).mean())

    @property
    def longest_gap(self) -> int:
        """The most hours in a row without a value."""
        is_there = np.concatenate([[True], ~np.isnan(self.values), [True]])
        return int(np.diff(np.flatnonzero(is_there)).max() - 1)

    @property
    def description(self) -> str:
        """What the service says of the chosen sensor, such as its depth."""
        return next((series.description for series in self.site.series if series.id == self.sensor), "")


def make_station(site: Site, frame: pd.DataFrame, axis: TimeAxis, settings: BasinSettings) -> Station:
    """Returns the station of a site: of several sensors the one that observed most hours.

    Of equals, the one that the service calls primary, then the first by its id.
    """
    sensors = valid_readings(frame, settings.keep_negative)
    if not sensors:
        nothing = Readings(np.empty(0, "datetime64[us]"), np.empty(0))
        return Station(site, np.full(axis.length, np.nan, np.float32), "", nothing)
    hourly = {name: hourly_values(readings, axis, settings) for name, readings in sensors.items()}
    observed = {name: int((~np.isnan(values)).sum()) for name, values in hourly.items()}
    primary = {series.id for series in site.series if series.is_primary}
    chosen = min(sensors, key=lambda name: (-observed[name], name not in primary, name))
    return Station(site, hourly[chosen], chosen, sensors[chosen], observed)


def hourly_values(readings: Readings, axis: TimeAxis, settings: BasinSettings) -> NDArray[np.float32]:
    """Returns the value of every hour of the axis, NaN where there is no reading, by the rule of `data.gridding`."""
    moments = readings.times.astype("datetime64[us]").astype(np.int64)
    return lay_series(Grid(axis), moments, readings.values, takes_mean=settings.hourly == "mean")
