"""Whatever happens to a file, the command answers in plain words: exit code 0 or 2, no traceback, little memory."""

import io
import pickle
import resource
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray
from forked import Forked
from hypothesis import given, settings
from hypothesis import strategies as st

from candor.cli import run

IDS = ["north", "south", "10", "20"]
ROWS = 60
MEGABYTES = 1024  # in the kilobytes that the system counts
JUNK = [
    "",
    "NaN",
    "-9999",
    "1e400",
    "Ice",
    '"',
    "'",
    "\0",
    "\ufeff",
    "1,5",
    "2020-13-45",
    "01/02/2020",
    "\udcff",
    "9" * 40,
]


@cache
def whole_files() -> dict[str, bytes]:
    """Valid small files by ending: readings of every kind, edges, sensors."""
    values = np.random.default_rng(3).normal(10, 3, (ROWS, len(IDS))).round(2)
    values[5:8, 1] = np.nan
    frame = pd.DataFrame(values, index=pd.date_range("2020-10-24 20:00", periods=ROWS, freq="h"), columns=IDS)
    wide = frame.rename_axis("time").reset_index()
    long = wide.melt("time", var_name="sensor", value_name="value")
    edges = pd.DataFrame({"from": IDS, "to": IDS[1:] + IDS[:1], "distance": [1.5, 2.0, 0.5, 3.0]})
    sensors = pd.DataFrame({"sensor_id": IDS, "latitude": 42.0, "longitude": -122.0, "unit": "mg/L"})
    matrix = np.array([[1, 0.5, 0, 0], [0, 1, 0.25, 0], [0, 0, 1, 0.5], [0, 0, 0, 1]], np.float32)
    dataset = xarray.Dataset({"flow": (("time", "station"), values)}, {"time": frame.index, "station": IDS})
    files = {
        "csv": wide.to_csv(index=False).encode(),
        "long.csv": long.to_csv(index=False).encode(),
        "tsv": wide.to_csv(index=False, sep="\t").encode(),
        "parquet": written(wide.to_parquet, "parquet"),
        "long.parquet": written(long.to_parquet, "parquet"),
        "npz": written(lambda path: np.savez_compressed(path, data=values), "npz"),
        "h5": written(lambda path: frame.to_hdf(path, key="df", format="fixed"), "h5"),
        "nc": written(lambda path: dataset.to_netcdf(path, engine="netcdf4"), "nc"),
        "old.nc": written(lambda path: dataset.to_netcdf(path, engine="scipy"), "nc"),
        "edges.csv": edges.to_csv(index=False).encode(),
        "matrix.csv": pd.DataFrame(matrix, IDS, IDS).to_csv().encode(),
        "edges.parquet": written(edges.to_parquet, "parquet"),
        "pkl": pickle.dumps([IDS, {name: place for place, name in enumerate(IDS)}, matrix], protocol=2),
        "npy": written(lambda path: np.save(path, matrix), "npy"),
        "sensors.csv": sensors.to_csv(index=False).encode(),
    }
    files["csv.gz"] = pa.compress(files["csv"], "gzip", asbytes=True)
    files["long.csv.zst"] = pa.compress(files["long.csv"], "zstd", asbytes=True)
    return files


def written(write: Callable[[Path], object], ending: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"file.{ending}"
        write(path)
        return path.read_bytes()


READINGS = ["csv", "long.csv", "tsv", "csv.gz", "long.csv.zst", "parquet", "long.parquet", "npz"]
# Read by libraries in C, which may fall over as a whole: in a process of their own.
BINARY_READINGS = ["h5", "old.nc", "nc"]
EDGES = ["edges.csv", "matrix.csv", "edges.parquet", "pkl", "npy"]


@st.composite
def damages(draw: st.DrawFn, content: bytes) -> bytes:
    """Draws what is left of a file after one to three accidents."""
    for _ in range(draw(st.integers(1, 3))):
        first = draw(st.integers(0, max(len(content) - 1, 0)))
        last = min(first + draw(st.sampled_from([1, 2, 4, 8, 50, 1000])), len(content))
        match draw(st.sampled_from(["cut", "flip", "delete", "repeat", "insert", "fill", "lines", "cell", "join"])):
            case "cut":
                content = content[:first]
            case "flip":
                content = bytes_changed(content, first, draw(st.integers(1, 255)))
            case "delete":
                content = content[:first] + content[last:]
            case "repeat":
                content = content[:last] + content[first:]
            case "insert":
                content = content[:first] + draw(st.binary(max_size=20)) + content[first:]
            case "fill":
                content = content[:first] + draw(st.sampled_from([b"\0", b"\xff"])) * (last - first) + content[last:]
            case "lines":
                lines = content.split(b"\n")
                one, other = draw(st.tuples(*[st.integers(0, len(lines) - 1)] * 2))
                lines[one], lines[other] = lines[other], lines[one]
                content = b"\n".join(lines)
            case "cell":
                cells = content.split(b",")
                cells[draw(st.integers(0, len(cells) - 1))] = draw(st.sampled_from(JUNK)).encode(
                    errors="surrogateescape"
                )
                content = b",".join(cells)
            case "join":
                content += whole_files()[draw(st.sampled_from(sorted(whole_files())))]
    return content


def bytes_changed(content: bytes, place: int, by: int) -> bytes:
    return content[:place] + bytes(byte ^ by for byte in content[place : place + 1]) + content[place + 1 :]


@st.composite
def accidents(draw: st.DrawFn, kinds: list[str]) -> tuple[dict[str, tuple[str, bytes]], list[str]]:
    """Draws three files, one of them damaged or called what it is not, and options."""
    files = {"readings": draw(st.sampled_from(kinds)), "edges": draw(st.sampled_from(EDGES)), "sensors": "sensors.csv"}
    if files["readings"] == "npz":  # whose sensors have numbers for names
        files["edges"] = "npy"
    parts = {role: (f"{role}.{kind}", whole_files()[kind]) for role, kind in files.items()}
    victim = draw(st.sampled_from(["readings", "readings", "readings", "edges", "sensors"]))
    name, content = parts[victim]
    if draw(st.integers(0, 9)) == 0:
        name = f"{victim}.{draw(st.sampled_from(sorted(whole_files())))}"
    parts[victim] = name, draw(damages(content))
    options = ["--start", "2020-10-24", "--interval", "1h"] if files["readings"] == "npz" else []
    options += draw(st.sampled_from([[], ["--zone", "Europe/Berlin"], ["--minimum", "0", "--json"]]))
    return parts, options


def assert_plain_words(parts: dict[str, tuple[str, bytes]], options: list[str]) -> int:
    """Checks what `candor data check` says about the files and returns its exit code."""
    with TemporaryDirectory() as folder:
        paths = {role: Path(folder) / name for role, (name, _) in parts.items()}
        for role, (_, content) in parts.items():
            paths[role].write_bytes(content)
        arguments = ["data", "check", paths["readings"], "--edges", paths["edges"], "--sensors", paths["sensors"]]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = run([*map(str, arguments), *options])
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    said = out.getvalue() + err.getvalue()
    assert code in (0, 2), said
    assert "Traceback" not in said and said.strip()
    assert grown < 700 * MEGABYTES
    return code


@settings(max_examples=50)
@given(accident=accidents(READINGS))
def test_damaged_tables_are_answered_in_plain_words(accident: tuple[dict[str, tuple[str, bytes]], list[str]]) -> None:
    assert_plain_words(*accident)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(accident=accidents(READINGS))
def test_ten_thousand_damaged_tables_are_answered_in_plain_words(
    accident: tuple[dict[str, tuple[str, bytes]], list[str]],
) -> None:
    assert_plain_words(*accident)


# Every kind of readings with edges that name sensors and with a matrix that does not, and one kind with all edges.
PAIRS = [(kind, edges) for kind in [*READINGS, *BINARY_READINGS] for edges in EDGES
         if edges in ("edges.csv", "npy") or kind == "csv"]  # fmt: skip


@pytest.mark.parametrize(("kind", "edges"), PAIRS)
def test_whole_files_are_read_without_an_error_unless_they_leave_a_doubt(kind: str, edges: str) -> None:
    files = whole_files()
    parts = {"readings": (f"r.{kind}", files[kind]), "edges": (f"e.{edges}", files[edges])}
    parts["sensors"] = "s.csv", files["sensors.csv"]
    if kind == "npz":  # whose sensors have numbers for names
        parts["edges"] = "e.npy", files["npy"]
    is_in_doubt = edges == "npy" and kind.startswith("long")  # which row of the matrix is whose
    assert assert_plain_words(parts, ["--start", "2020-10-24", "--interval", "1h"]) == (2 if is_in_doubt else 0)


BINARY = st.sampled_from(BINARY_READINGS).flatmap(lambda kind: st.tuples(st.just(kind), damages(whole_files()[kind])))


def check_all(paths: list[Path]) -> int:
    """Returns 0 if every file is answered with 0 or 2; what is loaded here warns as it does for users."""
    warnings.resetwarnings()
    return 0 if {run(["data", "check", str(path)]) for path in paths} <= {0, 2} else 1


def assert_plain_words_in_a_child(files: list[tuple[str, bytes]]) -> None:
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.{kind}" for number, (kind, _) in enumerate(files)]
        for path, (_, content) in zip(paths, files, strict=True):
            path.write_bytes(content)
        with Forked(partial(check_all, paths)) as child:
            said = "".join(child.communicate())
    assert child.returncode == 0, said
    assert "Traceback" not in said


def test_damaged_binary_files_are_answered_in_plain_words() -> None:
    files: list[tuple[str, bytes]] = []

    @settings(max_examples=12)
    @given(file=BINARY)
    def draw(file: tuple[str, bytes]) -> None:
        files.append(file)

    draw()
    assert len(files) >= 12
    assert_plain_words_in_a_child(files)


@pytest.mark.slow
@settings(max_examples=40)
@given(files=st.lists(BINARY, min_size=25, max_size=25))
def test_two_thousand_damaged_binary_files_are_answered_in_plain_words(files: list[tuple[str, bytes]]) -> None:
    assert_plain_words_in_a_child(files)
