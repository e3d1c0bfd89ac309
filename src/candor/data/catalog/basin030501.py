"""BASIN030501 (Santee): hourly dissolved oxygen of a whole basin, one of the paper's three water datasets.

| fact | value |
|---|---|
| quantity | dissolved oxygen, mg/L (USGS parameter 00300), hourly |
| where | HUC 030501, Santee |
| when | 43,824 hours: 2014-01-01 to 2018-12-31, the years of the paper's table |
| sensors | 12 |
| network | 17 directed pairs, downstream within 200 river km |
| missing | sentinels, text, infinite and negative; 98.66 % of 525,888 station-hours observed |
| protocol | 48 hours of history; forward, then backward fill; cut by time into 26,294 / 8,766 / 8,764 hours |
| checksum | not recorded yet |

The numbers of sensors, edges and hours and the share observed are the paper's. The panel is a folder called
`basin030501` in the data folder.
"""

from candor.data.catalog.dataset import dataset
from candor.data.locations import require_data
from candor.data.panel import Panel
from candor.data.panel_store import load_panel


@dataset(
    "basin030501",
    title="Santee basin (HUC 030501), dissolved oxygen, hourly, 12 stations",
    licence="public domain (U.S. Geological Survey)",
    source="USGS National Water Information System",
    needs=(("basin030501",),),
)
def load() -> Panel:
    """Returns the panel built from USGS services."""
    get_it = "build it there: candor data build-river --preset basin030501 --out basin030501"
    return load_panel(require_data("BASIN030501", "basin030501", get_it=get_it))
