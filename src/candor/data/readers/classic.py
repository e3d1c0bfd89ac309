"""The files of the classic traffic benchmarks: HDF5 as pandas writes it, and numpy archives."""

import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.readers.cells import distinct_ids
from candor.data.readers.readings import Stamps, WideReadings
from candor.data.readers.small_tables import plain_words
from candor.data.readers.sources import Source, find_source
from candor.data.times import plain_zone

MOST_SHRINKING = 1100  # deflate makes nothing smaller than a 1032nd of its size
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_YEAR_9999 = 253_402_300_800_000_000  # microseconds
_ROWS_AT_A_TIME = 4096
_PICKLED_OFFSET = re.compile(r"cdatetime\ntimezone\n\S+\n\(cdatetime\ntimedelta\n\S+\n\(I(-1|0)\nI(\d{1,5})\n")
_FIXED = "frame.to_hdf(path, key='df', format='fixed'), or frame.to_parquet(path)"


def read_classic_hdf(path: Path | str) -> WideReadings:
    """Return the readings of a pandas HDF5 file of format "fixed", such as metr-la.h5.

    Times are what a local clock showed, unless pandas noted a zone beside them.
    """
    source = _unpacked(find_source(path))
    with plain_words(source.path), h5py.File(source.path, "r") as file:
        group = _frame_group(file, source.path)
        return _FixedFrame(group, source.path).read()


class _FixedFrame:
    """One data frame in format "fixed": axis0 (columns), axis1 (times), and blocks of columns."""

    def __init__(self, group: h5py.Group, path: Path) -> None:
        self.group, self.where, self.file_size = group, f"{path}, group {group.name}", path.stat().st_size

    def read(self) -> WideReadings:
        """Return the whole frame, columns in the order of axis0."""
        columns, times = self._member("axis0"), self._member("axis1")
        if 0 in (columns.size, times.size) or "shape" in columns.attrs or "shape" in times.attrs:
            raise InputError("the frame is empty", where=self.where, hint="export the readings again")
        ids, stamps = self._ids(columns), self._stamps(times)
        # Where pandas notes a zone, it stores UTC; "N." is how it stores that there is none.
        zone = _attribute(times, "tz")
        return WideReadings(stamps, self._values(ids, len(stamps)), ids, zone not in ("", "N."), _noted_zones(zone))

    def _member(self, name: str) -> h5py.Dataset:
        """Return a dataset that lies in this very file and is no larger than the file can hold."""
        is_inside = isinstance(self.group.get(name, getlink=True), h5py.HardLink)
        dataset = self.group.get(name) if is_inside else None
        if not isinstance(dataset, h5py.Dataset):
            raise self._refusal(f"{name} is not a table in this file")
        if dataset.is_virtual or dataset.external:
            raise self._refusal(f"{name} is kept in another file")
        if dataset.shape is None:
            raise self._refusal(f"{name} is empty")
        size = math.prod(dataset.shape) * dataset.dtype.itemsize
        if size > self.file_size * (1 if dataset.chunks is None else MOST_SHRINKING):
            raise self._refusal(f"{name} claims {size} bytes, more than the file can hold")
        return dataset

    def _ids(self, dataset: h5py.Dataset) -> tuple[str, ...]:
        if dataset.ndim != 1 or dataset.dtype.kind not in "Siuf":
            raise self._refusal(f"the sensor ids in {dataset.name} are neither texts nor numbers")
        return distinct_ids(dataset[:].tolist(), self.where)

    def _stamps(self, dataset: h5py.Dataset) -> Stamps:
        kind = _attribute(dataset, "kind") or "datetime64"
        match = re.fullmatch(r"datetime64(?:\[(s|ms|us|ns)\b.*\])?", kind)
        if match is None or dataset.ndim != 1 or dataset.dtype.kind not in "iu":
            raise self._refusal(f"the index holds no times (its kind is {kind[:40]!r})")
        return stamps_from_numbers(dataset[:].astype(np.int64), match[1] or "ns")

    def _values(self, ids: tuple[str, ...], rows: int) -> NDArray[np.float32]:
        place = {sensor_id: column for column, sensor_id in enumerate(ids)}
        blocks: list[tuple[h5py.Dataset, list[int], bool]] = []
        for name in sorted(self.group):
            if match := re.fullmatch(r"(block\d+)_items", name):
                items, values = self._ids(self._member(name)), self._member(f"{match[1]}_values")
                if not set(items) <= set(ids):
                    raise self._refusal(f"{name} names sensors that axis0 does not")
                blocks.append((values, [place[item] for item in items], self._is_upright(values, rows, len(items))))
        if sorted(column for _, columns, _ in blocks for column in columns) != list(range(len(ids))):
            raise self._refusal("the blocks do not hold each sensor once")
        result = np.full((rows, len(ids)), np.nan, np.float32)
        for dataset, columns, is_upright in blocks:
            for first in range(0, rows, _ROWS_AT_A_TIME):
                part = slice(first, first + _ROWS_AT_A_TIME)
                numbers = dataset[part] if is_upright else dataset[:, part].T
                result[part, columns] = as_readings(numbers)
        return result

    def _is_upright(self, dataset: h5py.Dataset, rows: int, columns: int) -> bool:
        """Return whether the numbers stand with times down; pandas calls that `transposed`."""
        if dataset.dtype.kind not in "iufb" or "value_type" in dataset.attrs:
            raise self._refusal(f"{dataset.name} does not hold numbers")
        if dataset.shape == (rows, columns):
            return rows != columns or bool(dataset.attrs.get("transposed", True))
        if dataset.shape == (columns, rows):
            return False
        raise self._refusal(f"{dataset.name} has shape {dataset.shape} where {(rows, columns)} was expected")

    def _refusal(self, what: str) -> InputError:
        return InputError(what, where=self.where, hint=f"write it again: {_FIXED}")


def _frame_group(file: h5py.File, path: Path) -> h5py.Group:
    """Return the only group that holds a frame of format "fixed"."""
    groups = [file["/"]]
    file.visititems(lambda _, item: groups.append(item) if isinstance(item, h5py.Group) else None)
    wanted = {"axis0", "axis1", "block0_items", "block0_values"}
    frames = [group for group in groups if wanted <= set(group)]
    if len(frames) == 1:
        return frames[0]
    what, hint = "the file holds no data frame of pandas", f"write it with {_FIXED}"
    if frames:
        names = listed(group.name for group in frames)
        what, hint = f"the file holds several frames ({names})", "keep one frame in the file"
    elif any("table" in group for group in groups):
        what = 'the file is written in the format "table", whose column names are pickled'
    raise InputError(what, where=str(path), hint=hint)


def _attribute(dataset: h5py.Dataset, name: str) -> str:
    """Return an attribute as text, empty if there is none."""
    value = dataset.attrs.get(name)
    text = value.decode("latin1") if isinstance(value, bytes) else value
    return text if isinstance(text, str) else ""


def _noted_zones(note: str) -> tuple[str, ...]:
    """Return the zone that pandas noted: by its name, or pickled if it is an offset, whose text is read by hand."""
    if match := _PICKLED_OFFSET.match(note):
        return (str(timezone(timedelta(days=int(match[1]), seconds=int(match[2])))),)
    zone = plain_zone(note)
    return () if zone is None else (zone,)


def stamps_from_numbers(numbers: NDArray[np.int64], unit: str) -> Stamps:
    """Return times (microseconds) from counts of `unit` since 1970; NaT after the year 9999."""
    if unit == "ns":
        numbers = np.where(numbers == np.iinfo(np.int64).min, numbers, numbers // 1000)  # the least stands for NaT
    factor = _MICROSECONDS.get(unit, 1)
    limit = _YEAR_9999 // factor
    is_known = (numbers > -limit) & (numbers < limit)
    micro = np.where(is_known, numbers, 0) * factor
    return np.where(is_known, micro.view("datetime64[us]"), np.datetime64("NaT", "us"))


def as_readings(numbers: NDArray[Any]) -> NDArray[np.float32]:
    """Return a float32 copy; what is infinite or becomes so stays, for `NumberReader.clean` counts it."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array(numbers, dtype=np.float32)


def read_npz(path: Path | str, start: datetime | None, interval: timedelta | None) -> WideReadings:
    """Return the readings of a numpy archive, of which only the first feature is taken.

    Either `data` (time x sensor, or time x sensor x feature), or windows `x` and `y`
    (sample x time x sensor x feature) that move on by one step, which are put together again. The archive carries no
    times: the first row is of `start`, on a local clock unless that has a zone.
    """
    source, where = _unpacked(find_source(path)), str(path)
    if start is None or interval is None or interval <= timedelta(0):
        hint = "say when it begins and how rows follow: --start 2012-03-01 --interval 5min"
        raise InputError("the file carries no times, and start and interval were not given", where=where, hint=hint)
    with open_arrays(source) as arrays:
        if "x" in arrays and "y" in arrays:
            values = _joined_windows(_first_feature(arrays["x"], 3), _first_feature(arrays["y"], 3))
        elif "data" in arrays:
            values = _first_feature(arrays["data"], 2)
        else:
            raise ValueError(f"it has no array called data, nor x and y, only {listed(arrays)}")
        if values.size == 0:
            raise ValueError("its arrays are empty")
    ids = tuple(str(column) for column in range(values.shape[1]))
    try:
        first = start if start.tzinfo is None else start.astimezone(UTC).replace(tzinfo=None)
        first + (len(values) - 1) * interval
    except OverflowError:
        what = "the record would end after the year 9999"
        raise InputError(what, where=where, hint="give another --interval") from None
    stamps = np.datetime64(first, "us") + np.arange(len(values)) * np.timedelta64(interval)
    zones = () if start.tzinfo is None else (str(start.tzinfo),)
    return WideReadings(stamps, values, ids, start.tzinfo is not None, zones)


@contextmanager
def open_arrays(source: Source) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Yield the arrays of an .npz by name, or the one of an .npy with an empty name.

    What each array claims to be is compared with the bytes that are there before it is read.
    """
    with plain_words(source.path), source.path.open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            with zipfile.ZipFile(source.path) as parts:
                for part in parts.infolist():
                    if part.file_size > MOST_SHRINKING * (part.compress_size + 1):
                        raise ValueError(f"{part.filename} claims more bytes than it can hold")
                    with parts.open(part) as stream:
                        _check_array(stream, part.file_size)
            with np.load(source.path, allow_pickle=False) as archive:
                yield archive
        else:
            file.seek(0)
            _check_array(file, source.path.stat().st_size)
            yield {"": np.load(source.path, allow_pickle=False)}


def _check_array(file: IO[bytes], size: int) -> None:
    """Refuse an array of anything but numbers, or one larger than its bytes."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    read_header = readers.get(np.lib.format.read_magic(file))
    if read_header is None:
        raise ValueError("its arrays do not hold plain numbers")
    shape, _, kind = read_header(file)
    if math.prod(shape) * kind.itemsize > size or kind.hasobject or min(shape, default=0) < 0:
        raise ValueError("an array claims more than the file holds, or holds Python objects")


def _first_feature(array: NDArray[Any], axes: int) -> NDArray[np.float32]:
    if array.dtype.kind not in "iufb" or array.ndim not in (axes, axes + 1) or 0 in array.shape:
        raise ValueError(f"an array of {array.dtype} of shape {array.shape} holds no readings")
    return as_readings(array if array.ndim == axes else array[..., 0])


def _joined_windows(past: NDArray[np.float32], future: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the record whose windows these are (sample x time x sensor), or refuse."""
    samples, length, sensors = past.shape
    if future.shape[0] != samples or future.shape[2] != sensors:
        raise ValueError(f"x and y do not belong together: {past.shape}, {future.shape}")
    record = np.concatenate([past[0], past[1:, -1], future[-1]])
    for first, windows in ((0, past), (length, future)):
        for step in range(windows.shape[1]):
            part = record[first + step : first + step + samples]
            if not np.array_equal(windows[:, step], part, equal_nan=True):
                raise ValueError("its windows do not follow each other step by step")
    return record


def _unpacked(source: Source) -> Source:
    if source.packing is None:
        return source
    what = f"files of this type are not read while packed as {source.packing}"
    raise InputError(what, where=str(source.path), hint="unpack it first")
