"""The rain that belongs to each station, and a word on which gauge it is from."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import duration, listed
from candor.data.panel import Panel
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.data.readers.small_tables import read_small_table


@dataclass(frozen=True, eq=False)
class Rain:
    """Rain on the axis of a panel.

    Args:
        values: time x station, in the gauges' unit, NaN where unknown.
        gauges: of each station, which column of which source serves it.
        unit: of the values; empty if not stated.
    """

    values: NDArray[np.float32]
    gauges: tuple[str, ...]
    unit: str = ""


def covariate_rain(panel: Panel, covariate: str) -> Rain:
    """Returns the covariate of a panel: the gauge of a station is the covariate of the same sensor."""
    if covariate not in panel.covariates:
        raise InputError(
            f"there is no covariate called {covariate!r}; there is {listed(panel.covariates) or 'none'}",
            where=panel.name,
            hint="name another with --covariate, or give a file of rainfall: --rain FILE",
        )
    found = panel.covariates[covariate]
    return Rain(found.values, tuple(f"{covariate} of {sensor}" for sensor in panel.sensor_ids), found.unit)


def gauge_rain(panel: Panel, rainfall: Path, gauges: Path | None) -> Rain:
    """Returns the rain of a file of rainfall on the axis of a panel.

    Args:
        panel: whose stations are served.
        rainfall: a time column and a column per gauge, CSV or Parquet, at the interval of the panel.
        gauges: two columns, `station` and `gauge`; None means that the gauges bear the names of the stations.
    """
    rain = read_panel(rainfall, options=ReadOptions(zone=panel.times.zone, interval=None))
    gauge_of = {sensor: sensor for sensor in panel.sensor_ids} if gauges is None else read_gauges(gauges)
    if lacking := [station for station in panel.sensor_ids if station not in gauge_of]:
        hint = "give every station a row; several may share a gauge"
        raise InputError(f"no gauge is named for {listed(lacking)}", where=str(gauges), hint=hint)
    wanted = [gauge_of[station] for station in panel.sensor_ids]
    if unknown := [gauge for gauge in dict.fromkeys(wanted) if gauge not in rain.sensor_ids]:
        raise InputError(
            f"the file of rainfall has no column called {listed(unknown)}; it has {listed(rain.sensor_ids)}",
            where=str(rainfall),
            hint="say which gauge serves which station: --gauges FILE with the columns station and gauge",
        )
    columns = [rain.sensor_ids.index(gauge) for gauge in wanted]
    return Rain(_on_axis_of(panel, rain, str(rainfall))[:, columns], tuple(wanted))


def read_gauges(path: Path) -> dict[str, str]:
    """Returns the gauge of each station, from a small table with the columns `station` and `gauge`."""
    table = read_small_table(path)
    names = table.names
    if not {"station", "gauge"} <= set(names):
        found = listed(table.header or []) or "none"
        hint = "begin the file with the line station,gauge"
        raise InputError(f"the columns station and gauge are needed; found: {found}", where=str(path), hint=hint)
    station, gauge = names.index("station"), names.index("gauge")
    found_gauges: dict[str, str] = {}
    for row, number in zip(table.rows, table.numbers, strict=True):
        name, serves = row[station].strip(), row[gauge].strip()
        if found_gauges.setdefault(name, serves) != serves:
            raise InputError(
                f"two gauges are named for station {name}: {found_gauges[name]} and {serves}",
                where=f"{path}, {table.place} {number}",
                hint="keep one row for each station",
            )
    return found_gauges


def _on_axis_of(panel: Panel, rain: Panel, where: str) -> NDArray[np.float32]:
    """Returns the rain at the moments of the panel, NaN where there is none."""
    axis, wanted = rain.times, panel.times
    shift, beside = divmod(axis.start - wanted.start, wanted.interval)
    if axis.interval != wanted.interval or beside:
        raise InputError(
            f"rain is measured every {duration(axis.interval)} from {axis.start}, readings every "
            f"{duration(wanted.interval)} from {wanted.start}: the moments do not meet",
            where=where,
            hint="sum the rain to the moments of the readings first",
        )
    result = np.full((wanted.length, len(rain.sensors)), np.nan, np.float32)
    first, last = max(shift, 0), min(shift + axis.length, wanted.length)
    if first < last:
        result[first:last] = rain.values[first - shift : last - shift]
    return result
