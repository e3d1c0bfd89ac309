"""Reading IMERG V07, NASA's half-hourly rain on a grid of 0.1 degrees: which cell a place lies in, and what fell there.

A file (granule) holds one half hour of the whole Earth. `/Grid/precipitation` is a rate in mm/h with the axes time,
lon, lat, in this order; `/Grid/time` is the start of the half hour in seconds since 1980-01-06. Product GPM_3IMERGHH
version 07, doi:10.5067/GPM/IMERG/3B-HH/07. Version 06 has other variables and another epoch, and is refused.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import RawIOBase
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import requests
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.optional import needing_packages
from candor.core.text import first_line
from candor.data.panel import Sensor
from candor.river.http_ranges import RemoteReader, diagnose
from candor.river.retries import Retries, RetryPolicy

VERSION = "07"
DOI = "10.5067/GPM/IMERG/3B-HH/07"
HALF_HOUR = timedelta(minutes=30)
EPOCH = datetime(1980, 1, 6, tzinfo=UTC)
_CELLS_PER_DEGREE = 10
_COLUMNS, _ROWS = 360 * _CELLS_PER_DEGREE, 180 * _CELLS_PER_DEGREE
_ROUNDING = 0.01  # degrees; the files hold coordinates in single precision
_AXES, _UNIT = "time,lon,lat", "mm/hr"
_NAME = re.compile(
    r"3B-HHR(?P<run>-[A-Z])?\.MS\.MRG\.3IMERG\.(?P<start>\d{8}-S\d{6})-E\d{6}\.\d{4}\.V(?P<version>\d{2})[A-Z]?\b.*"
)


class ImergCell(NamedTuple):
    """One cell of the grid: columns count from 180 degrees west to the east, rows from the South Pole to the north."""

    column: int
    row: int

    @property
    def longitude(self) -> float:
        """Degrees east of the middle of the cell."""
        return round((self.column + 0.5) / _CELLS_PER_DEGREE - 180, 2)

    @property
    def latitude(self) -> float:
        """Degrees north of the middle of the cell."""
        return round((self.row + 0.5) / _CELLS_PER_DEGREE - 90, 2)


def cell_of(sensor: Sensor) -> ImergCell:
    """Return the cell a sensor stands in; its western and southern edges belong to it."""
    latitude, longitude = sensor.latitude, sensor.longitude
    if latitude is None or longitude is None or not (-90 <= latitude <= 90 and -360 <= longitude <= 360):
        raise InputError(
            f"the place of the sensor is not known: latitude {latitude}, longitude {longitude}",
            where=f"sensor {sensor.id}",
            hint="give its latitude and longitude in degrees; rain is read where the sensor stands",
        )
    # Rounded to the millionth of a cell first: 58.2 * 10 is a little less than 582 in floating point.
    east = np.floor(round((longitude + 180) % 360 * _CELLS_PER_DEGREE, 6))
    north = np.floor(round((latitude + 90) * _CELLS_PER_DEGREE, 6))
    return ImergCell(int(east) % _COLUMNS, min(int(north), _ROWS - 1))


def start_of(name: str) -> datetime:
    """Return the start (UTC) of the half hour that the file of this name holds; refuses all but the final run of V07.

    The early and late runs (`3B-HHR-E`, `3B-HHR-L`) are made before the gauges are known.
    """
    match = _NAME.fullmatch(name)
    if match is None or match["run"]:
        raise InputError(
            "this is not the name of a half hour of IMERG's final run",
            where=name,
            hint="expected a name like 3B-HHR.MS.MRG.3IMERG.20200101-S000000-E002959.0000.V07B.HDF5",
        )
    if match["version"] != VERSION:
        raise InputError(
            f"this is version {match['version']} of IMERG; only version {VERSION} is read",
            where=name,
            hint=f"take the file of the same half hour from GPM_3IMERGHH version {VERSION}: "
            "the variables and the epoch of other versions differ",
        )
    return datetime.strptime(match["start"] + "+0000", "%Y%m%d-S%H%M%S%z").astimezone(UTC)


def read_half_hour(file: Path | RawIOBase, name: str, cells: Sequence[ImergCell]) -> NDArray[np.float32]:
    """Return the rain rate in mm/h in each cell, NaN where the file says nothing; reads no more than it needs.

    Args:
        file: the file, or something that can be read like one.
        name: what the file is called in the archive; says which half hour it must hold.
        cells: where to look. They are found by the longitudes and latitudes in the file, never by counting.
    """
    start = start_of(name)
    try:
        with h5py.File(file, "r") as granule:
            grid = granule["Grid"]
            rates = grid["precipitation"]
            _check_layout(grid, rates, name, start)
            columns = _find(grid["lon"], [cell.longitude for cell in cells], "longitude", name)
            rows = _find(grid["lat"], [cell.latitude for cell in cells], "latitude", name)
            # A whole line of longitude at a time: the file is cut into chunks of lines, so it costs no more.
            lines = {column: rates[0, column, :] for column in sorted(set(columns))}
    except (KeyError, OSError, ValueError) as error:
        raise InputError(
            f"the file does not have the layout of IMERG V{VERSION} ({error})",
            where=name,
            hint="fetch it again; if it stays so, the archive has changed",
        ) from None
    found = np.array([lines[column][row] for column, row in zip(columns, rows, strict=True)], np.float32)
    # -9999.9 stands for missing; no other rate below zero has a meaning either.
    return np.where(np.isfinite(found) & (found >= 0), found, np.float32(np.nan))


def _check_layout(grid: Any, rates: Any, name: str, start: datetime) -> None:
    """Refuse a file whose axes, unit or time are not those this reader was written for."""

    def text(attribute: Any) -> str:
        return attribute.decode() if isinstance(attribute, bytes) else str(attribute)

    expected = {
        "axes": (text(rates.attrs["DimensionNames"]), _AXES),
        "unit": (text(rates.attrs["units"]), _UNIT),
        "epoch": (text(grid["time"].attrs["units"]), f"seconds since {EPOCH:%Y-%m-%d %H:%M:%S} UTC"),
        "start": ((EPOCH + timedelta(seconds=int(grid["time"][0]))).isoformat(), start.isoformat()),
    }
    for what, (found, wanted) in expected.items():
        if found != wanted:
            raise InputError(
                f"the {what} in the file: {found}; expected {wanted}",
                where=name,
                hint=f"take the file from GPM_3IMERGHH version {VERSION}",
            )


def _find(coordinates: Any, wanted: list[float], what: str, name: str) -> list[int]:
    """Return where the axis of the file has each wanted middle of a cell."""
    axis = np.asarray(coordinates[:], np.float64)
    nearest = [int(np.abs(axis - degrees).argmin()) for degrees in wanted]
    for degrees, index in zip(wanted, nearest, strict=True):
        if abs(axis[index] - degrees) > _ROUNDING:
            raise InputError(
                f"the file has no cell at {what} {degrees}; it reaches from {axis.min():.2f} to {axis.max():.2f}",
                where=name,
                hint="take the file of the whole Earth, or one that was cut around the sensors",
            )
    return nearest


PRODUCT = "GPM_3IMERGHH"
_MOST_AT_ONCE = 100_000
_HOW_TO_LOG_IN = (
    "make a free account at https://urs.earthdata.nasa.gov and approve there, under Applications, Authorized Apps, "
    "NASA GESDISC DATA ARCHIVE; then set EARTHDATA_TOKEN to a token of that account (Generate Token), or "
    "EARTHDATA_USERNAME and EARTHDATA_PASSWORD, or write `machine urs.earthdata.nasa.gov login NAME password WORD` "
    "into the file .netrc of your home folder"
)


@dataclass(frozen=True)
class Granule:
    """A file of the archive: one half hour of the whole Earth.

    `start` is that of its half hour (UTC), `url` where it is read; `megabytes` is zero where the archive does not say.
    """

    name: str
    start: datetime
    url: str
    megabytes: float


class EarthdataArchive:
    """The archive at NASA's GES DISC, through Earthdata.

    `login` is an `earthaccess.Auth` that is logged in; `sign_in` makes one.
    """

    def __init__(self, login: Any, retry_policy: RetryPolicy | None = None) -> None:
        self.retries = Retries(retry_policy or RetryPolicy(first_wait=1.0))
        self._login = login
        self._reader = RemoteReader(login.get_session, self.retries)

    def find(self, first: datetime, stop: datetime) -> dict[datetime, Granule]:
        """Return the files of the half hours that start from `first` until before `stop`, by their start."""
        responses = self.retries.call(
            lambda: self._search(first, stop - timedelta(seconds=1)), lambda error: diagnose(error, "NASA's CMR")
        )
        found: dict[datetime, Granule] = {}
        # V07A was replaced by V07B: of two files of one half hour the later letter counts.
        for granule in sorted((granule_of(response) for response in responses), key=lambda granule: granule.name):
            if first <= granule.start < stop:  # the service also returns neighbours that touch the period
                found[granule.start] = granule
        return found

    def read(self, granule: Granule, cells: Sequence[ImergCell]) -> tuple[NDArray[np.float32], int] | None:
        """Return the rates in mm/h in the cells and the bytes carried, or None if the file is not there after all."""
        try:
            return self._reader.read(granule.url, lambda file: read_half_hour(file, granule.name, cells))
        except FileNotFoundError:
            return None

    def _search(self, first: datetime, last: datetime) -> list[Any]:
        from earthaccess import DataGranules

        query = DataGranules(self._login).parameters(short_name=PRODUCT, version=VERSION, temporal=(first, last))
        try:
            with warnings.catch_warnings():  # earthaccess warns of its own next version at every result
                warnings.simplefilter("ignore", FutureWarning)
                return list(query.get(_MOST_AT_ONCE))
        except RuntimeError as error:  # how earthaccess wraps an answer that is an error
            if isinstance(error.__cause__, requests.RequestException):
                raise error.__cause__ from None
            raise


def granule_of(response: Any) -> Granule:
    """Return what a search answer (UMM-G) says of a file; a file of another version is refused by its name."""
    links = [link["URL"] for link in response["umm"].get("RelatedUrls", []) if link["Type"] == "GET DATA"]
    url = next((link for link in links if link.startswith("http")), None)
    if url is None:
        raise InputError(
            "the archive lists this file without an address to read it at",
            where=str(response["umm"].get("GranuleUR", "search answer")),
            hint="give the same command again later",
        )
    name = url.rsplit("/", 1)[-1]
    parts = response["umm"].get("DataGranule", {}).get("ArchiveAndDistributionInformation", [])
    sizes = [part["SizeInBytes"] / 2**20 if "SizeInBytes" in part else part.get("Size", 0.0) for part in parts]
    return Granule(name, start_of(name), url, float(max(sizes, default=0.0)))


def sign_in() -> EarthdataArchive:
    """Return the archive, logged in with what the environment or the file .netrc says; nothing is asked for."""
    with needing_packages("rain", extra="river"):
        from earthaccess import Auth
        from earthaccess.exceptions import LoginAttemptFailure, LoginStrategyUnavailable
    login = Auth()
    for strategy in ("environment", "netrc"):
        try:
            login.login(strategy=strategy)
        except LoginStrategyUnavailable:
            continue
        except LoginAttemptFailure:
            raise InputError(
                "Earthdata refuses the login",
                where={"environment": "EARTHDATA_USERNAME and EARTHDATA_PASSWORD", "netrc": ".netrc"}[strategy],
                hint="try the name and the password at https://urs.earthdata.nasa.gov",
            ) from None
        except requests.RequestException as error:
            raise InputError(
                f"Earthdata cannot be reached ({first_line(error)})",
                where="https://urs.earthdata.nasa.gov",
                hint="rain is fetched over the network: look whether this machine has one",
            ) from None
        if login.authenticated:
            return EarthdataArchive(login)
    raise InputError("rain needs a login at NASA's Earthdata, and none was found", hint=_HOW_TO_LOG_IN)
