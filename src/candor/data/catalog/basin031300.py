"""BASIN031300 (Apalachicola): hourly dissolved oxygen of a whole basin, one of the paper's three water datasets.

| fact | value |
|---|---|
| quantity | dissolved oxygen, mg/L (USGS parameter 00300), hourly |
| where | HUC 031300, Apalachicola |
| when | 43,824 hours: water years 2017-10-01 to 2022-09-30 (our inference: the table says 2017-2022) |
| sensors | 20 |
| network | 28 directed pairs, downstream within 200 river km |
| missing | sentinels, text, infinite and negative; 96.44 % of 876,480 station-hours observed |
| protocol | 48 hours of history; forward, then backward fill; cut by time into 26,294 / 8,766 / 8,764 hours |
| checksum | not recorded yet |

The numbers of sensors, edges and hours and the share observed are the paper's. The panel is a folder called
`basin031300` in the data folder.
"""

from candor.data.catalog.dataset import dataset
from candor.data.locations import require_data
from candor.data.panel import Panel
from candor.data.panel_store import load_panel


@dataset(
    "basin031300",
    title="Apalachicola basin (HUC 031300), dissolved oxygen, hourly, 20 stations",
    licence="public domain (U.S. Geological Survey)",
    source="USGS National Water Information System",
    needs=(("basin031300",),),
)
def load() -> Panel:
    """Returns the panel built from USGS services."""
    get_it = "build it there: candor data build-river --preset basin031300 --out basin031300"
    return load_panel(require_data("BASIN031300", "basin031300", get_it=get_it))
