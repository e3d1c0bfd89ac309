"""Dissolved oxygen at eleven stations of the Klamath River, daily: the data that come with candor.

| fact | value |
|---|---|
| quantity | dissolved oxygen, mg/L (USGS parameter 00300), daily mean; also daily minimum and maximum |
| where | HUC 180102, Oregon and California, from Link River Dam to below the J.C. Boyle powerplant |
| when | 4,086 days, 2014-01-01 to 2025-03-09; 14.3 % missing, but 1.4 % from 2020-10-08 to 2025-03-04 |
| network | 41 directed downstream pairs, river kilometres (three tributary mouths by straight line) |
| missing | empty; negative is impossible |
| clock | dates on Pacific standard time (UTC-08:00) |
| checksum, mean | SHA-256 of the content: 9b79fc0e0eb03f7e84cb002c74ff3bb060f4112f9242e7a12c80b7b8a1df2578 |
| checksum, minimum | SHA-256 of the content: 981754f111204ac02eed6d639724bb3a36d89bf62c794604364cf11fbbaacace |
| checksum, maximum | SHA-256 of the content: 3bb040ba490665973b9a2cfb394a5dce7e08ed6c06b59ce127df3668123038dc |

The eleven stations of the basin that report all year round after October 2020. Two places carry a surface and a bottom
sensor; no edge joins them. The Lost River Diversion Channel can flow either way and is entered as a tributary.

Observed by the U.S. Geological Survey; gathered in github.com/Klamath-SDM/klamathWaterData, commit 93b8208.
"""

from functools import partial
from importlib.resources import as_file, files

from candor.data.catalog.registry import dataset
from candor.data.panel import Panel
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel


def _load(statistic: str, name: str) -> Panel:
    options = ReadOptions(unit="mg/L", zone="UTC-08:00", minimum=0.0)
    with as_file(files("candor.data") / "bundled" / "klamath-daily") as folder:
        return read_panel(
            folder / f"{statistic}.parquet", folder / "edges.csv", folder / "sensors.csv", options, name=name
        )


for _name, _statistic, _fingerprint in (
    ("klamath-daily", "mean", "9b79fc0e0eb03f7e84cb002c74ff3bb060f4112f9242e7a12c80b7b8a1df2578"),
    ("klamath-daily-min", "minimum", "981754f111204ac02eed6d639724bb3a36d89bf62c794604364cf11fbbaacace"),
    ("klamath-daily-max", "maximum", "3bb040ba490665973b9a2cfb394a5dce7e08ed6c06b59ce127df3668123038dc"),
):
    dataset(
        _name,
        title=f"Klamath River, dissolved oxygen, daily {_statistic}, 11 stations",
        fingerprint=_fingerprint,
        licence="public domain (U.S. Geological Survey)",
        source="USGS National Water Information System, through Klamath-SDM/klamathWaterData",
        facts=(__doc__ or "").strip(),
    )(partial(_load, _statistic, _name))
