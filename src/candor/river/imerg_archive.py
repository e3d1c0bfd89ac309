"""NASA's archive of IMERG: logging in, finding the files of a period, and reading cells out of them."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import numpy as np
import requests
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.optional import needing_packages
from candor.river.imerg import VERSION, Cell, read_half_hour, start_of
from candor.river.imerg_ranges import Patience, RemoteReader

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

    Args:
        name: of the file.
        start: of its half hour, UTC.
        url: where it is read.
        megabytes: how large it is; zero where the archive does not say.
    """

    name: str
    start: datetime
    url: str
    megabytes: float


class Archive(Protocol):
    """What rain is fetched from."""

    patience: Patience
    """How it is waited for."""

    def find(self, first: datetime, stop: datetime) -> dict[datetime, Granule]:
        """Returns the files of the half hours that start from `first` until before `stop`, by their start."""
        ...

    def read(self, granule: Granule, cells: Sequence[Cell]) -> tuple[NDArray[np.float32], int] | None:
        """Returns the rates in mm/h in the cells and the bytes carried, or None if the file is not there after all."""
        ...


class EarthdataArchive:
    """The archive at NASA's GES DISC, through Earthdata.

    Args:
        login: an `earthaccess.Auth` that is logged in; `sign_in` makes one.
        pause: seconds before asking a second time where the service is busy.
    """

    def __init__(self, login: Any, pause: float = 1.0) -> None:
        self.patience = Patience(pause)
        self._login = login
        self._reader = RemoteReader(login.get_session, self.patience)

    def find(self, first: datetime, stop: datetime) -> dict[datetime, Granule]:
        """Returns the files of the half hours that start from `first` until before `stop`, by their start."""
        answers = self.patience.ask(lambda: self._search(first, stop - timedelta(seconds=1)), "NASA's CMR")
        found: dict[datetime, Granule] = {}
        # V07A was replaced by V07B: of two files of one half hour the later letter counts.
        for granule in sorted((granule_of(answer) for answer in answers), key=lambda granule: granule.name):
            if first <= granule.start < stop:  # the service also returns neighbours that touch the period
                found[granule.start] = granule
        return found

    def read(self, granule: Granule, cells: Sequence[Cell]) -> tuple[NDArray[np.float32], int] | None:
        """Returns the rates in mm/h in the cells and the bytes carried, or None if the file is not there after all."""
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


def granule_of(answer: Any) -> Granule:
    """Returns what a search answer (UMM-G) says of a file; a file of another version is refused by its name."""
    links = [link["URL"] for link in answer["umm"].get("RelatedUrls", []) if link["Type"] == "GET DATA"]
    url = next((link for link in links if link.startswith("http")), None)
    if url is None:
        raise InputError(
            "the archive lists this file without an address to read it at",
            where=str(answer["umm"].get("GranuleUR", "search answer")),
            hint="give the same command again later",
        )
    name = url.rsplit("/", 1)[-1]
    return Granule(name, start_of(name), url, _megabytes(answer["umm"]))


def sign_in() -> EarthdataArchive:
    """Returns the archive, logged in with what the environment or the file .netrc says; nothing is asked for."""
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
                f"Earthdata cannot be reached ({str(error).splitlines()[0]})",
                where="https://urs.earthdata.nasa.gov",
                hint="rain is fetched over the network: look whether this machine has one",
            ) from None
        if login.authenticated:
            return EarthdataArchive(login)
    raise InputError("rain needs a login at NASA's Earthdata, and none was found", hint=_HOW_TO_LOG_IN)


def _megabytes(described: Any) -> float:
    parts = described.get("DataGranule", {}).get("ArchiveAndDistributionInformation", [])
    sizes = [part["SizeInBytes"] / 2**20 if "SizeInBytes" in part else part.get("Size", 0.0) for part in parts]
    return float(max(sizes, default=0.0))
