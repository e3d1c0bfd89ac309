"""A model in service: where it lies, which loaded of it answers, and how a newer one takes its place."""

import logging
import stat
import threading
from asyncio import wrap_future
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from anyio.to_thread import run_sync

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.panel import Panel
from candor.explain.places import Points
from candor.forecasting.candor import Candor
from candor.forecasting.forecaster import Forecaster, refuse_unbounded
from candor.runs.bundle import open_run
from candor.runs.run import RECORD, Run, model_checksum
from candor.service.batching import Forecast, Worker, open_window
from candor.service.errors import RefusedError
from candor.service.map_layout import map_positions
from candor.service.metrics import Metrics
from candor.service.moments import parse_moment
from candor.service.record import Record
from candor.service.settings import ServiceSettings
from candor.service.store import ReadingStore

log = logging.getLogger("candor.service")
_WATCHED = (
    *(RECORD, "model/model.json", "model/state.safetensors", "model/calibration.safetensors"),
    *("manifest.json", "data/panel.json", "data/readings.parquet"),  # which may arrive after the model
)
_LOOK_AHEAD_OF_HISTORY = 64  # rows read beyond the history, in which a sensor that sticks is noticed
_VERSION_LETTERS = 12
Signature = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """One state of a run: what a request is answered with from its beginning to its end.

    Args:
        run: the run as it was opened.
        version: the beginning of the SHA-256 of what the model has learned.
        record: the readings that the model knows of.
    """

    run: Run
    version: str
    record: Record

    @property
    def forecaster(self) -> Forecaster:
        """What forecasts."""
        return self.run.forecaster

    @property
    def known(self) -> Panel:
        """The sensors, edges and grid of the model, without rows."""
        return self.forecaster.trained_on_.panel

    @cached_property
    def places(self) -> Points:
        """Where the sensors are drawn, sensor x 2; for hundreds of them that takes a second to find."""
        return map_positions(self.known)

    @property
    def explains(self) -> bool:
        """Whether the model can say where its forecasts come from."""
        return isinstance(self.forecaster, Candor)

    def recent(self, origin: int) -> Panel:
        """Returns what the model needs to forecast the rows from `origin` on."""
        return self.record.before(origin, self.forecaster.rows_read + _LOOK_AHEAD_OF_HISTORY)

    def origins(self) -> tuple[int, int] | None:
        """Returns the first and the last row that a forecast can begin at; None if the record is too short."""
        first, stop = self.record.span()
        first += self.forecaster.rows_needed
        return (first, stop) if first <= stop else None

    def find_origin(self, time: str | None) -> int:
        """Returns the row of the first forecast step at or after a time; None means the step after the last reading."""
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
        return origin

    def readings_before(self, time: str | None) -> tuple[int, Panel]:
        """Returns the row of the first forecast step at a time, and what the model reads before it."""
        origin = self.find_origin(time)
        return origin, self.recent(origin)

    def column_of(self, sensor: str) -> int:
        """Returns the column of a sensor."""
        if sensor not in self.known.sensor_ids:
            raise self.unknown_sensor(repr(sensor))
        return self.known.sensor_ids.index(sensor)

    def unknown_sensor(self, name: str) -> RefusedError:
        """Returns the refusal of a sensor that the model does not know."""
        what = f"the model knows no sensor called {name[:200]}"
        hint = f"there are {listed(self.known.sensor_ids)}"
        return RefusedError(404, "unknown_sensor", what, where="sensor", hint=hint)


class ServedModel:
    """A model under its name.

    Args:
        name: what clients call it.
        source: the run directory, or the file of a bundle.
        store: the file for readings that clients send.
        settings: limits of the service.
        metrics: is told versions and failures.
    """

    def __init__(self, name: str, source: Path, store: Path, settings: ServiceSettings, metrics: Metrics) -> None:
        self.name = name
        self._source = source
        self._settings = settings
        self._metrics = metrics
        self._seen = _signature(source)
        run = self._open_run()  # before the store: beside what cannot be served nothing is written
        self.store = ReadingStore(store)
        try:
            self.loaded = self._load(run)
        except BaseException:
            self.store.close()
            raise
        self.worker = Worker(name, settings.most_windows, metrics)
        metrics.tell_version(name, self.loaded.run.record.model, self.loaded.version)

    async def forecast(self, loaded: LoadedModel, panel: Panel) -> Forecast:
        """Returns the forecast after the last row of a panel that fits the model, step x sensor, in their units."""
        window = await run_sync(open_window, loaded.forecaster, panel)
        # While it waits for its batch a request holds no thread: hundreds may wait, and few threads share the work.
        return refuse_unbounded(await wrap_future(self.worker.forecast(loaded.forecaster, window)))

    def reload_if_changed(self) -> None:
        """Puts a newer model in the place of the old one if there is one; requests under way keep the old one.

        One that cannot be opened is reported, and the old one goes on; it is tried again when its files change.
        """
        seen = _signature(self._source)
        if seen == self._seen:
            return
        self._seen = seen
        before = self.loaded.run.record.model, self.loaded.version
        try:
            newer = self._load(self._open_run())
        except Exception as error:  # whatever is wrong with it, the old one must go on
            self._metrics.reload_failures.labels(self.name).inc()
            log.error("model %s: the newer one cannot be served, the old one goes on: %s", self.name, error)
            return
        self.loaded = newer
        self._metrics.tell_version(self.name, newer.run.record.model, newer.version, before)
        self._metrics.reloads.labels(self.name).inc()
        log.warning("model %s: version %s takes the place of %s", self.name, newer.version, before[1])

    def close(self) -> None:
        """Ends the worker once it has done its work, and closes the store."""
        self.worker.close()
        self.store.close()

    def _open_run(self) -> Run:
        """Returns the run that lies there now, which is not too large."""
        run = open_run(self._source)
        self._check_size(run.forecaster.trained_on_.panel, run.forecaster.horizon)
        return run

    def _load(self, run: Run) -> LoadedModel:
        """Returns the loaded of a run, tried out."""
        version = model_checksum(run.folder)[:_VERSION_LETTERS]
        known = run.forecaster.trained_on_.panel
        try:
            own: Panel | None = run.measured()
        except InputError as error:
            own = None
            log.warning("model %s: its own record is not at hand: %s", self.name, error.what)
        loaded = LoadedModel(run, version, Record(known, own, self.store))
        self._try_out(loaded)
        # Last of all: as long as the model before goes on, readings are kept in its units.
        self.store.check_units({sensor.id: sensor.unit for sensor in known.sensors})
        return loaded

    def _check_size(self, known: Panel, horizon: int) -> None:
        for found, most, what, option in (
            (len(known.sensors), self._settings.most_sensors, "sensors", "most_sensors"),
            (horizon, self._settings.most_horizon, "steps of forecast", "most_horizon"),
        ):
            if found > most:
                raise InputError(
                    f"the model has {found:,} {what}; the service serves up to {most:,}",
                    where=str(self._source),
                    hint=f"allow more: --set {option}={found}",
                )

    def _try_out(self, loaded: LoadedModel) -> None:
        """Makes one forecast, so that a model that cannot is found out before it serves, and the network is built."""
        forecaster, origins = loaded.forecaster, loaded.origins()
        panel = loaded.record.rows(0, forecaster.history) if origins is None else loaded.recent(origins[1])
        forecaster.predict(panel)


def _signature(source: Path) -> Signature:
    """Returns what changes when a file of the model is written anew."""
    return tuple(_stamp(path) for path in (source, *(source / name for name in _WATCHED)))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Returns what changes when a file is written anew; None if there is none, or its drive is away for a moment."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


@dataclass(eq=False)
class Models:
    """All models of a service by name, and the thread that looks for newer ones.

    Args:
        served: the models.
        seconds: how often to look.
    """

    served: dict[str, ServedModel]
    seconds: float
    _stop: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None

    def find(self, name: str | None) -> ServedModel:
        """Returns the model that a client named; where there is but one it need not be named."""
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
        """Begins to look for newer models."""
        self._watcher = threading.Thread(target=self._watch, name="newer models", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while not self._stop.wait(self.seconds):
            for served in self.served.values():
                served.reload_if_changed()

    def close(self) -> None:
        """Ends all threads and closes all stores."""
        self._stop.set()
        if self._watcher is not None:
            self._watcher.join()
        for served in self.served.values():
            served.close()


def open_models(
    sources: Sequence[Path], settings: ServiceSettings, metrics: Metrics, store_of: Callable[[Path], Path]
) -> Models:
    """Returns the runs as models, each under the name of its folder, made unique.

    Args:
        sources: run directories or bundles.
        settings: of the service.
        metrics: is told what is served.
        store_of: the file for readings of a run, which is to be found again whatever else is served.
    """
    models = Models({}, settings.reload_seconds)
    try:
        for source in sources:
            # Not resolved: a link may lead to another run tomorrow. But ".." names nothing, and nothing lies beside it.
            folder = source.absolute() if source.name.strip(".") else source.resolve()
            name = _free_name(name_of(folder), models.served)
            models.served[name] = ServedModel(name, folder, store_of(folder), settings, metrics)
    except BaseException:
        models.close()
        raise
    return models


def name_of(source: Path) -> str:
    """Returns what a run directory or the file of a bundle is called."""
    return (source.stem if source.is_file() else source.name) or "model"


def _free_name(wanted: str, taken: Collection[str]) -> str:
    names = (wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 2)))
    return next(name for name in names if name not in taken)
