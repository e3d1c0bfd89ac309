"""Connections between sensors, from a list of edges or from a square matrix."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.findings import Findings
from candor.data.panel import Edges
from candor.data.readers.cells import IdLookup, numbers_of, report_doubtful_commas
from candor.data.readers.matrices import TextMatrix, find_matrix, read_pickled_adjacency, read_square_array
from candor.data.readers.small_tables import SmallTable, read_small_table
from candor.data.readers.sources import find_source

_FROM = ("from", "source", "src", "start", "origin", "upstream")
_TO = ("to", "target", "dst", "dest", "end", "destination", "downstream")
_END = r"(?:(?:sensor|node|station|site|id)_)?{}(?:_(?:sensor|node|station|site))?(?:_(?:id|no))?"
_UNITS = {
    **dict.fromkeys(("km", "kilometer", "kilometers", "kilometre", "kilometres"), "km"),
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres"), "m"),
    **dict.fromkeys(("mi", "mile", "miles"), "mi"),
    **dict.fromkeys(("ft", "feet"), "ft"),
}
_DISTANCE = ("distance", "distances", "dist", "length", "cost")
_MEASURE = r"(?:\w+_)?{}(?:_(?P<unit>" + "|".join(_UNITS) + r"))?"
_WEIGHT = ("weight", "weights", "w", "similarity", "strength")


@dataclass(frozen=True)
class _Task:
    """The sensors to find edges among, those of the rows of a matrix without ids (if known), and where to report."""

    sensors: IdLookup
    matrix_rows: Sequence[str]
    where: str
    findings: Findings


@dataclass(frozen=True)
class _Graph:
    """Edges as they stand in the file, from `labels[source[e]]` to `labels[target[e]]`.

    `numbers` are their distances or weights, NaN where missing. `lines` says where each edge stood, if it had a line,
    and `place` whether these are lines of a file or rows of a frame.
    """

    labels: Sequence[str]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    numbers: dict[str, NDArray[np.float32]]
    distance_unit: str = ""
    lines: Sequence[int] = ()
    place: str = "line"

    def examples(self, edges: NDArray[np.int64]) -> str:
        """Return the first few of some edges in words, and how many more there are."""
        words = []
        for edge in edges[:5]:
            line = f" ({self.place} {self.lines[edge]})" if self.lines else ""
            words.append(f"{self.labels[self.source[edge]]} to {self.labels[self.target[edge]]}{line}")
        return ", ".join(words) + (f" and {len(edges) - 5} more" if len(edges) > 5 else "")


def read_edges(
    path_or_frame: Path | str | pd.DataFrame,
    ids: Sequence[str],
    findings: Findings,
    matrix_rows: Sequence[str] | None = None,
) -> Edges:
    """Return the edges among the sensors `ids`, ordered by where they start and where they lead.

    Args:
        path_or_frame: a list with the columns from, to, distance and/or weight, or a square matrix
            whose entry in row i and column j is the weight from i to j (0, empty and NaN: none). CSV,
            Parquet, .npy, .npz, the classic pickle, or a data frame.
        ids: the sensors that have readings, in the order of the panel.
        findings: where everything left out or guessed is noted.
        matrix_rows: the sensors in the order of a matrix without ids, empty if that is in doubt; None is that of `ids`.
    """
    where = "the table of edges" if isinstance(path_or_frame, pd.DataFrame) else str(path_or_frame)
    task = _Task(IdLookup(ids), ids if matrix_rows is None else matrix_rows, where, findings)
    if isinstance(path_or_frame, pd.DataFrame):
        graph = _graph_from_table(read_small_table(path_or_frame), task)
    elif (source := find_source(path_or_frame)).kind in {"npy", "npz"}:
        graph = _graph_from_matrix((), read_square_array(source), task)
    elif source.kind in {"pkl", "pickle"}:
        graph = _graph_from_matrix(*read_pickled_adjacency(source.path), task)
    else:
        graph = _graph_from_table(read_small_table(source), task)
    return _edges_among(graph, task)


def _graph_from_table(table: SmallTable, task: _Task) -> _Graph:
    """Return the graph of a list if it has columns called from and to, else of a matrix."""
    report_doubtful_commas(table.doubtful_commas, task.findings, task.where)
    start, end = _find_column(table.names, _FROM, _END), _find_column(table.names, _TO, _END)
    if start is not None and end is not None:
        distance = _find_column(table.names, _DISTANCE, _MEASURE)
        if distance is None:
            distance = _find_column(table.names, tuple(_UNITS), "{}")
        return _graph_from_list(table, (start, end), distance, _find_column(table.names, _WEIGHT, "{}"), task)
    grid = table
    if table.header is not None:
        grid = SmallTable(None, [table.header, *table.rows], [1, *table.numbers], table.place)
    if not grid.rows or not grid.rows[0]:
        raise InputError("the table is empty", where=task.where, hint="export the edges again")
    is_list = _is_list_without_names(grid, table.header is not None, task)
    matrix = find_matrix(grid, task.sensors)
    if is_list and matrix is not None and matrix.holds_numbers():
        what = "this may be a list of edges as well as a matrix"
        hint = "name the columns of a list from,to,distance; put sensor ids around a matrix"
        raise InputError(what, where=task.where, hint=hint)
    if is_list:
        has_distance = len(grid.rows[0]) == 3
        what = f"the list has no header: it was read as from, to{', distance' * has_distance}"
        task.findings.warning(what, task.where, hint="put names on top, such as from,to,weight, if that is wrong")
        return _graph_from_list(grid, (0, 1), 2 if has_distance else None, None, task)
    if matrix is not None:
        return _graph_from_text_matrix(matrix, task)
    raise InputError(
        f"this is no list of edges (no columns are called from and to; the first row is: "
        f"{listed(grid.rows[0])}) and no square matrix ({len(grid.rows)} x {len(grid.rows[0])})",
        where=task.where,
        hint="name the columns from,to,distance, or give a square matrix with sensor ids",
    )


def _find_column(names: list[str], words: Sequence[str], form: str) -> int | None:
    """Return the column whose name has the given form with the earliest of the words."""
    found = (i for word in words for i, name in enumerate(names) if re.fullmatch(form.format(word), name))
    return next(found, None)


def _is_list_without_names(grid: SmallTable, has_names: bool, task: _Task) -> bool:
    """Return whether rows are id, id and perhaps a number: at least half of them name two sensors.

    A first row without any number counts only if it names two sensors as well.
    """
    if len(grid.rows[0]) not in (2, 3):
        return False
    known = (task.sensors.positions(grid.column(0)) >= 0) & (task.sensors.positions(grid.column(1)) >= 0)
    return bool(known.mean() >= 0.5 and (known[0] or not has_names))


def _graph_from_list(
    table: SmallTable, ends: tuple[int, int], distance: int | None, weight: int | None, task: _Task
) -> _Graph:
    kept = [i for i, row in enumerate(table.rows) if any(cell.strip() for cell in row)]
    lines = [table.numbers[i] for i in kept]
    texts = [table.rows[i][end].strip() for end in ends for i in kept]
    if "" in texts:
        nameless = sorted({lines[i % len(lines)] for i, text in enumerate(texts) if not text})
        what = f"edges do not say where they start or lead: {table.place} {listed(nameless)}"
        raise InputError(what, where=task.where, hint="give both sensors of every edge")
    codes, labels = pd.factorize(np.array(texts, dtype=object))
    numbers = {
        name: _as_numbers([table.rows[i][column] for i in kept], lines, table.place, task)
        for name, column in (("distance", distance), ("weight", weight))
        if column is not None
    }
    if not numbers:
        numbers["weight"] = np.ones(len(kept), np.float32)
        others = [name for column, name in enumerate(table.header or ()) if column not in ends]
        what = "the list has neither distances nor weights: every edge has the weight 1"
        hint = f"call one of the other columns distance_km or weight ({listed(others)})" if others else ""
        if kept:
            (task.findings.warning if others else task.findings.note)(what, task.where, len(kept), hint)
    unit = table.names[distance].rpartition("_")[2] if distance is not None and table.names else ""
    source, target = codes[: len(kept)], codes[len(kept) :]
    return _Graph(labels.tolist(), source, target, numbers, _UNITS.get(unit, ""), lines, table.place)


def _as_numbers(cells: list[str], lines: Sequence[int], place: str, task: _Task) -> NDArray[np.float32]:
    """Return cells as numbers, NaN where one is empty."""
    numbers, is_text = numbers_of(cells)
    if is_text.any():
        first = int(is_text.argmax())
        what = f"{cells[first].strip()[:40]!r} is no number ({place} {lines[first]})"
        hint = "write plain numbers with a point, such as 4.2; leave what a matrix does not join empty or 0"
        raise InputError(what, where=task.where, hint=hint)
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)


def _graph_from_text_matrix(text: TextMatrix, task: _Task) -> _Graph:
    size = len(text.cells)
    matrix = _as_numbers(text.flat, np.repeat(text.lines, size).tolist(), "line", task).reshape(size, size)
    if text.left is not None and text.top is not None:
        if set(text.left) != set(text.top):
            strangers = listed(sorted(set(text.left) ^ set(text.top)))
            what = f"the rows and columns of the matrix name different sensors: {strangers}"
            raise InputError(what, where=task.where, hint="give every sensor a row and a column")
        column_of = {label: column for column, label in enumerate(text.top)}
        matrix = matrix[:, [column_of[label] for label in text.left]]
    return _graph_from_matrix(text.left or text.top or (), matrix, task)


def _graph_from_matrix(labels: Sequence[str], matrix: NDArray[Any], task: _Task) -> _Graph:
    """Return the graph of a matrix; without labels it has the order of the sensors, if that is known."""
    ids = task.sensors.ids
    counted = [str(number) for number in range(len(ids))]
    if not labels or (list(labels) == counted and (task.sensors.positions(labels) < 0).all()):
        if len(matrix) != len(ids):
            what = f"the matrix has {len(matrix)} rows and no ids, the readings {len(ids)} sensors"
            hint = "give a matrix with sensor ids around it, or one of exactly these sensors"
            raise InputError(what, where=task.where, hint=hint)
        hint, rows = "put the sensor ids around the matrix, as CSV", task.matrix_rows
        if not rows:
            what = "the matrix names no sensors, and neither the readings nor the ids tell which row is whose"
            raise InputError(what, where=task.where, hint=hint)
        what = f"the matrix names no sensors: its rows were taken as those of {listed(rows)}, in this order"
        task.findings.warning(what, task.where, hint=f"{hint}, if that is wrong")
        labels = rows
    if len(set(labels)) < len(labels):
        raise InputError("the matrix names a sensor twice", where=task.where, hint="keep one row for each sensor")
    with np.errstate(over="ignore"):
        weights = np.nan_to_num(matrix.astype(np.float32), nan=0, posinf=np.inf, neginf=-np.inf)
    source, target = np.nonzero(weights)
    return _Graph(labels, source, target, {"weight": weights[source, target]})


def _edges_among(graph: _Graph, task: _Task) -> Edges:
    """Return the edges between known sensors, once each, ordered by source and target."""
    where, findings = task.where, task.findings
    if len(graph.source) == 0:
        findings.warning("there is not a single edge", where, hint="check the file")
        return Edges.none()
    is_right = np.ones(len(graph.source), bool)
    for name, numbers in graph.numbers.items():
        is_right &= np.isfinite(numbers) & ((numbers >= 0) if name == "distance" else (numbers > 0))
    if not is_right.all():
        examples = graph.examples(np.flatnonzero(~is_right))
        what = f"weights must be positive numbers, distances numbers of zero or more; look at {examples}"
        hint = "give every edge its number, or leave the edge out; a larger weight means closer"
        raise InputError(what, where=where, hint=hint)
    positions = task.sensors.positions(graph.labels)
    table = pd.DataFrame({"source": positions[graph.source], "target": positions[graph.target]} | graph.numbers)
    is_known = (table["source"] >= 0) & (table["target"] >= 0)
    if not is_known.any():
        raise InputError(
            f"no edge joins two sensors that have readings; the edges name {listed(graph.labels)}, "
            f"the readings {listed(task.sensors.ids)}",
            where=where,
            hint="write the ids in both files alike",
        )
    if dropped := int((~is_known).sum()):
        what, hint = "edges name sensors without readings: left out", "add readings of them, or remove the edges"
        strangers = [graph.labels[i] for i in np.flatnonzero(positions < 0).tolist()]
        findings.about(strangers, what, hint, where=where, count=dropped)
    table = table[is_known].sort_values(["source", "target"], kind="stable")
    is_again = table.duplicated(["source", "target"])
    contradicting = np.sort(table.index[is_again & ~table.duplicated()])
    if len(contradicting):
        what = f"edges are listed again with other numbers: {graph.examples(contradicting)}"
        raise InputError(what, where=where, hint="keep one row for each edge")
    if again := int(is_again.sum()):
        what = "edges are listed more than once, with the same numbers: the first counts"
        findings.warning(what, where, again, "remove the repeated rows")
    table = table[~is_again]
    if loops := int((table["source"] == table["target"]).sum()):
        findings.note("edges lead from a sensor to itself: kept", where, loops)
    columns = {str(name): column.to_numpy() for name, column in table.items()}
    return Edges(**columns, distance_unit=graph.distance_unit)
