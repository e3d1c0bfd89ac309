"""Panels and forecasts as plain files for people and other programs."""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.files import atomic_file, is_of_format, read_json, sha256_of_file, write_json
from candor.data.panel import Panel
from candor.data.panel_store import is_panel_folder

EXPORTED = ".candor-export.json"
"""In a folder of exported files: their checksums, by which a later export knows them from files of others."""
_FORMAT = "candor-export-1"


def export_panel(panel: Panel, folder: Path, format: str) -> list[Path]:
    """Writes readings, covariates, edges and sensors as CSV or Parquet files and returns their paths."""
    if format not in {"csv", "parquet"}:
        raise InputError(f"{format!r} is not a format of export", hint="say --format csv or --format parquet")
    _refuse_clashing_names(panel)
    columns = list(panel.sensor_ids)
    tables = {"readings": panel.to_frame().reset_index()}
    for name, covariate in panel.covariates.items():
        tables[name] = pd.DataFrame(covariate.values, index=panel.times.local, columns=columns).reset_index()
    tables["edges"] = _edge_table(panel)
    tables["sensors"] = pd.DataFrame(
        [(s.id, s.name, s.latitude, s.longitude, s.unit) for s in panel.sensors],
        columns=["sensor_id", "name", "latitude", "longitude", "unit"],
    )
    files = {name: folder / f"{name}.{format}" for name in tables}
    written = _earlier_export(folder, list(files.values()))
    for name, table in tables.items():
        _write(table, files[name])
        written[files[name].name] = sha256_of_file(files[name])
        write_json(folder / EXPORTED, {"format": _FORMAT, "sha256": written})  # at once: a kill may come at any time
    return list(files.values())


def _earlier_export(folder: Path, files: list[Path]) -> dict[str, str]:
    """Returns the checksums that exports to a folder left; refuses to write over anything that they did not write."""
    if is_panel_folder(folder):
        raise InputError("this is a panel folder, which has files of its own", where=str(folder), hint="name another")
    written: dict[str, str] = {}
    if is_of_format(folder / EXPORTED, _FORMAT):
        written = dict(read_json(folder / EXPORTED)["sha256"])
    for file in files:
        if file.exists() and (not file.is_file() or written.get(file.name) != sha256_of_file(file)):
            what = f"{file.name} is there already, and it is not as an earlier export left it"
            raise InputError(what, where=str(folder), hint="name another folder")
    return written


def forecast_table(panel: Panel, forecast: NDArray[np.floating], **columns: NDArray[np.floating]) -> pd.DataFrame:
    """Returns a forecast that begins after the panel's last row as a table: time (local), sensor, step, forecast.

    Args:
        panel: the readings before the forecast.
        forecast: step x sensor, in the sensors' units.
        columns: what else is known of each step and sensor, such as `lower` and `upper`, in the same shape.
    """
    horizon = len(forecast)
    times = panel.times.slice(panel.times.length, panel.times.length + horizon).local
    numbers = {"forecast": forecast} | columns
    for name, column in numbers.items():
        if column.shape != (horizon, len(panel.sensors)):
            raise ValueError(
                f"{name} has shape {column.shape}; expected are {horizon} steps x {len(panel.sensors)} sensors"
            )
        if not np.isfinite(column).all():
            raise ValueError(f"{name} holds numbers that are not finite")
    return pd.DataFrame(
        {
            "time": np.repeat(times, len(panel.sensors)),
            "sensor": list(panel.sensor_ids) * horizon,
            "step": np.repeat(np.arange(1, horizon + 1), len(panel.sensors)),
        }
        | {name: column.reshape(-1) for name, column in numbers.items()}
    )


def check_table_path(path: Path) -> None:
    """Refuses a file for a table that would be neither CSV nor Parquet."""
    if Path(path).suffix not in {".csv", ".parquet"}:
        raise InputError(
            "tables are written as CSV or Parquet", where=str(path), hint="give a name that ends in .csv or .parquet"
        )


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Writes a table as CSV or Parquet, by the ending of the path, all or nothing."""
    check_table_path(path)
    try:
        _write(table, Path(path))
    except OSError as error:
        what = f"the file cannot be written ({error.strerror or error})"
        raise InputError(what, where=str(path), hint="choose another place, or make room") from None


def _refuse_clashing_names(panel: Panel) -> None:
    for name in panel.covariates:
        if name in {"readings", "edges", "sensors"} or Path(name).name != name:
            raise InputError(
                f"a covariate called {name!r} cannot be exported: its name becomes the name of a file",
                hint="give it a name without slashes other than readings, edges and sensors",
            )
    if "time" in panel.sensor_ids:
        raise InputError("a sensor called 'time' cannot be exported beside the times", hint="give it another id")


def _edge_table(panel: Panel) -> pd.DataFrame:
    ids, edges = panel.sensor_ids, panel.edges
    table = pd.DataFrame({"from": [ids[i] for i in edges.source], "to": [ids[i] for i in edges.target]})
    if edges.distance is not None:
        table[f"distance_{edges.distance_unit}" if edges.distance_unit else "distance"] = edges.distance
    if edges.weight is not None:
        table["weight"] = edges.weight
    return table


def _write(table: pd.DataFrame, path: Path) -> Path:
    with atomic_file(path) as temporary:
        if path.suffix == ".parquet":
            table.to_parquet(temporary, index=False)
        else:
            table.to_csv(temporary, index=False)  # the shortest digits that bring every number back as it was
    return path
