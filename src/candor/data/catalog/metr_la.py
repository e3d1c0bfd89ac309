"""METR-LA: speeds on the highways of Los Angeles, the standard traffic benchmark.

| fact | value |
|---|---|
| quantity | speed, mph, loop detectors |
| when | 34,272 steps of 5 minutes, 2012-03-01 to 2012-06-27 |
| sensors | 207 |
| network | official adjacency, Gaussian of road distance with threshold 0.1: 1,722 entries, 207 of them self-loops |
| missing | zero: 8.11 % |
| clock | fixed UTC-08:00 (the record holds the hour 2012-03-11 02:00 that Los Angeles skipped) |
| protocol | 12 steps from 12; 34,249 windows cut into 23,974 / 3,425 / 6,850 |
| checksum | SHA-256 of the content: a184713e653814c6e9a70fdd231d9607384a8c48eafb214582c39be1cd88f98b |

Files, any one of each: `metr-la.parquet` or `metr-la.h5`; `metr-la.edges.csv` or `adj_mx.pkl`; `metr-la.sensors.csv` or
`graph_sensor_locations.csv`. The pickle is read by a reader that executes nothing.

Li, Yu, Shahabi, Liu: Diffusion Convolutional Recurrent Neural Network, ICLR 2018; files at github.com/liyaguang/DCRNN.
"""

from candor.data.catalog.registry import dataset, find_data, require_data
from candor.data.panel import Panel
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel

_READINGS, _EDGES = ("metr-la.parquet", "metr-la.h5"), ("metr-la.edges.csv", "adj_mx.pkl")


@dataset(
    "metr-la",
    title="METR-LA, highway speeds, 5 minutes, 207 sensors",
    licence="published for research with the DCRNN paper; no licence stated",
    source="Los Angeles County highway detectors, files of github.com/liyaguang/DCRNN",
    needs=(_READINGS, _EDGES),
    fingerprint="a184713e653814c6e9a70fdd231d9607384a8c48eafb214582c39be1cd88f98b",
)
def load() -> Panel:
    """Return all 207 sensors."""
    get_it = "the files metr-la.h5 and adj_mx.pkl are linked from github.com/liyaguang/DCRNN"
    return read_panel(
        require_data("METR-LA", *_READINGS, get_it=get_it),
        require_data("the graph of METR-LA", *_EDGES, get_it=get_it),
        find_data("metr-la.sensors.csv", "graph_sensor_locations.csv"),
        ReadOptions(missing=(0.0,), unit="mph", zone="UTC-08:00"),
        name="metr-la",
    )
