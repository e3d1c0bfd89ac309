"""Readings from NetCDF files that follow the CF conventions."""

import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from candor.core.errors import InputError
from candor.core.optional import needing_packages
from candor.core.text import listed
from candor.data.readers.cells import distinct_ids
from candor.data.readers.classic import MOST_SHRINKING, as_readings
from candor.data.readers.readings import WideReadings
from candor.data.readers.small_tables import plain_words
from candor.data.readers.sources import find_source

if TYPE_CHECKING:
    import xarray


# The C library can crash on damaged files of the old format; scipy reads those in Python.
_ENGINES: dict[bytes, Literal["scipy", "netcdf4"]] = {b"CDF\x01": "scipy", b"CDF\x02": "scipy", b"\x89HDF": "netcdf4"}

# Reads everything, and refuses a file that claims to hold more than its bytes can.
_READ_ALL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
import netCDF4
path, most = sys.argv[1], float(sys.argv[2])
with netCDF4.Dataset(path) as dataset:
    for name, variable in dataset.variables.items():
        if variable.size * getattr(variable.dtype, "itemsize", 1) > most:
            sys.exit(f"{name} claims more than the file can hold")
        variable[...]
"""


def read_netcdf(path: Path | str, variable: str | None = None) -> WideReadings:
    """Return the readings of one variable over time and one other dimension, NaN where filled.

    Times are UTC, as CF says. The sensors are named by the coordinate of the other dimension, else
    by the variable that CF calls `timeseries_id`, else by number. Without a `variable` the only one that fits is read.
    """
    source = find_source(path)
    where = str(source.path)
    with needing_packages("reading NetCDF", packages="xarray netCDF4", where=where):
        import netCDF4  # noqa: F401 - xarray reads through it
        import xarray
    with plain_words(where), source.path.open("rb") as file:
        engine = _ENGINES.get(file.read(4))
        if engine is None:
            hint = "convert it with: nccopy -k nc4 OLD.nc NEW.nc"
            raise InputError("this is no NetCDF file of version 3 or 4", where=where, hint=hint)
        location = str(source.path.resolve())
        if engine == "netcdf4":
            _try_in_a_child(source.path)
        times = xarray.coders.CFDatetimeCoder(time_unit="us")
        with xarray.open_dataset(location, engine=engine, decode_cf=False) as stored:
            _name_fills(stored)
            with warnings.catch_warnings():  # of several numbers that stand for missing
                warnings.simplefilter("ignore", xarray.SerializationWarning)
                dataset = xarray.decode_cf(stored, decode_times=times, decode_timedelta=False)
            name = _choose(dataset, variable, where)
            part, (time,) = dataset[name], _time_dimensions(dataset, dataset[name])
            (other,) = (str(dimension) for dimension in part.dims if dimension != time)
            values = as_readings(part.transpose(time, other).to_numpy())
            if values.size == 0:
                raise InputError(f"{name} is empty", where=where, hint="export the readings again")
            stamps = dataset[time].to_numpy().astype("datetime64[us]")
            return WideReadings(stamps, values, _sensor_ids(dataset, other, where), has_zone=True)


def _try_in_a_child(path: Path) -> None:
    """Refuse a file on which the C libraries hang, crash or fail: damaged ones can do all three.

    They are given the file in a process of their own first, with a time limit that whole files stay far below.
    """
    size = path.stat().st_size
    seconds = 30 + size / 5_000_000
    command = [sys.executable, "-c", _READ_ALL, str(path.resolve()), str(MOST_SHRINKING * size)]
    try:
        trial = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise ValueError(f"reading it did not end within {seconds:.0f} s") from None
    if trial.returncode != 0:
        said = trial.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(said[-1] if said else "the NetCDF library fell over")


def _name_fills(stored: "xarray.Dataset") -> None:
    """Say of variables what stands for no reading, in numbers of their own type.

    Cells that were never written hold a number that the library has for the type, unless `_FillValue` names another;
    `missing_value` changes nothing about that. Bytes have no such number: all of theirs may be readings.
    """
    from netCDF4 import default_fillvals

    for part in stored.data_vars.values():
        kind, attributes = part.dtype, part.attrs
        if part.ndim != 2 or kind.kind not in "fiu":
            continue
        if "_FillValue" not in attributes and kind.itemsize > 1:
            attributes["_FillValue"] = default_fillvals[kind.str[1:]]
        for name in ("_FillValue", "missing_value"):
            numbers = _of_type(kind, attributes.pop(name, ()))
            if numbers:
                attributes[name] = numbers[0] if len(numbers) == 1 else np.array(numbers)


def _of_type(kind: "np.dtype[Any]", attribute: Any) -> list[Any]:
    """Return the finite numbers of an attribute as a variable of that type holds them, without those it cannot hold.

    Programs write -999.9 as a text, or in another precision than the readings, where none would ever be equal to it. In
    single precision beside readings in double it may stand for what it is in both.
    """
    found, given = [], np.ravel(attribute)
    meant = given.astype(str).tolist() if given.dtype == np.float32 and kind == np.float64 else []
    for number in [*given.tolist(), *meant]:
        with suppress(ValueError, OverflowError, TypeError), np.errstate(all="ignore"):
            number = float(number) if isinstance(number, str) else number
            typed = kind.type(number)
            if np.isfinite(typed) and (kind.kind == "f" or typed == number):
                found.append(typed)
    return list(dict.fromkeys(found))


def _choose(dataset: "xarray.Dataset", variable: str | None, where: str) -> str:
    """Return the name of the variable to read."""
    fitting = [
        str(name)
        for name, part in dataset.data_vars.items()
        if part.ndim == 2 and part.dtype.kind in "fiu" and len(_time_dimensions(dataset, part)) == 1
    ]
    wanted = fitting if variable is None else [name for name in fitting if name == variable]
    if len(wanted) == 1:
        return wanted[0]
    if variable is not None and variable not in dataset.variables:
        what = f"there is no variable called {variable!r}"
    else:
        several = "several variables hold" if fitting else "no variable holds"
        subject = several if variable is None else f"{variable!r} does not hold"
        what = f"{subject} numbers over time and one other dimension"
    hint = f"name one of them with --variable: {listed(fitting, 20)}" if fitting else _calendar_hint(dataset)
    raise InputError(what, where=where, hint=hint)


def _time_dimensions(dataset: "xarray.Dataset", part: "xarray.DataArray") -> list[str]:
    return [str(name) for name in part.dims if name in dataset.variables and dataset.variables[name].dtype.kind == "M"]


def _calendar_hint(dataset: "xarray.Dataset") -> str:
    """Return what to do if no dimension holds dates; model calendars have days no clock shows."""
    calendars = {str(part.encoding.get("calendar", "")) for part in dataset.variables.values()}
    if strange := calendars - {"", "standard", "gregorian", "proleptic_gregorian"}:
        return f"its times use the calendar {listed(sorted(strange))}; convert them to standard"
    return "give a variable of two dimensions, one of which has a time coordinate"


def _sensor_ids(dataset: "xarray.Dataset", dimension: str, where: str) -> tuple[str, ...]:
    along = {name: part for name, part in dataset.variables.items() if part.dims == (dimension,)}
    marked = (part for part in along.values() if part.attrs.get("cf_role") == "timeseries_id")
    naming = along.get(dimension, next(marked, None))
    if naming is None:
        return tuple(str(number) for number in range(dataset.sizes[dimension]))
    return distinct_ids(naming.to_numpy().tolist(), where)
