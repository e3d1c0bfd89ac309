"""Served models: loading runs, reloading them when their files change, and finding them by name."""

import logging
import stat
import threading
from asyncio import wrap_future
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from anyio.to_thread import run_sync

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.panel import Panel
from candor.data.times import zone_from_name
from candor.explain.places import Points
from candor.forecasting.candor import Candor
from candor.forecasting.forecaster import Forecaster, refuse_unbounded
from candor.runs.bundle import open_run
from candor.runs.run import RECORD, Run, model_checksum
from candor.service.batching import Forecast, Worker, open_window
from candor.service.errors import RefusedError
from candor.service.map_layout import map_positions
from candor.service.metrics import Metrics
from candor.service.record import Record
from candor.service.settings import ServiceSettings
from candor.service.store import ReadingStore

log = logging.getLogger("candor.service")
_WATCHED = (
    *(RECORD, "model/model.json", "model/state.safetensors", "model/calibration.safetensors"),
    *("manifest.json", "data/panel.json", "data/readings.parquet"),  # may be copied after the model
)
_ROWS_BEFORE_HISTORY = 64  # read besides the history, to notice a sensor that is stuck at one value
_VERSION_LETTERS = 12
_FIRST_YEAR, _LAST_YEAR = 1900, 2200  # of times in requests
Signature = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A run as it was when it was loaded; a request uses the same one from its beginning to its end.

    `version` is the beginning of the SHA-256 of its weights and settings, `record` the readings that it knows of.
    """

    run: Run
    version: str
    record: Record

    @property
    def forecaster(self) -> Forecaster:
        """The model of the run."""
        return self.run.forecaster

    @property
    def known(self) -> Panel:
        """The sensors, edges and grid of the model, without rows."""
        return self.forecaster.trained_on_.panel

    @cached_property
    def places(self) -> Points:
        """Where the sensors are drawn, sensor x 2; cached, as hundreds of sensors take a second."""
        return map_positions(self.known)

    @property
    def explains(self) -> bool:
        """Whether the model can say where its forecasts come from."""
        return isinstance(self.forecaster, Candor) or self.forecaster.is_additive

    def recent(self, origin: int) -> Panel:
        """Return what the model needs to forecast the rows from `origin` on."""
        return self.record.before(origin, self.forecaster.rows_read + _ROWS_BEFORE_HISTORY)

    def origins(self) -> tuple[int, int] | None:
        """Return the first and the last row that a forecast can begin at; None if the record is too short."""
        first, stop = self.record.span()
        first += self.forecaster.rows_needed
        return (first, stop) if first <= stop else None

    def readings_before(self, time: str | None) -> tuple[int, Panel]:
        """Return the row of the first forecast step at or after a time, and what the model reads before it.

        None means the step after the last reading.
        """
        origins, grid = self.origins(), self.record.grid
        if origins is None:
            raise InputError(
                f"the service knows fewer than the {self.forecaster.rows_needed} steps that the model reads",
                where="record",
                hint="send readings (POST /v1/readings), or forecast from your own (POST /v1/forecast)",
            )
        first, last = origins
        origin = last if time is None else grid.axis.index_of(parse_moment(time, grid.axis.zone))
        if not first <= origin <= last:
            what = "a forecast needs the steps before it, and they must be in the record"
            hint = f"choose a time from {grid.local(first)} to {grid.local(last)}"
            raise InputError(what, where=f"time {time}", hint=hint)
        return origin, self.recent(origin)

    def column_of(self, sensor: str) -> int:
        """Return the column of a sensor."""
        if sensor not in self.known.sensor_ids:
            raise self.unknown_sensor(repr(sensor))
        return self.known.sensor_ids.index(sensor)

    def unknown_sensor(self, name: str) -> RefusedError:
        """Return the refusal of a sensor that the model does not know."""
        what = f"the model knows no sensor called {name[:200]}"
        hint = f"there are {listed(self.known.sensor_ids)}"
        return RefusedError(404, "unknown_sensor", what, where="sensor", hint=hint)


class ServedModel:
    """A model under its name.

    Its source is a run directory, or the file of a bundle; the store is the file for readings that clients send.
    """

    def __init__(self, name: str, source: Path, store: Path, settings: ServiceSettings, metrics: Metrics) -> None:
        self.name = name
        self._source = source
        self._settings = settings
        self._metrics = metrics
        self._seen = _signature(source)
        run = self._open_run()  # before the store: nothing is written beside a run that cannot be served
        self.store = ReadingStore(store)
        try:
            self.loaded = self._load(run)
        except BaseException:
            self.store.close()
            raise
        self.worker = Worker(name, settings.most_windows, metrics)
        metrics.set_version(name, self.loaded.run.record.model, self.loaded.version)

    async def forecast(self, loaded: LoadedModel, panel: Panel) -> Forecast:
        """Return the forecast after the last row of a panel that fits the model, step x sensor, in their units."""
        window = await run_sync(open_window, loaded.forecaster, panel)
        # While a request waits for its batch it occupies no thread, so that hundreds can wait.
        return refuse_unbounded(await wrap_future(self.worker.forecast(loaded.forecaster, window)))

    def reload_if_changed(self) -> None:
        """Load the run again if its files have changed; requests in progress keep the model they began with.

        If it cannot be loaded, that is logged and the old one stays; the next change of its files is the next attempt.
        """
        seen = _signature(self._source)
        if seen == self._seen:
            return
        self._seen = seen
        before = self.loaded.run.record.model, self.loaded.version
        try:
            newer = self._load(self._open_run())
        except Exception as error:  # whatever is wrong with it, the old one must stay
            self._metrics.reload_failures.labels(self.name).inc()
            log.error("model %s: the newer one cannot be served, the old one goes on: %s", self.name, error)
            return
        self.loaded = newer
        self._metrics.set_version(self.name, newer.run.record.model, newer.version, before)
        self._metrics.reloads.labels(self.name).inc()
        log.warning("model %s: version %s takes the place of %s", self.name, newer.version, before[1])

    def close(self) -> None:
        """End the worker after the work in its queue, and close the store."""
        self.worker.close()
        self.store.close()

    def _open_run(self) -> Run:
        """Return the run as it is on disk now, after a check of its size."""
        run = open_run(self._source)
        for found, most, what, option in (
            (len(run.forecaster.trained_on_.panel.sensors), self._settings.most_sensors, "sensors", "most_sensors"),
            (run.forecaster.horizon, self._settings.most_horizon, "steps of forecast", "most_horizon"),
        ):
            if found > most:
                raise InputError(
                    f"the model has {found:,} {what}; the service serves up to {most:,}",
                    where=str(self._source),
                    hint=f"allow more: --set {option}={found}",
                )
        return run

    def _load(self, run: Run) -> LoadedModel:
        """Return a run with its record, after a trial forecast."""
        version = model_checksum(run.folder)[:_VERSION_LETTERS]
        known = run.forecaster.trained_on_.panel
        try:
            own: Panel | None = run.measured()
        except InputError as error:
            own = None
            log.warning("model %s: its own record is not at hand: %s", self.name, error.what)
        loaded = LoadedModel(run, version, Record(known, own, self.store))
        self._try_out(loaded)
        # Last, because until then readings are stored in the units of the model before.
        self.store.check_units({sensor.id: sensor.unit for sensor in known.sensors})
        return loaded

    def _try_out(self, loaded: LoadedModel) -> None:
        """Make one forecast: a broken model is found before it serves, and the network is built."""
        forecaster, origins = loaded.forecaster, loaded.origins()
        panel = loaded.record.rows(0, forecaster.history) if origins is None else loaded.recent(origins[1])
        forecaster.predict(panel)


def _signature(source: Path) -> Signature:
    """Return a value that changes when a file of the model is rewritten; it holds None for what cannot be read now."""
    stamps: list[tuple[int, int, int] | None] = []
    for path in (source, *(source / name for name in _WATCHED)):
        try:
            status = path.stat()
        except OSError:
            stamps.append(None)
        else:
            is_file = stat.S_ISREG(status.st_mode)
            stamps.append((status.st_ino, status.st_size, status.st_mtime_ns) if is_file else None)
    return tuple(stamps)


class Models:
    """All models of a service by name, and the thread that looks every few seconds whether to reload them."""

    def __init__(self, seconds: float) -> None:
        self.served: dict[str, ServedModel] = {}
        self._seconds = seconds
        self._stop = threading.Event()
        self._watcher: threading.Thread | None = None

    def find(self, name: str | None) -> ServedModel:
        """Return the model of this name; None means the only one."""
        if name is None and len(self.served) == 1:
            return next(iter(self.served.values()))
        known = ", ".join(self.served)
        if name is None:
            raise InputError("several models are served here", where="model", hint=f"name one of {known}")
        if name not in self.served:
            what = f"there is no model called {name[:60]!r}"
            raise RefusedError(404, "unknown_model", what, where="model", hint=f"there are: {known}")
        return self.served[name]

    def start(self) -> None:
        """Start the thread that reloads models."""
        self._watcher = threading.Thread(target=self._watch, name="newer models", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while not self._stop.wait(self._seconds):
            for served in self.served.values():
                served.reload_if_changed()

    def close(self) -> None:
        """End all threads and close all stores."""
        self._stop.set()
        if self._watcher is not None:
            self._watcher.join()
        for served in self.served.values():
            served.close()


def open_models(
    sources: Sequence[Path], settings: ServiceSettings, metrics: Metrics, store_of: Callable[[Path], Path]
) -> Models:
    """Return the runs as models, each under the name of its folder, made unique.

    `store_of` returns the file for readings of a run, independently of what else is served.
    """
    models = Models(settings.reload_seconds)
    try:
        for source in sources:
            # Links are not resolved, as they may lead to another run later. But ".." has no name of its own.
            folder = source.absolute() if source.name.strip(".") else source.resolve()
            name = _free_name(name_of(folder), models.served)
            models.served[name] = ServedModel(name, folder, store_of(folder), settings, metrics)
    except BaseException:
        models.close()
        raise
    return models


def name_of(source: Path) -> str:
    """Return the name of a run directory or bundle."""
    return (source.stem if source.is_file() else source.name) or "model"


def _free_name(wanted: str, taken: Collection[str]) -> str:
    names = (wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 2)))
    return next(name for name in names if name not in taken)


def parse_moment(text: str, zone: str) -> datetime:
    """Return the moment that an ISO 8601 text names, in UTC.

    Without an offset it is read on the clock of the zone; where that clock showed it twice, the first time counts.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone_from_name(zone))
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{text[:60]!r} is not a time", hint="write it like 2024-03-01T06:00:00+01:00") from None
    if not _FIRST_YEAR <= moment.year < _LAST_YEAR:
        what = f"{text[:60]!r} is a time out of all proportion; expected are years from {_FIRST_YEAR} to {_LAST_YEAR}"
        raise InputError(what, hint="write it like 2024-03-01T06:00:00+01:00")
    return moment
