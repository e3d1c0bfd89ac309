"""Hourly rain at the sensors of a panel, from half-hourly IMERG V07.

The rain of a row is the mean rate over the hour that ends at its time: the mean of the two half hours before it. So a
row never holds rain that had not fallen yet. An hour of which one half is unknown is unknown.

What was read is kept, a file per day, so that a long job goes on where it was.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.files import read_json, write_json
from candor.core.progress import Report, silent
from candor.core.versions import version_of
from candor.data.panel import Covariate, Sensor, digest_of
from candor.data.times import TimeAxis
from candor.river.cache import told_if_unwritable
from candor.river.imerg import DOI, HALF_HOUR, PRODUCT, VERSION, EarthdataArchive, Granule, ImergCell, cell_of, sign_in

_FORMAT_VERSION = 1
_FIRST_TIME, _LAST_TIME = (time.replace(tzinfo=UTC) for time in (datetime.min, datetime.max))


@dataclass(frozen=True, eq=False)
class StoredHalfHour:
    """What one file of the archive said: its name, and the rates in mm/h in the cells, NaN where unknown.

    `fetched` is when it was read (UTC, ISO 8601) and `folder` the address without the name; both are empty where an
    earlier version did not note them.
    """

    file: str
    rates: NDArray[np.float32]
    fetched: str
    folder: str = ""


class RainStore:
    """A folder of half hours for a set of cells; other cells have a folder of their own beside it."""

    def __init__(self, folder: Path, cells: Sequence[ImergCell]) -> None:
        self._cells = [list(cell) for cell in cells]
        self.folder = Path(folder) / f"imerg-v{VERSION}" / digest_of({"cells": self._cells})[:16]

    def path_of(self, day: date) -> Path:
        """Return where the half hours that start on this day (UTC) are kept."""
        return self.folder / f"{day.isoformat()}.json"

    def read(self, day: date) -> dict[datetime, StoredHalfHour]:
        """Return the half hours of a day that are known, by their start; none if the file is absent or damaged."""
        path = self.path_of(day)
        if not path.exists():
            return {}
        try:
            content = read_json(path)
            checksum = content.pop("sha256")
            if checksum != digest_of(content) or content["cells"] != self._cells or content["day"] != str(day):
                return {}  # read again from the archive, as if it had never been here
            return {
                datetime.fromisoformat(start): StoredHalfHour(
                    kept["file"], np.array(kept["rates"], np.float32), kept.get("fetched", ""), kept.get("folder", "")
                )
                for start, kept in content["half_hours"].items()
            }
        except (InputError, LookupError, TypeError, ValueError, AttributeError):
            return {}

    def write(self, day: date, half_hours: Mapping[datetime, StoredHalfHour]) -> None:
        """Write the half hours of a day, all or nothing."""
        content: dict[str, Any] = {
            "format": "candor-rain-day",
            "format_version": _FORMAT_VERSION,
            "day": str(day),
            "unit": "mm/h",
            "cells": self._cells,
            "places": [[ImergCell(*cell).longitude, ImergCell(*cell).latitude] for cell in self._cells],
            "half_hours": {
                start.astimezone(UTC).isoformat(): {
                    "file": kept.file,
                    "fetched": kept.fetched,
                    "folder": kept.folder,
                    "rates": as_plain(kept.rates),
                }
                for start, kept in sorted(half_hours.items())
            },
        }
        self._write(self.path_of(day).name, content | {"sha256": digest_of(content)})

    def searches(self, first: datetime = _FIRST_TIME, stop: datetime = _LAST_TIME) -> list[dict[str, Any]]:
        """Return what the archive was asked so far about the time from `first` until before `stop`, oldest first."""
        moment = datetime.fromisoformat
        try:
            noted = read_json(self.folder / "searches.json")["searches"]
            return [one for one in noted if moment(one["first"]) < stop and moment(one["stop"]) > first]
        except (InputError, LookupError, TypeError, ValueError):
            return []  # nothing was noted, or the note is damaged: the readings do not depend on it

    def note_search(self, first: datetime, stop: datetime, files: int) -> None:
        """Note how many files NASA's catalogue (CMR) named for the time from `first` until before `stop`."""
        search = {
            "service": "CMR",
            "short_name": PRODUCT,
            "version": VERSION,
            "first": first.isoformat(),
            "stop": stop.isoformat(),
            "files": files,
            "asked": _now(),
        }
        content = {"format": "candor-rain-searches", "searches": [*self.searches(), search]}
        self._write("searches.json", content)

    def _write(self, name: str, content: Any) -> None:
        with told_if_unwritable(self.folder, "the rain that was read"):
            write_json(self.folder / name, content)


def as_plain(rates: NDArray[np.float32]) -> list[float | None]:
    """Return rates as content for JSON, None where they are unknown."""
    return [None if np.isnan(rate) else float(rate) for rate in rates]


UNIT = "mm/h"
_HOUR = timedelta(hours=1)
_DAYS_PER_SEARCH = 31  # fewer files than one page of answers holds
_WORKERS = 4  # more make the archive turn requests away
_READING = "reading rain"


class FetchedRain(NamedTuple):
    """Rain as a covariate in mm/h, time x sensor, and what is to be recorded about where it came from."""

    covariate: Covariate
    provenance: dict[str, Any]


def fetch_rain(
    sensors: Sequence[Sensor],
    times: TimeAxis,
    folder: Path,
    *,
    archive: EarthdataArchive | None = None,
    log_in: Callable[[], EarthdataArchive] | None = None,
    is_offline: bool = False,
    announce: Callable[[str], object] = lambda text: None,
    report: Report = silent,
) -> FetchedRain:
    """Return the rain at the sensors in every hour that ends at one of the times.

    What is read is kept in `folder` day by day. Called again after a kill it goes on, and asks the archive only for
    what is not there; with everything there it needs neither network nor login.

    Args:
        sensors: each needs a latitude and a longitude.
        times: hourly, on the hour or the half hour of UTC.
        folder: where half hours that were read are kept.
        archive: where half hours are read; None logs in to NASA's when something is lacking.
        log_in: how to; None takes what the environment or the file .netrc says.
        is_offline: takes what is in the folder and sends nothing; the rest is unknown.
        announce: is called once with how much will be read, in words, before it is; may raise to stop it.
        report: progress callback.
    """
    if times.interval != _HOUR or (times.start - datetime(1970, 1, 1, tzinfo=UTC)) % HALF_HOUR:
        raise InputError(
            f"rain is made for hourly times on the hour or half hour of UTC; these are every {times.interval} "
            f"from {times.start.isoformat()}",
            hint="lay the readings on an hourly grid first",
        )
    place = [cell_of(sensor) for sensor in sensors]
    cells = sorted(set(place))
    starts = [times.start - _HOUR + step * HALF_HOUR for step in range(2 * times.length)]
    half_hours = _HalfHours(RainStore(folder, cells), cells, starts)
    if half_hours.lacking and not is_offline:
        half_hours.fetch(archive or (log_in or sign_in)(), announce, report)
    halves = half_hours.rates().reshape(times.length, 2, len(cells))
    hourly = halves.mean(axis=1, dtype=np.float64)  # NaN where one half is
    columns = [cells.index(cell) for cell in place]
    cells_by_sensor = {s.id: [c.longitude, c.latitude] for s, c in zip(sensors, place, strict=True)}
    return FetchedRain(Covariate(hourly[:, columns], UNIT), half_hours.provenance() | {"cells": cells_by_sensor})


class _HalfHours:
    """The half hours of one call: what the store knows of them, and the reading of the others."""

    def __init__(self, store: RainStore, cells: list[ImergCell], starts: list[datetime]) -> None:
        self._store, self._cells, self._starts = store, cells, starts
        self._known: dict[datetime, StoredHalfHour] = {}
        self._carried = 0  # bytes
        wanted = set(starts)
        for day in dict.fromkeys(start.date() for start in starts):
            self._known |= {start: found for start, found in store.read(day).items() if start in wanted}

    @property
    def lacking(self) -> list[datetime]:
        """The starts of the half hours that are not known."""
        return [start for start in self._starts if start not in self._known]

    def rates(self) -> NDArray[np.float32]:
        """Return the rates in mm/h, half hour x cell, NaN where unknown."""
        rates = np.full((len(self._starts), len(self._cells)), np.nan, np.float32)
        for row, start in enumerate(self._starts):
            if start in self._known:
                rates[row] = self._known[start].rates
        return rates

    def fetch(self, archive: EarthdataArchive, announce: Callable[[str], object], report: Report) -> None:
        """Read what is lacking, and keep every day as soon as it is read."""
        lacking, share = self.lacking, 0.0

        def tell(now: str) -> None:
            report(f"{_READING} | {_READING}: {now}", share)

        report(_READING, share)
        archive.retries.tell = lambda seconds: tell(f"the archive needs a pause of {seconds:.0f} s")
        pool = ThreadPoolExecutor(_WORKERS)
        try:
            for batch in self._batches(archive, lacking, announce):
                for granule in self._read(archive, batch, pool):
                    done = bisect_right(lacking, granule.start)
                    share = done / len(lacking)
                    tell(f"{done:,} of {len(lacking):,} half hours, {self._carried / 1e9:.2f} GB")
        except BaseException:  # Ctrl-C too: only the requests that are under way are waited for, and no pauses
            archive.retries.end()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _batches(
        self, archive: EarthdataArchive, lacking: list[datetime], announce: Callable[[str], object]
    ) -> Iterator[list[Granule]]:
        """Yield the files to read, of one day at a time; the very first alone, since it tells how much all will be."""
        for _, group in groupby(lacking, key=lambda start: (start - lacking[0]) // timedelta(days=_DAYS_PER_SEARCH)):
            wanted = list(group)
            first, stop = wanted[0], wanted[-1] + HALF_HOUR
            found = archive.find(first, stop)
            self._store.note_search(first, stop, len(found))
            granules = [found[start] for start in wanted if start in found]
            while granules and not self._carried:
                yield granules[:1]
                if self._carried:
                    announce(self._volume(granules, len(lacking)))
                granules = granules[1:]
            for _, day in groupby(granules, key=lambda granule: granule.start.date()):
                yield list(day)

    def _read(self, archive: EarthdataArchive, batch: list[Granule], pool: ThreadPoolExecutor) -> Iterator[Granule]:
        """Yield files of one day as they are read, then keep what they say beside what is known of the day."""
        read = {}
        for granule, response in zip(batch, pool.map(lambda one: archive.read(one, self._cells), batch), strict=True):
            if response is not None:
                folder = granule.url.removesuffix(granule.name)
                read[granule.start] = StoredHalfHour(granule.name, response[0], _now(), folder)
                self._carried += response[1]
            yield granule
        if read:
            day = batch[0].start.date()
            self._store.write(day, self._store.read(day) | read)
            self._known |= read

    def provenance(self) -> dict[str, Any]:
        """Return where the half hours came from, by which searches, when, and through which clients."""
        known = {start: self._known[start] for start in self._starts if start in self._known}
        files = [half_hour.file for half_hour in known.values()]
        return {
            "product": f"{PRODUCT} version {VERSION}",
            "doi": DOI,
            "row": "mean rate over the hour that ends at the time of the row",
            "half_hours": len(self._starts),
            "unknown_half_hours": len(self.lacking),
            "files_by_version": dict(Counter(file.split(".")[-2] for file in files)),
            "sha256_of_file_names": sha256("\n".join(files).encode()).hexdigest(),
            **_dates_of(known.values()),
            # Names of files follow from the half hours: five years need not be a list of 87,648 of them.
            "days": [
                _describe_day(day, [known[start] for start in group])
                for day, group in groupby(known, key=lambda start: start.date())
            ],
            "searches": self._store.searches(self._starts[0], self._starts[-1] + HALF_HOUR) if self._starts else [],
            "clients": {client: version_of(client) for client in ("earthaccess", "h5py")},
        }

    def _volume(self, granules: list[Granule], lacking: int) -> str:
        """Return in words how much is to be read, measured on the one file that was."""
        whole = lacking * sum(granule.megabytes for granule in granules) / len(granules) / 1e3
        parts = lacking * self._carried / 1e9
        return (
            f"Rain: {lacking:,} half-hourly files of IMERG V{VERSION} have to be looked into; "
            f"{len(self._starts) - lacking:,} of {len(self._starts):,} are here already. "
            + (f"Whole they would be {whole:,.1f} GB. " if whole else "")
            + f"Only the parts with the cells of the sensors are read: {parts:,.1f} GB, as measured on the first."
        )


def _describe_day(day: date, half_hours: Sequence[StoredHalfHour]) -> dict[str, Any]:
    """Return how many files of a day (UTC) were read, where, when, and a checksum of what they say."""
    return {
        "day": str(day),
        "files": len(half_hours),
        "folders": sorted({half_hour.folder for half_hour in half_hours} - {""}),
        **_dates_of(half_hours),
        "sha256": digest_of({half_hour.file: as_plain(half_hour.rates) for half_hour in half_hours}),
    }


def _dates_of(half_hours: Iterable[StoredHalfHour]) -> dict[str, str | None]:
    dates = sorted(half_hour.fetched for half_hour in half_hours if half_hour.fetched)
    return {"first_fetched": dates[0] if dates else None, "last_fetched": dates[-1] if dates else None}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
