"""PEMS-BAY: speeds on the highways of the San Francisco Bay Area, the second standard traffic benchmark.

| fact | value |
|---|---|
| quantity | speed, mph, loop detectors |
| when | 52,116 steps of 5 minutes, 2017-01-01 to 2017-06-30 |
| sensors | 325 |
| network | official adjacency, Gaussian of road distance with threshold 0.1: 2,694 entries, 325 of them self-loops |
| missing | zero: 0.003 % |
| clock | America/Los_Angeles (the record lacks the hour that the clocks skipped) |
| protocol | 12 steps from 12; 52,093 windows cut into 36,465 / 5,209 / 10,419 |
| checksum | not recorded yet |

Files, any one of each: `pems-bay.parquet` or `pems-bay.h5`; `pems-bay.edges.csv` or `adj_mx_bay.pkl`;
`pems-bay.sensors.csv` or `graph_sensor_locations_bay.csv`.

Li, Yu, Shahabi, Liu: Diffusion Convolutional Recurrent Neural Network, ICLR 2018; files at github.com/liyaguang/DCRNN.
"""

from candor.data.catalog.registry import dataset, find_data, require_data
from candor.data.panel import Panel
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel

_READINGS, _EDGES = ("pems-bay.parquet", "pems-bay.h5"), ("pems-bay.edges.csv", "adj_mx_bay.pkl")


@dataset(
    "pems-bay",
    title="PEMS-BAY, highway speeds, 5 minutes, 325 sensors",
    licence="published for research with the DCRNN paper; no licence stated",
    source="California Performance Measurement System, files of github.com/liyaguang/DCRNN",
    needs=(_READINGS, _EDGES),
)
def load() -> Panel:
    """Return all 325 sensors."""
    get_it = "the files pems-bay.h5 and adj_mx_bay.pkl are linked from github.com/liyaguang/DCRNN"
    return read_panel(
        require_data("PEMS-BAY", *_READINGS, get_it=get_it),
        require_data("the graph of PEMS-BAY", *_EDGES, get_it=get_it),
        find_data("pems-bay.sensors.csv", "graph_sensor_locations_bay.csv"),
        ReadOptions(missing=(0.0,), unit="mph", zone="America/Los_Angeles"),
        name="pems-bay",
    )
