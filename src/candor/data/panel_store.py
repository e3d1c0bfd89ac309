"""A panel on disk: a small folder of Parquet and JSON that any other program can read too.

panel.json          format version, times, sensors, covariate units, provenance, fingerprint
readings.parquet    time (UTC) and a float32 column per sensor
edges.parquet       from, to, distance and/or weight
covariates/NAME.parquet
"""

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.files import atomic_folder, check_version, looking_at, read_json, write_json
from candor.core.text import first_line
from candor.data.panel import ArrayDigest, Covariate, Edges, Panel, Sensor
from candor.data.times import TimeAxis

FORMAT_VERSION = 1
HEADER = "panel.json"
READINGS = "readings.parquet"
# What reading a folder that was damaged or changed may raise.
SIGNS_OF_DAMAGE = (
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError),
    *(OSError, pa.ArrowException),
)
# What candor writes into a panel folder, here and elsewhere: quality and card of a basin, truth of a synthetic one.
_OWN = {HEADER, READINGS, "edges.parquet", "covariates", "quality.json", "card.md", "truth"}
_NUMBERS_PER_ROW_GROUP = 16_000_000  # 64 MB of float32 in memory at a time
_STAMP = pa.timestamp("us", "UTC")


def save_panel(panel: Panel, folder: Path) -> None:
    """Write the panel to `folder`, replacing a panel that was there only when all of it is written.

    Raises:
        InputError: if the folder holds anything else, or cannot be written.
    """
    check_panel_place(folder)
    with atomic_folder(folder) as temporary:
        with MatrixWriter(temporary / READINGS, panel.times, panel.sensor_ids) as writer:
            writer.write(panel.values)
        for name, covariate in panel.covariates.items():
            with MatrixWriter(covariate_file(temporary, name), panel.times, panel.sensor_ids) as writer:
                writer.write(covariate.values)
        write_header(temporary, panel.times, panel, panel.fingerprint)


def check_panel_place(folder: Path) -> None:
    """Refuse a place where no panel folder can be written, or where writing one would remove something else.

    A panel folder is replaced as a whole. Long work checks this before it begins.
    """
    folder = Path(folder)
    with looking_at(folder):
        if folder.exists() and not folder.is_dir():
            raise InputError("this is a file, and a folder is needed", where=str(folder), hint="name a folder")
        there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        others = sorted(there - _OWN if is_panel_folder(folder) else there)
    if others:
        what = f"this folder holds other things, such as {others[0]}, and a panel takes the place of all that is in it"
        raise InputError(what, where=str(folder), hint="name an empty folder or a new one")
    if Path.cwd().is_relative_to(folder.resolve()):
        what = "the command was started in this folder, so that another one cannot take its place"
        raise InputError(what, where=str(folder), hint="name a folder inside it, or start the command from elsewhere")
    check_writable(folder)


def check_writable(path: Path) -> None:
    """Refuse a path beside which nothing can be written; leaves nothing behind."""
    place = Path(path).parent
    with looking_at(path):
        while not place.exists() and place != place.parent:
            place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):  # file permissions alone do not tell whether it works
            pass
    except OSError as error:
        raise InputError(
            f"nothing can be written here ({error.strerror or error})", where=str(path), hint="choose another place"
        ) from None


def covariate_file(folder: Path, name: str) -> Path:
    """Return where a panel folder keeps the covariate called `name`."""
    if Path(name).name != name:
        what = f"a covariate called {name!r} cannot be saved: its name becomes the name of a file"
        raise InputError(what, where=str(folder), hint="give it a name without slashes")
    return folder / "covariates" / f"{name}.parquet"


def write_header(folder: Path, times: TimeAxis, panel: Panel, fingerprint: str) -> None:
    """Write all of a panel but its rows, which lie in `folder` already, for all of `times`."""
    pq.write_table(edge_table(panel.edges, panel.sensor_ids), folder / "edges.parquet")
    header = {
        "format": "candor-panel",
        "format_version": FORMAT_VERSION,
        "name": panel.name,
        "fingerprint": fingerprint,
        **axes_header(times, panel.sensors),
        "distance_unit": panel.edges.distance_unit,
        "covariates": {name: covariate.unit for name, covariate in panel.covariates.items()},
        "provenance": dict(panel.provenance),
    }
    write_json(folder / HEADER, header)


class MatrixWriter:
    """A Parquet file of a column per sensor, fed row blocks that follow each other in time.

    Leaving the `with` block checks that there is a row for each of `times`.
    """

    def __init__(self, path: Path, times: TimeAxis, ids: tuple[str, ...]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._times, self._row, self._digest = times, 0, ArrayDigest()
        self._schema = pa.schema([("time", _STAMP), *((i, pa.float32()) for i in ids)])
        self._rows_at_a_time = max(1, _NUMBERS_PER_ROW_GROUP // max(len(ids), 1))
        self._file = pq.ParquetWriter(
            path,
            self._schema,
            compression="zstd",
            use_dictionary=False,  # readings seldom repeat: four times faster, and smaller
            write_statistics=["time"],
        )

    def write(self, block: NDArray[np.float32]) -> None:
        """Write further rows, time x sensor."""
        self._digest.update(block)
        for first in range(0, len(block), self._rows_at_a_time):
            part = block[first : first + self._rows_at_a_time]
            # Only the moments of this part: the whole axis may be too long to lay out in memory.
            moments = self._times.slice(self._row, self._row + len(part)).utc
            stamps = pa.array(moments, pa.timestamp("us")).cast(_STAMP)
            columns = [pa.array(np.ascontiguousarray(column)) for column in part.T]
            self._file.write_table(pa.Table.from_arrays([stamps, *columns], schema=self._schema))
            self._row += len(part)

    @property
    def digest(self) -> str:
        """The digest of all rows written so far, as it enters a panel's fingerprint."""
        return self._digest.hexdigest()

    def __enter__(self) -> "MatrixWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._file.close()
        if kind is None and self._row != self._times.length:
            raise ValueError(f"{self._row} rows were written where the axis has {self._times.length}")


def is_panel_folder(path: Path) -> bool:
    """Return whether `path` is a folder written by `save_panel`."""
    with looking_at(path):
        return (Path(path) / HEADER).is_file()


def load_panel(folder: Path) -> Panel:
    """Return the panel saved in `folder`; a damaged or changed one is refused."""
    folder = Path(folder)
    header = read_json(folder / HEADER)
    try:
        panel = _read_panel(folder, header)
    except SIGNS_OF_DAMAGE as error:
        what = f"the panel folder is damaged ({first_line(error)})"
        raise InputError(what, where=str(folder), hint="import it again") from None
    if panel.fingerprint != header.get("fingerprint"):
        what = "the content does not match its fingerprint: the files were changed or damaged"
        raise InputError(what, where=str(folder), hint="import it again")
    return panel


def _read_panel(folder: Path, header: dict[str, Any]) -> Panel:
    if header["format"] != "candor-panel":
        raise ValueError("it is of another format")
    check_version(header["format_version"], FORMAT_VERSION, "panel", folder, "import it again with this version")
    times, sensors = header_axes(header)
    ids = tuple(sensor.id for sensor in sensors)
    edges = _read_edges(folder / "edges.parquet", ids, header["distance_unit"])
    covariates = {
        name: Covariate(read_matrix(covariate_file(folder, name), times, ids), unit)
        for name, unit in header["covariates"].items()
    }
    values = read_matrix(folder / READINGS, times, ids)
    return Panel(values, times, sensors, edges, covariates, str(header["name"]), header["provenance"])


def axes_header(times: TimeAxis, sensors: Sequence[Sensor]) -> dict[str, Any]:
    """Return the entries of a panel's header that describe its times and sensors."""
    start, seconds = times.start.isoformat(), times.interval.total_seconds()
    axis = {"start": start, "interval_seconds": seconds, "length": times.length, "zone": times.zone}
    return {"times": axis, "sensors": [asdict(sensor) for sensor in sensors]}


def header_axes(header: dict[str, Any]) -> tuple[TimeAxis, tuple[Sensor, ...]]:
    """Return the times and the sensors that a panel's header describes."""
    axis = header["times"]
    start, interval = datetime.fromisoformat(axis["start"]), timedelta(seconds=axis["interval_seconds"])
    sensors = tuple(Sensor(**sensor) for sensor in header["sensors"])
    return TimeAxis(start, interval, axis["length"], axis["zone"]), sensors


def read_matrix(path: Path, times: TimeAxis, ids: tuple[str, ...]) -> NDArray[np.float32]:
    """Return what a `MatrixWriter` wrote, time x sensor; other times or sensors are refused."""
    with pq.ParquetFile(path) as file:
        names = tuple(file.schema_arrow.names)
        if names != ("time", *ids) or file.metadata.num_rows != times.length:
            raise ValueError(f"{path.name} does not have the sensors and times of {HEADER}")
        values = np.full((times.length, len(ids)), np.nan, np.float32)
        row = 0
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            stop = row + table.num_rows
            if not np.array_equal(table.columns[0].to_numpy(), times.slice(row, stop).utc):
                raise ValueError(f"{path.name} does not have the times of {HEADER}")
            for column, part in enumerate(table.columns[1:]):
                values[row:stop, column] = part.to_numpy()
            row = stop
    values.flags.writeable = False
    return values


def edge_table(edges: Edges, ids: tuple[str, ...]) -> pa.Table:
    """Return the edges as a table: from, to, distance and/or weight."""
    ends = {"from": edges.source, "to": edges.target}
    columns = {name: pa.array([ids[i] for i in end], pa.string()) for name, end in ends.items()}
    numbers = {"distance": edges.distance, "weight": edges.weight}
    return pa.table(columns | {name: pa.array(part) for name, part in numbers.items() if part is not None})


def _read_edges(path: Path, ids: tuple[str, ...], distance_unit: str) -> Edges:
    if (rows := pq.read_metadata(path).num_rows) > len(ids) ** 2:  # a small file can claim any number
        raise InputError(f"{rows:,} edges are more than {len(ids):,} sensors can have", where=str(path))
    table = pq.read_table(path)
    position = {sensor_id: i for i, sensor_id in enumerate(ids)}
    source, target = (np.array([position[i] for i in table[end].to_pylist()], np.int32) for end in ("from", "to"))
    numbers = {name: table[name].to_numpy() for name in ("distance", "weight") if name in table.column_names}
    return Edges(source, target, **numbers, distance_unit=distance_unit)
