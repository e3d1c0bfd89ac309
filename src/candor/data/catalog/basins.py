"""The paper's three water datasets: hourly dissolved oxygen of whole basins, built from services of the USGS.

The numbers of sensors, edges and hours and the share observed are the paper's. A panel is a folder called like the
dataset, in the data folder.
"""

from functools import partial

from candor.data.catalog.registry import dataset, require_data
from candor.data.panel import Panel
from candor.data.panel_store import load_panel

# By hydrologic unit: the place, the period, sensors, directed pairs, and the share observed.
_WATER_YEARS = "water years {0}-10-01 to {1}-09-30 (our inference: the table says {0}-{1})"
_BASINS = {
    "030501": ("Santee", "2014-01-01 to 2018-12-31, the years of the paper's table", 12, 17, 98.66),
    "031300": ("Apalachicola", _WATER_YEARS.format(2017, 2022), 20, 28, 96.44),
    "180102": ("Klamath", _WATER_YEARS.format(2020, 2025), 11, 42, 98.15),
}
_FACTS = """BASIN{huc} ({place}): hourly dissolved oxygen of a whole basin, one of the paper's three water datasets.

| fact | value |
|---|---|
| quantity | dissolved oxygen, mg/L (USGS parameter 00300), hourly |
| where | HUC {huc}, {place} |
| when | 43,824 hours: {period} |
| sensors | {sensors} |
| network | {pairs} directed pairs, downstream within 200 river km |
| missing | sentinels, text, infinite and negative; {observed} % of {cells:,} station-hours observed |
| protocol | 48 hours of history; forward, then backward fill; cut by time into 26,294 / 8,766 / 8,764 hours |
| checksum | not recorded yet |

The numbers of sensors, edges and hours and the share observed are the paper's. The panel is a folder called
`basin{huc}` in the data folder."""


def _load(huc: str) -> Panel:
    get_it = f"build it there: candor data build-river --preset basin{huc} --out basin{huc}"
    return load_panel(require_data(f"BASIN{huc}", f"basin{huc}", get_it=get_it))


for _huc, (_place, _period, _sensors, _pairs, _observed) in _BASINS.items():
    dataset(
        f"basin{_huc}",
        title=f"{_place} basin (HUC {_huc}), dissolved oxygen, hourly, {_sensors} stations",
        licence="public domain (U.S. Geological Survey)",
        source="USGS National Water Information System",
        needs=((f"basin{_huc}",),),
        facts=_FACTS.format(
            huc=_huc, place=_place, period=_period, sensors=_sensors, pairs=_pairs, observed=_observed,
            cells=43_824 * _sensors,
        ),
    )(partial(_load, _huc))  # fmt: skip
