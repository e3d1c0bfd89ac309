"""Panels as plain files for people and other programs."""

from pathlib import Path

import pandas as pd

from candor.core.errors import InputError
from candor.core.files import atomic_file, is_of_format, read_json, sha256_of_file, write_json
from candor.data.panel import Panel
from candor.data.panel_store import edge_table, is_panel_folder

EXPORTED = ".candor-export.json"
"""In a folder of exported files: their checksums, by which a later export knows them from files of others."""
_FORMAT = "candor-export-1"


def export_panel(panel: Panel, folder: Path, format: str) -> list[Path]:
    """Write readings, covariates, edges and sensors as CSV or Parquet files and return their paths."""
    if format not in {"csv", "parquet"}:
        raise InputError(f"{format!r} is not a format of export", hint="say --format csv or --format parquet")
    for name in panel.covariates:
        if name in {"readings", "edges", "sensors"} or Path(name).name != name:
            what = f"a covariate called {name!r} cannot be exported: its name becomes the name of a file"
            raise InputError(what, hint="give it a name without slashes other than readings, edges and sensors")
    if "time" in panel.sensor_ids:
        raise InputError("a sensor called 'time' cannot be exported beside the times", hint="give it another id")
    columns = list(panel.sensor_ids)
    tables = {"readings": panel.to_frame().reset_index()}
    for name, covariate in panel.covariates.items():
        tables[name] = pd.DataFrame(covariate.values, index=panel.times.local, columns=columns).reset_index()
    unit = panel.edges.distance_unit
    edges = edge_table(panel.edges, panel.sensor_ids).to_pandas()
    tables["edges"] = edges.rename(columns={"distance": f"distance_{unit}" if unit else "distance"})
    tables["sensors"] = pd.DataFrame(
        [(s.id, s.name, s.latitude, s.longitude, s.unit) for s in panel.sensors],
        columns=["sensor_id", "name", "latitude", "longitude", "unit"],
    )
    files = {name: folder / f"{name}.{format}" for name in tables}
    written = _earlier_export(folder, list(files.values()))
    for name, table in tables.items():
        with atomic_file(files[name]) as temporary:
            # The shortest digits of CSV bring every number back as it was.
            table.to_csv(temporary, index=False) if format == "csv" else table.to_parquet(temporary, index=False)
        written[files[name].name] = sha256_of_file(files[name])
        write_json(folder / EXPORTED, {"format": _FORMAT, "sha256": written})  # at once: a kill may come at any time
    return list(files.values())


def _earlier_export(folder: Path, files: list[Path]) -> dict[str, str]:
    """Return the checksums that exports to a folder left; refuses to write over anything that they did not write."""
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
