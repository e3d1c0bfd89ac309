"""BASIN180102 (Klamath): hourly dissolved oxygen of a whole basin, one of the paper's three water datasets.

| fact | value |
|---|---|
| quantity | dissolved oxygen, mg/L (USGS parameter 00300), hourly |
| where | HUC 180102, Klamath |
| when | 43,824 hours: water years 2020-10-01 to 2025-09-30 (our inference: the table says 2020-2025) |
| sensors | 11 |
| network | 42 directed pairs, downstream within 200 river km |
| missing | sentinels, text, infinite and negative; 98.15 % of 482,064 station-hours observed |
| protocol | 48 hours of history; forward, then backward fill; cut by time into 26,294 / 8,766 / 8,764 hours |
| checksum | not recorded yet |

The numbers of sensors, edges and hours and the share observed are the paper's. The panel is a folder called
`basin180102` in the data folder.
"""

from candor.data.catalog.dataset import dataset
from candor.data.locations import require_data
from candor.data.panel import Panel
from candor.data.panel_store import load_panel


@dataset(
    "basin180102",
    title="Klamath basin (HUC 180102), dissolved oxygen, hourly, 11 stations",
    licence="public domain (U.S. Geological Survey)",
    source="USGS National Water Information System",
    needs=(("basin180102",),),
)
def load() -> Panel:
    """Returns the panel built from USGS services."""
    get_it = "build it there: candor data build-river --preset basin180102 --out basin180102"
    return load_panel(require_data("BASIN180102", "basin180102", get_it=get_it))
