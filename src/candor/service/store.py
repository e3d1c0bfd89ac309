"""Readings that clients sent, on disk before they are acknowledged.

SQLite in WAL mode with synchronous=FULL: a commit is in the log file, and the log file on the disk, before `append`
returns, so that neither a kill nor a power cut loses what was acknowledged. Stored are the moments that were sent, not
rows of a grid: another model of the same sensors may have another grid.
"""

import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.data.units import plain_unit
from candor.service.errors import RefusedError

FORMAT_VERSION = 1
_BUSY_SECONDS = 10.0
_TABLES = (
    "CREATE TABLE IF NOT EXISTS readings (sensor TEXT, moment INTEGER, value REAL, PRIMARY KEY (sensor, moment)) "
    "WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS by_moment ON readings (moment)",
    "CREATE TABLE IF NOT EXISTS units (sensor TEXT PRIMARY KEY, unit TEXT NOT NULL) WITHOUT ROWID",
)


class Reading(NamedTuple):
    """One reading: the sensor's id, the moment in microseconds since 1970 UTC, and the value, None if withdrawn."""

    sensor: str
    moment: int
    value: float | None


class StoredReadings(NamedTuple):
    """Several readings as columns; a value that was withdrawn is NaN."""

    sensors: Sequence[str]
    moments: NDArray[np.int64]
    values: NDArray[np.float32]


class ReadingStore:
    """The readings of one model in one file; any thread may use it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._changed = datetime.now(UTC)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._prepare()
            self._version = self._read_version()
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"readings cannot be stored here ({error})", where=str(path), hint="name another folder with --store"
            ) from None

    def _prepare(self) -> None:
        (mode,) = self._database.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise sqlite3.OperationalError(f"the file system cannot hold a write-ahead log, only {mode!r}")
        self._database.execute("PRAGMA synchronous=FULL")
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version not in (0, FORMAT_VERSION):
            raise sqlite3.DatabaseError(f"it has format version {version}, this candor reads {FORMAT_VERSION}")
        for table in _TABLES:
            self._database.execute(table)
        self._database.execute(f"PRAGMA user_version={FORMAT_VERSION}")

    @property
    def changed(self) -> datetime:
        """When readings were last stored, by others in the same file too, or else when the store was opened."""
        with self._lock:
            version = self._read_version()
            if version != self._version:
                self._version, self._changed = version, datetime.now(UTC)
            return self._changed

    def _read_version(self) -> int:
        """Return a number that changes when another connection, such as that of a run served twice, has written."""
        return int(self._database.execute("PRAGMA data_version").fetchone()[0])

    def check_units(self, units: Mapping[str, str]) -> None:
        """Remember the units of sensors; refuses others, not other spellings, than those of the stored readings."""
        with self._transaction() as database:
            # Sensors of which no reading is stored may change their unit.
            stored = "SELECT sensor, unit FROM units WHERE EXISTS (SELECT 1 FROM readings WHERE sensor = units.sensor)"
            known = dict(database.execute(stored).fetchall())
            for sensor, unit in units.items():
                if plain_unit(known.get(sensor, unit)) != plain_unit(unit):
                    raise InputError(
                        f"readings of sensor {sensor} are stored in {known[sensor]!r}, the model is in {unit!r}",
                        where=str(self._path),
                        hint="serve this model with another --store",
                    )
            database.executemany("INSERT OR REPLACE INTO units VALUES (?, ?)", units.items())

    def append(self, readings: Sequence[Reading]) -> int:
        """Store readings, all or none; returns how many replaced another; of equal keys the last counts."""
        with self._transaction() as database:
            added = database.executemany("INSERT OR IGNORE INTO readings VALUES (?, ?, ?)", readings).rowcount
            database.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?, ?)", readings)
        self._changed = datetime.now(UTC)
        return len(readings) - added

    def between(self, first: int, stop: int, sensor: str | None = None) -> StoredReadings:
        """Return the readings from the moment `first` on and before `stop`, of one sensor or of all."""
        of_one, wanted = ("", ()) if sensor is None else ("sensor = ? AND ", (sensor,))
        query = f"SELECT sensor, moment, value FROM readings WHERE {of_one}moment >= ? AND moment < ?"
        with self._lock:
            rows = self._database.execute(f"{query} ORDER BY moment, sensor", (*wanted, first, stop)).fetchall()
        sensors, moments, values = zip(*rows, strict=True) if rows else ((), (), ())
        # A value that is None becomes NaN.
        return StoredReadings(sensors, np.array(moments, np.int64), np.array(values, np.float32))

    def span(self, sensors: Collection[str]) -> tuple[int, int] | None:
        """Return the moments of the first and the last reading of some sensors; None if there is none."""
        with self._lock:
            first, last = self._end("ASC", sensors), self._end("DESC", sensors)
        return None if first is None or last is None else (first, last)

    def _end(self, order: Literal["ASC", "DESC"], sensors: Collection[str]) -> int | None:
        """Return the moment of the reading of some sensors that comes first in an order."""
        query = f"FROM readings WHERE value IS NOT NULL {{}} ORDER BY moment {order} LIMIT 1"
        found = self._database.execute(f"SELECT sensor, moment {query.format('')}").fetchone()
        if found is None or found[0] in sensors:
            return None if found is None else int(found[1])
        # The first or last reading is of a sensor that is not wanted, such as one that a newer model has left out.
        of_one = f"SELECT moment {query.format('AND sensor = ?')}"
        rows = [self._database.execute(of_one, (sensor,)).fetchone() for sensor in sensors]
        return (min if order == "ASC" else max)((int(row[0]) for row in rows if row is not None), default=None)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the database within a transaction that is on disk when the block ends well."""
        with self._lock:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                try:
                    yield self._database
                    self._database.execute("COMMIT")
                except BaseException:
                    if self._database.in_transaction:
                        self._database.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise RefusedError(
                    503, "store_unavailable", f"the readings could not be stored ({error})",
                    hint="send them again later; the disk may be full", headers={"Retry-After": "5"},
                ) from None  # fmt: skip
