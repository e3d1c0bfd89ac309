"""Half hours of rain that were read already, a file per day, so that a long job goes on where it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.files import read_json, write_json
from candor.data.fingerprint import digest_of
from candor.river.imerg import VERSION, Cell

_FORMAT_VERSION = 1


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

    def __init__(self, folder: Path, cells: Sequence[Cell]) -> None:
        self._cells = [list(cell) for cell in cells]
        self.folder = Path(folder) / f"imerg-v{VERSION}" / digest_of({"cells": self._cells})[:16]

    def path_of(self, day: date) -> Path:
        """Returns where the half hours that start on this day (UTC) are kept."""
        return self.folder / f"{day.isoformat()}.json"

    def read(self, day: date) -> dict[datetime, StoredHalfHour]:
        """Returns the half hours of a day that are known, by their start; none if the file is absent or damaged."""
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
                    kept["file"], _numbers(kept["rates"]), kept.get("fetched", ""), kept.get("folder", "")
                )
                for start, kept in content["half_hours"].items()
            }
        except (InputError, LookupError, TypeError, ValueError, AttributeError):
            return {}

    def write(self, day: date, half_hours: Mapping[datetime, StoredHalfHour]) -> None:
        """Writes the half hours of a day, all or nothing."""
        content: dict[str, Any] = {
            "format": "candor-rain-day",
            "format_version": _FORMAT_VERSION,
            "day": str(day),
            "unit": "mm/h",
            "cells": self._cells,
            "places": [[Cell(*cell).longitude, Cell(*cell).latitude] for cell in self._cells],
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
        self._write(self.path_of(day), content | {"sha256": digest_of(content)})

    def searches(self, first: datetime, stop: datetime) -> list[dict[str, Any]]:
        """Returns what the archive was asked so far about the time from `first` until before `stop`, oldest first."""
        try:
            noted = read_json(self._searches_file)["searches"]
            return [one for one in noted if _moment(one["first"]) < stop and _moment(one["stop"]) > first]
        except (InputError, LookupError, TypeError, ValueError):
            return []  # nothing was noted, or the note is damaged: the readings do not depend on it

    def note_search(self, search: Mapping[str, Any]) -> None:
        """Notes that the archive was asked for the files from `search["first"]` until before `search["stop"]`."""
        known = self.searches(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
        self._write(self._searches_file, {"format": "candor-rain-searches", "searches": [*known, dict(search)]})

    @property
    def _searches_file(self) -> Path:
        return self.folder / "searches.json"

    def _write(self, path: Path, content: Any) -> None:
        try:
            write_json(path, content)
        except OSError as error:
            raise InputError(
                f"the rain that was read cannot be kept ({error.strerror or error})",
                where=str(self.folder),
                hint="make room, or name another folder with --cache",
            ) from None


def as_plain(rates: NDArray[np.float32]) -> list[float | None]:
    """Returns rates as content for JSON, None where they are unknown."""
    return [None if np.isnan(rate) else float(rate) for rate in rates]


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _numbers(rates: list[float | None]) -> NDArray[np.float32]:
    return np.array([np.nan if rate is None else rate for rate in rates], np.float32)
