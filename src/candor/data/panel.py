"""The one form in which readings of a sensor network travel through the program.

A panel never changes and nothing in it is filled: what is missing is NaN, decided once when it was read. Filling model
inputs is a separate, named step (`candor.data.preprocessing`).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.times import TimeAxis
from candor.data.units import distinct_units

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ROWS_AT_A_TIME = 4096


class ArrayDigest:
    """The digest of a float32 array fed row block by row block; every NaN counts as the same NaN."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def update(self, rows: NDArray[np.float32]) -> "ArrayDigest":
        """Feed further rows."""
        for first in range(0, len(rows), _ROWS_AT_A_TIME):
            block = np.array(rows[first : first + _ROWS_AT_A_TIME], dtype="<f4", order="C")
            block[np.isnan(block)] = np.nan
            block += 0.0  # minus zero reads as zero
            self._hash.update(block.tobytes())
        return self

    def hexdigest(self) -> str:
        """Return the digest of all rows fed so far."""
        return self._hash.hexdigest()


def digest_of(parts: dict[str, Any]) -> str:
    """Return the SHA-256 of a JSON-like structure in one canonical spelling."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Sensor:
    """One place that reports readings; what is unknown is empty or None."""

    id: str
    name: str = ""
    latitude: float | None = None
    longitude: float | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        for name, degrees in (("latitude", self.latitude), ("longitude", self.longitude)):
            if degrees is not None:
                if not np.isfinite(degrees):
                    raise ValueError(f"the {name} of sensor {self.id!r} must be a number, or None where unknown")
                object.__setattr__(self, name, float(degrees))


@dataclass(frozen=True, eq=False)
class Edges:
    """Directed connections: entry e leads from sensor `source[e]` to sensor `target[e]` (positions in the panel).

    `distance` (in the unit of `distance_unit`) and `weight` (larger is closer) may each be absent.
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    distance: NDArray[np.float32] | None = None
    weight: NDArray[np.float32] | None = None
    distance_unit: str = ""

    def __post_init__(self) -> None:
        for name, part in self._parts().items():
            kind = np.int32 if name in ("source", "target") else np.float32
            object.__setattr__(self, name, _frozen(part, kind))
        lengths = {len(part) for part in self._parts().values()}
        if len(lengths) > 1:
            raise ValueError(f"the columns of the edges differ in length: {sorted(lengths)}")
        pairs = np.stack([self.source, self.target], axis=1)
        if len(np.unique(pairs, axis=0)) < len(pairs):
            raise ValueError("an edge is listed twice")
        if self.weight is not None and not np.all((self.weight > 0) & np.isfinite(self.weight)):
            raise ValueError("edge weights must be positive numbers")
        if self.distance is not None and not np.all((self.distance >= 0) & np.isfinite(self.distance)):
            raise ValueError("edge distances must be numbers of zero or more")

    def __len__(self) -> int:
        return len(self.source)

    def _parts(self) -> dict[str, NDArray[Any]]:
        named = {name: getattr(self, name) for name in ("source", "target", "distance", "weight")}
        return {name: part for name, part in named.items() if part is not None}

    @staticmethod
    def none() -> "Edges":
        """Return the edges of a network that has none."""
        return Edges(np.empty(0, np.int32), np.empty(0, np.int32))

    def among(self, positions: Sequence[int], sensors: int) -> "Edges":
        """Return the edges among the sensors at `positions`, numbered by their place in that list."""
        place = np.full(sensors, -1, np.int32)
        place[list(positions)] = np.arange(len(positions), dtype=np.int32)
        source, target = place[self.source], place[self.target]
        kept = (source >= 0) & (target >= 0)
        parts: dict[str, Any] = {name: part[kept] for name, part in self._parts().items()}
        return replace(self, **(parts | {"source": source[kept], "target": target[kept]}))

    def digest(self) -> dict[str, Any]:
        """Return what the fingerprint says of the edges; their order does not matter."""
        order = np.lexsort((self.target, self.source))
        parts = {name: part[order].tolist() for name, part in self._parts().items()}
        return parts | {"distance_unit": self.distance_unit}


@dataclass(frozen=True, eq=False)
class Covariate:
    """A second quantity at the same sensors and times, such as rain; NaN where unknown."""

    values: NDArray[np.float32]
    unit: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _frozen(self.values, np.float32))


@dataclass(frozen=True, eq=False)
class Panel:
    """Readings of connected sensors on one regular time axis.

    Args:
        values: readings in the sensors' units, time x sensor, NaN where missing. A float32 array that nobody can
            write to is taken as it is; any other is copied.
        times: when the rows were read.
        sensors: what the columns are.
        edges: how the sensors are connected; none is legal.
        covariates: further quantities by name, each time x sensor.
        name: what people call it.
        provenance: where it came from and what was done to it; not part of the fingerprint.
    """

    values: NDArray[np.float32]
    times: TimeAxis
    sensors: tuple[Sensor, ...]
    edges: Edges = field(default_factory=Edges.none)
    covariates: Mapping[str, Covariate] = field(default_factory=dict)
    name: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _frozen(self.values, np.float32))
        object.__setattr__(self, "sensors", tuple(self.sensors))
        object.__setattr__(self, "covariates", MappingProxyType(dict(self.covariates)))
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))
        shape = (self.times.length, len(self.sensors))
        parts = {"values": self.values} | {name: c.values for name, c in self.covariates.items()}
        for name, part in parts.items():
            if part.shape != shape:
                raise ValueError(f"{name} has shape {part.shape}; times and sensors ask for {shape}")
            if np.isinf(part).any():
                raise ValueError(f"{name} holds infinite numbers; what is missing must be NaN")
        if len(set(self.sensor_ids)) < len(self.sensors):
            raise ValueError("two sensors have the same id")
        ends = np.concatenate([self.edges.source, self.edges.target])
        if len(ends) and (ends.min() < 0 or ends.max() >= len(self.sensors)):
            raise ValueError("an edge leads to a sensor that is not in the panel")

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """True where there is a reading, time x sensor."""
        return _frozen(~np.isnan(self.values), np.bool_)

    @property
    def sensor_ids(self) -> tuple[str, ...]:
        """The ids of the sensors, in column order."""
        return tuple(sensor.id for sensor in self.sensors)

    @property
    def unit(self) -> str:
        """The unit all sensors share as the first spells it, or the several units joined by commas."""
        return ", ".join(distinct_units(sensor.unit for sensor in self.sensors if sensor.unit))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content: readings, times, zone, sensors, edges, covariates. Not of the name or origin."""
        covariates = {name: ArrayDigest().update(c.values).hexdigest() for name, c in self.covariates.items()}
        return self.fingerprint_of(self.times, ArrayDigest().update(self.values).hexdigest(), covariates)

    def fingerprint_of(self, times: TimeAxis, values: str, covariates: Mapping[str, str]) -> str:
        """Return the fingerprint of this panel with other rows, given their times and the digests of its arrays."""
        return digest_of(
            {
                "start": times.start.isoformat(),
                "interval": times.interval.total_seconds(),
                "length": times.length,
                "zone": times.zone,
                "sensors": [asdict(sensor) for sensor in self.sensors],
                "edges": self.edges.digest(),
                "values": values,
                "covariates": {name: [covariates[name], c.unit] for name, c in self.covariates.items()},
            }
        )

    @staticmethod
    def without_rows(
        times: TimeAxis,
        sensors: Sequence[Sensor],
        edges: Edges,
        units: Mapping[str, str],
        name: str,
        provenance: Mapping[str, Any] | None = None,
    ) -> "Panel":
        """Return a panel that lacks only its rows, given the units of its covariates."""
        empty = np.empty((0, len(sensors)), np.float32)
        covariates = {name: Covariate(empty, unit) for name, unit in units.items()}
        return Panel(empty, times, tuple(sensors), edges, covariates, name, provenance or {})

    def slice(self, start: int, stop: int) -> "Panel":
        """Return the rows `start` to `stop - 1` without copying them."""
        start, stop = max(start, 0), min(stop, self.times.length)
        return self.mapped(lambda values: values[start:stop], times=self.times.slice(start, stop))

    def mapped(self, change: Callable[[NDArray[np.float32]], NDArray[np.float32]], **parts: Any) -> "Panel":
        """Return the panel with its readings and covariates changed alike, and with other parts replaced."""
        covariates = {name: replace(c, values=change(c.values)) for name, c in self.covariates.items()}
        return replace(self, values=change(self.values), covariates=covariates, **parts)

    def between(self, first: str | datetime | None, last: str | datetime | None) -> "Panel":
        """Return the rows from `first` to `last`, both included; a bare date as `last` means its whole day."""
        start = 0 if first is None else self.times.index_of(first)
        stop = self.times.length if last is None else self.times.index_after(last)
        if stop <= max(start, 0) or start >= self.times.length:
            local = self.times.local
            what = f"there is nothing between {first or 'the start'} and {last or 'the end'}"
            hint = f"the record runs from {local[0]} to {local[-1]}" if len(local) else ""
            raise InputError(what, where=self.name or "panel", hint=hint)
        return self.slice(start, stop)

    def in_zone(self, zone: str) -> "Panel":
        """Return the same readings of the same moments, with another zone beside them."""
        return self if zone == self.times.zone else replace(self, times=replace(self.times, zone=zone))

    def select(self, ids: Sequence[str]) -> "Panel":
        """Return the panel of the sensors `ids`, in that order, with the edges among them."""
        position = {sensor_id: i for i, sensor_id in enumerate(self.sensor_ids)}
        if unknown := [sensor_id for sensor_id in ids if sensor_id not in position]:
            hint = f"known: {listed(self.sensor_ids, 10)}"
            raise InputError(f"there is no sensor called {listed(unknown)}", where=self.name or "panel", hint=hint)
        columns = [position[sensor_id] for sensor_id in ids]
        sensors, edges = tuple(self.sensors[i] for i in columns), self.edges.among(columns, len(self.sensors))
        return self.mapped(lambda values: values[:, columns], sensors=sensors, edges=edges)

    def to_frame(self) -> pd.DataFrame:
        """Return the readings as a data frame: local times down, sensor ids across."""
        return pd.DataFrame(self.values, index=self.times.local, columns=list(self.sensor_ids))


def _frozen(array: ArrayLike, kind: type[np.generic]) -> NDArray[Any]:
    """Return the array read-only: itself if nobody can write to it or to what it is a view of, else a copy."""
    given = np.asarray(array)
    owner: object = given
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    if given.dtype == kind and not isinstance(owner, np.ndarray):
        return given
    copy = np.array(given, dtype=kind)
    copy.flags.writeable = False
    return copy


def adjacency_of(panel: Panel) -> "csr_array":
    """Return J, sensor x sensor, where J[i, j] > 0 is the weight of the edge from i to j; no edges are legal.

    Weights are those of the edges, else a Gaussian of their distances, else 1.
    """
    from candor.graph import adjacency, gaussian_weights  # scipy is slow to import, and most commands only read panels

    edges = panel.edges
    weight = np.ones(len(edges), np.float32) if edges.weight is None else edges.weight
    if edges.weight is None and edges.distance is not None:
        weight, _ = gaussian_weights(edges.distance)
    return adjacency(edges.source, edges.target, weight, len(panel.sensors))
