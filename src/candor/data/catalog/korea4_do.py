"""KOREA4_DO: hourly dissolved oxygen at fourteen stations on four Korean rivers, with temperature, conductivity, rain.

| fact | value |
|---|---|
| quantity | dissolved oxygen, mg/L, hourly |
| when | 61,344 hours, 2013-01-01 to 2019-12-31; the protocol uses 2015 to 2019, 43,824 hours, 15.3 % missing |
| where | Bukhan (3), Nakdong (4), Geum (3) and Yeongsan (4): four networks that do not touch |
| network | 16 directed downstream pairs; kilometres are straight lines along the flow order, a lower bound |
| covariates | water temperature (deg C), conductivity (uS/cm), rain (mm per hour, 2016 to 2019) |
| missing | empty; negative is impossible |
| clock | Asia/Seoul (UTC+9, no summer time) |
| checksum | SHA-256 of the content: 8233a1579944f4fefb873b910d96c3808f3ecc83eb43abc23b7b55f2283a620f |

Rain is that of one gauge per station: the nearest automatic station (AWS) on the same river. The Nakdong has only the
gauge ASOS137, whose source leaves dry hours blank: blank is read as zero there. S04012 has no coordinates and takes the
gauge of Naju, below its mouth.

Files: `KOREA4_DO.parquet` with `.edges.csv` and `.sensors.csv`, `KOREA4_WTEMP.parquet`, `KOREA4_EC.parquet`,
`KOREA4_RAIN.parquet`, in the data folder or in `water/` below it. Gathered in github.com/yyeongha/water-quality, commit
4e321d1, which states no licence: found locally, never shipped.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from candor.data.catalog.registry import dataset, require_data
from candor.data.panel import Covariate, Panel
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.data.times import TimeAxis

GAUGE_OF_STATION = {
    "S01010": "AWS555",
    "S01012": "AWS675",
    "S01001": "AWS542",
    "S02014": "ASOS137",
    "S02022": "ASOS137",
    "S02020": "ASOS137",
    "S02021": "ASOS137",
    "S03007": "AWS888",
    "S03003": "AWS888",
    "S03009": "AWS888",
    "S04009": "AWS783",
    "S04005": "AWS710",
    "S04012": "AWS710",
    "S04002": "AWS710",
}
BLANK_MEANS_DRY = ("ASOS137",)
_FILES = (
    *("KOREA4_DO.parquet", "KOREA4_DO.edges.csv", "KOREA4_DO.sensors.csv"),
    *("KOREA4_WTEMP.parquet", "KOREA4_EC.parquet", "KOREA4_RAIN.parquet"),
)


@dataset(
    "korea4-do",
    title="Four Korean rivers, dissolved oxygen, hourly, 14 stations, with temperature, conductivity and rain",
    licence="not stated by its source: use locally, do not pass on",
    source="Korean national water-quality network and weather gauges, through github.com/yyeongha/water-quality",
    needs=tuple((f"water/{name}", name) for name in _FILES),
    fingerprint="8233a1579944f4fefb873b910d96c3808f3ecc83eb43abc23b7b55f2283a620f",
)
def load() -> Panel:
    """Return the whole record with its covariates."""
    options = ReadOptions(unit="mg/L", zone="Asia/Seoul", minimum=0.0)
    panel = read_panel(
        _file("KOREA4_DO.parquet"),
        _file("KOREA4_DO.edges.csv"),
        _file("KOREA4_DO.sensors.csv"),
        options,
        name="korea4-do",
    )
    covariates = {"rain": Covariate(_rain(panel, options), "mm/h")}
    for name, file, unit in (("temperature", "KOREA4_WTEMP", "deg C"), ("conductivity", "KOREA4_EC", "uS/cm")):
        other = read_panel(_file(f"{file}.parquet"), options=options).select(panel.sensor_ids)
        covariates[name] = Covariate(_on_axis(other.values, other.times, panel.times), unit)
    return replace(panel, covariates=covariates)


def _rain(panel: Panel, options: ReadOptions) -> NDArray[np.float32]:
    """Return each station's rain, NaN before the gauges begin."""
    gauges = read_panel(_file("KOREA4_RAIN.parquet"), options=options)
    values = gauges.values.copy()
    for gauge in BLANK_MEANS_DRY:
        column = values[:, gauges.sensor_ids.index(gauge)]
        column[np.isnan(column)] = 0.0
    columns = [gauges.sensor_ids.index(GAUGE_OF_STATION[station]) for station in panel.sensor_ids]
    return _on_axis(values[:, columns], gauges.times, panel.times)


def _on_axis(values: NDArray[np.float32], axis: TimeAxis, wanted: TimeAxis) -> NDArray[np.float32]:
    """Return the rows at the moments of another axis of the same interval, NaN where there are none."""
    shift = (axis.start - wanted.start) // wanted.interval
    result = np.full((wanted.length, values.shape[1]), np.nan, np.float32)
    first, last = max(shift, 0), min(shift + len(values), wanted.length)
    result[first:last] = values[first - shift : last - shift]
    return result


def _file(name: str) -> Path:
    get_it = "the folder is made from github.com/yyeongha/water-quality"
    return require_data("KOREA4_DO", f"water/{name}", name, get_it=get_it)
