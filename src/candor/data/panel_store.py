"""A panel on disk: a small folder of Parquet and JSON that any other program can read too.

panel.json          format version, times, sensors, covariate units, provenance, fingerprint
readings.parquet    time (UTC) and a float32 column per sensor
edges.parquet       from, to, distance and/or weight
covariates/NAME.parquet
"""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from candor.data.panel import Covariate, Edges, Panel, Sensor
from candor.data.times import TimeAxis
from candor.errors import InputError
from candor.files import atomic_folder, read_json, write_json

FORMAT_VERSION = 1
HEADER = "panel.json"
_NUMBERS_PER_ROW_GROUP = 16_000_000  # 64 MB of float32 in memory at a time


def save_panel(panel: Panel, folder: Path) -> None:
    """Writes the panel to `folder`, replacing what was there only when all of it is written."""
    with atomic_folder(folder) as temporary:
        write_matrix(
            temporary / "readings.parquet", panel.times, panel.sensor_ids, iter([panel.values])
        )
        for name, covariate in panel.covariates.items():
            path = temporary / "covariates" / f"{name}.parquet"
            write_matrix(path, panel.times, panel.sensor_ids, iter([covariate.values]))
        write_header(temporary, panel, panel.fingerprint)


def write_header(folder: Path, panel: Panel, fingerprint: str) -> None:
    """Writes everything of the panel but its readings and covariates, which lie in `folder` already."""
    _write_edges(folder / "edges.parquet", panel.edges, panel.sensor_ids)
    write_json(
        folder / HEADER,
        {
            "format": "candor-panel",
            "format_version": FORMAT_VERSION,
            "name": panel.name,
            "fingerprint": fingerprint,
            "times": {
                "start": panel.times.start.isoformat(),
                "interval_seconds": panel.times.interval.total_seconds(),
                "length": panel.times.length,
                "zone": panel.times.zone,
            },
            "distance_unit": panel.edges.distance_unit,
            "sensors": [asdict(sensor) for sensor in panel.sensors],
            "covariates": {name: covariate.unit for name, covariate in panel.covariates.items()},
            "provenance": dict(panel.provenance),
        },
    )


def write_matrix(
    path: Path, times: TimeAxis, ids: tuple[str, ...], blocks: Iterator[NDArray[np.float32]]
) -> None:
    """Writes row blocks that follow each other in time as one Parquet file of a column per sensor."""
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([("time", pa.timestamp("us", "UTC")), *((i, pa.float32()) for i in ids)])
    rows_at_a_time = max(1, _NUMBERS_PER_ROW_GROUP // max(len(ids), 1))
    row = 0
    with pq.ParquetWriter(path, schema, compression="zstd", write_statistics=["time"]) as writer:
        for block in blocks:
            for first in range(0, len(block), rows_at_a_time):
                part = block[first : first + rows_at_a_time]
                stamps = pa.array(times.utc[row : row + len(part)], pa.timestamp("us")).cast(
                    schema[0].type
                )
                columns = [pa.array(np.ascontiguousarray(part[:, i])) for i in range(len(ids))]
                writer.write_table(pa.Table.from_arrays([stamps, *columns], schema=schema))
                row += len(part)
    if row != times.length:
        raise ValueError(f"{row} rows were written where the time axis has {times.length}")


def is_panel_folder(path: Path) -> bool:
    """Returns whether `path` is a folder written by `save_panel`."""
    return (Path(path) / HEADER).is_file()


def load_panel(folder: Path) -> Panel:
    """Returns the panel saved in `folder`; a damaged or changed one is refused."""
    folder = Path(folder)
    header = read_json(folder / HEADER)
    try:
        panel = _read_panel(folder, header)
    except (KeyError, TypeError, ValueError, AttributeError, OSError, pa.ArrowException) as error:
        raise InputError(
            f"the panel folder is damaged ({_first_line(error)})",
            where=str(folder),
            mend="import it again",
        ) from None
    if panel.fingerprint != header.get("fingerprint"):
        raise InputError(
            "the content does not match its fingerprint: the files were changed or damaged",
            where=str(folder),
            mend="import it again",
        )
    return panel


def _read_panel(folder: Path, header: dict[str, Any]) -> Panel:
    version = header["format_version"]
    if header["format"] != "candor-panel" or version != FORMAT_VERSION:
        raise InputError(
            f"the panel has format version {version}; this version of candor reads {FORMAT_VERSION}",
            where=str(folder),
            mend="import it again with this version",
        )
    times = TimeAxis(
        datetime.fromisoformat(header["times"]["start"]),
        timedelta(seconds=header["times"]["interval_seconds"]),
        header["times"]["length"],
        header["times"]["zone"],
    )
    sensors = tuple(Sensor(**sensor) for sensor in header["sensors"])
    ids = tuple(sensor.id for sensor in sensors)
    return Panel(
        values=_read_matrix(folder / "readings.parquet", times, ids),
        times=times,
        sensors=sensors,
        edges=_read_edges(folder / "edges.parquet", ids, header["distance_unit"]),
        covariates={
            name: Covariate(
                _read_matrix(folder / "covariates" / f"{name}.parquet", times, ids), unit
            )
            for name, unit in header["covariates"].items()
        },
        name=header["name"],
        provenance=header["provenance"],
    )


def _read_matrix(path: Path, times: TimeAxis, ids: tuple[str, ...]) -> NDArray[np.float32]:
    values = np.full((times.length, len(ids)), np.nan, np.float32)
    with pq.ParquetFile(path) as file:
        if (
            tuple(file.schema_arrow.names) != ("time", *ids)
            or file.metadata.num_rows != times.length
        ):
            raise ValueError(f"{path.name} does not have the sensors and times of {HEADER}")
        row = 0
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            for column, part in enumerate(table.columns[1:]):
                values[row : row + len(part), column] = part.to_numpy()
            row += table.num_rows
    values.flags.writeable = False
    return values


def _write_edges(path: Path, edges: Edges, ids: tuple[str, ...]) -> None:
    columns: dict[str, Any] = {
        "from": pa.array([ids[i] for i in edges.source], pa.string()),
        "to": pa.array([ids[i] for i in edges.target], pa.string()),
    }
    if edges.distance is not None:
        columns["distance"] = pa.array(edges.distance)
    if edges.weight is not None:
        columns["weight"] = pa.array(edges.weight)
    pq.write_table(pa.table(columns), path)


def _read_edges(path: Path, ids: tuple[str, ...], distance_unit: str) -> Edges:
    table = pq.read_table(path)
    position = {sensor_id: i for i, sensor_id in enumerate(ids)}
    names = set(table.column_names)
    return Edges(
        source=np.array([position[i] for i in table["from"].to_pylist()], np.int32),
        target=np.array([position[i] for i in table["to"].to_pylist()], np.int32),
        distance=table["distance"].to_numpy() if "distance" in names else None,
        weight=table["weight"].to_numpy() if "weight" in names else None,
        distance_unit=distance_unit,
    )


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
