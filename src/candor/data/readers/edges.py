"""Connections between sensors, from a list of edges or from a square matrix."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.findings import Findings
from candor.data.panel import Edges
from candor.data.readers.matrices import TextMatrix, find_matrix, read_pickled_adjacency, read_square_array
from candor.data.readers.numbers import DOUBT_ABOUT_COMMAS, MEND_OF_COMMAS
from candor.data.readers.small_tables import (
    IdLookup,
    SmallTable,
    numbers_of,
    plain_name,
    read_small_table,
    table_from_frame,
)
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
    """What is asked for: edges among these sensors, from this file, with notes taken."""

    sensors: IdLookup
    matrix_rows: Sequence[str]
    where: str
    findings: Findings
    matrix_holds: Literal["weight", "distance"]


@dataclass(frozen=True)
class _Graph:
    """Edges as they stand in the file, from `labels[source[e]]` to `labels[target[e]]`.

    What is missing or no number is NaN. `lines` says where each edge stood, if it had a line, and
    `place` whether these are lines of a file or rows of a frame.
    """

    labels: Sequence[str]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    distance: NDArray[np.float32] | None = None
    weight: NDArray[np.float32] | None = None
    distance_unit: str = ""
    lines: Sequence[int] = ()
    place: str = "line"

    def examples(self, chosen: NDArray[np.bool_]) -> str:
        """Returns the first few of the chosen edges in words, and how many more there are."""
        edges = np.flatnonzero(chosen).tolist()
        words = [
            f"{self.labels[self.source[edge]]} to {self.labels[self.target[edge]]}"
            + (f" ({self.place} {self.lines[edge]})" if self.lines else "")
            for edge in edges[:5]
        ]
        return ", ".join(words) + (f" and {len(edges) - 5} more" if len(edges) > 5 else "")


def read_edges(
    path_or_frame: Path | str | pd.DataFrame,
    ids: Sequence[str],
    findings: Findings,
    matrix_holds: Literal["weight", "distance"] = "weight",
    matrix_rows: Sequence[str] | None = None,
) -> Edges:
    """Returns the edges among the sensors `ids`, ordered by where they start and where they lead.

    Args:
        path_or_frame: a list with the columns from, to, distance and/or weight, or a square matrix
            whose entry in row i and column j is the edge from i to j (0, empty and NaN: none). CSV,
            Parquet, .npy, .npz, the classic pickle, or a data frame.
        ids: the sensors that have readings, in the order of the panel.
        findings: where everything left out or guessed is noted.
        matrix_holds: what the numbers of a matrix are.
        matrix_rows: the sensors in the order of a matrix without ids, empty if that is in doubt; None is that of `ids`.
    """
    sensors, matrix_rows = IdLookup(ids), ids if matrix_rows is None else matrix_rows
    if isinstance(path_or_frame, pd.DataFrame):
        task = _Task(sensors, matrix_rows, "the table of edges", findings, matrix_holds)
        graph = _graph_from_table(table_from_frame(path_or_frame), task)
    else:
        source = find_source(path_or_frame)
        task = _Task(sensors, matrix_rows, str(source.path), findings, matrix_holds)
        if source.kind in {"npy", "npz"}:
            graph = _graph_from_matrix((), read_square_array(source), task)
        elif source.kind in {"pkl", "pickle"}:
            graph = _graph_from_matrix(*read_pickled_adjacency(source.path), task)
        else:
            graph = _graph_from_table(read_small_table(source), task)
    _check_numbers(graph, task.where)
    return _edges_among(graph, task)


def _graph_from_table(table: SmallTable, task: _Task) -> _Graph:
    """Returns the graph of a list if it has columns called from and to, else of a matrix."""
    if table.doubtful_commas:
        task.findings.warning(DOUBT_ABOUT_COMMAS, task.where, table.doubtful_commas, MEND_OF_COMMAS)
    header = table.header or []
    names = [plain_name(name) for name in header]
    ends = _find_column(names, _FROM, _END), _find_column(names, _TO, _END)
    if ends[0] is not None and ends[1] is not None:
        distance = _find_column(names, _DISTANCE, _MEASURE)
        if distance is None:
            distance = _find_column(names, tuple(_UNITS), "{}")
        weight = _find_column(names, _WEIGHT, "{}")
        return _graph_from_list(table, (ends[0], ends[1]), distance, weight, names, task)
    has_names = table.header is not None
    grid = table
    if has_names:
        grid = SmallTable(None, [header, *table.rows], [1, *table.numbers], table.place)
    if not grid.rows or not grid.rows[0]:
        raise InputError("the table is empty", where=task.where, hint="export the edges again")
    is_list, matrix = _is_list_without_names(grid, has_names, task), find_matrix(grid, task.sensors)
    if is_list and matrix is not None and matrix.holds_numbers():
        raise InputError(
            "this may be a list of edges as well as a matrix",
            where=task.where,
            hint="name the columns of a list from,to,distance; put sensor ids around a matrix",
        )
    if is_list:
        return _graph_from_list_without_names(grid, task)
    if matrix is not None:
        return _graph_from_text_matrix(matrix, task)
    raise InputError(
        f"this is no list of edges (no columns are called from and to; the first row is: "
        f"{listed(grid.rows[0])}) and no square matrix ({len(grid.rows)} x {len(grid.rows[0])})",
        where=task.where,
        hint="name the columns from,to,distance, or give a square matrix with sensor ids",
    )


def _find_column(names: list[str], words: Sequence[str], form: str) -> int | None:
    """Returns the column whose name has the given form with the earliest of the words."""
    for word in words:
        for column, name in enumerate(names):
            if re.fullmatch(form.format(word), name):
                return column
    return None


def _graph_from_list(
    table: SmallTable,
    ends: tuple[int, int],
    distance: int | None,
    weight: int | None,
    names: list[str],
    task: _Task,
) -> _Graph:
    kept = [i for i, row in enumerate(table.rows) if any(cell.strip() for cell in row)]
    rows, lines = [table.rows[i] for i in kept], [table.numbers[i] for i in kept]
    texts = [row[end].strip() for end in ends for row in rows]
    if "" in texts:
        nameless = sorted({lines[i % len(rows)] for i, text in enumerate(texts) if not text})
        raise InputError(
            f"edges do not say where they start or lead: {table.place} {listed(nameless)}",
            where=task.where,
            hint="give both sensors of every edge",
        )
    codes, labels = pd.factorize(np.array(texts, dtype=object))
    distances, weights = (
        None if column is None else _number_column(table, kept, column, task) for column in (distance, weight)
    )
    if weights is None and distances is None:
        weights = np.ones(len(rows), np.float32)
        others = [name for column, name in enumerate(table.header or ()) if column not in ends]
        what = "the list has neither distances nor weights: every edge has the weight 1"
        if rows:
            hint = f"call one of the other columns distance_km or weight ({listed(others)})" if others else ""
            (task.findings.warning if others else task.findings.note)(what, task.where, len(rows), hint)
    unit = "" if distance is None or not names else names[distance].rpartition("_")[2]
    return _Graph(
        labels=labels.tolist(),
        source=codes[: len(rows)],
        target=codes[len(rows) :],
        distance=distances,
        weight=weights,
        distance_unit=_UNITS.get(unit, ""),
        lines=lines,
        place=table.place,
    )


def _number_column(table: SmallTable, rows: Sequence[int], column: int, task: _Task) -> NDArray[np.float32]:
    """Returns a column of some rows as numbers, NaN where a cell is empty."""
    numbers, strange = numbers_of([table.rows[row][column] for row in rows])
    if strange:
        row = rows[strange[0]]
        what = f"{table.rows[row][column].strip()!r} is no number ({table.place} {table.numbers[row]})"
        raise InputError(what, where=task.where, hint="give distances and weights as plain numbers, such as 4.2")
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)


def _is_list_without_names(grid: SmallTable, has_names: bool, task: _Task) -> bool:
    """Returns whether rows are id, id and perhaps a number: at least half of them name two sensors.

    A first row without any number counts only if it names two sensors as well.
    """
    if len(grid.rows[0]) not in (2, 3):
        return False
    known = task.sensors.positions(row[0] for row in grid.rows) >= 0
    known &= task.sensors.positions(row[1] for row in grid.rows) >= 0
    return bool(known.mean() >= 0.5 and (known[0] or not has_names))


def _graph_from_list_without_names(grid: SmallTable, task: _Task) -> _Graph:
    has_distance = len(grid.rows[0]) == 3
    task.findings.warning(
        f"the list has no header: it was read as from, to{', distance' * has_distance}",
        task.where,
        hint="put names on top, such as from,to,weight, if that is wrong",
    )
    return _graph_from_list(grid, (0, 1), 2 if has_distance else None, None, [], task)


def _graph_from_text_matrix(text: TextMatrix, task: _Task) -> _Graph:
    matrix = np.empty((len(text.cells), len(text.cells)))
    for row, cells in enumerate(text.cells):
        matrix[row], strange = numbers_of(cells)
        if strange:
            raise InputError(
                f"line {text.lines[row]} of the matrix holds {cells[strange[0]][:40]!r}, no number",
                where=task.where,
                hint="write numbers with a point; leave cells without an edge empty or 0",
            )
    if text.left is not None and text.top is not None:
        column_of = {label: column for column, label in enumerate(text.top)}
        if set(text.left) != set(text.top):
            raise InputError(
                "the rows and columns of the matrix name different sensors: "
                f"{listed(sorted(set(text.left) ^ set(text.top)))}",
                where=task.where,
                hint="give every sensor a row and a column",
            )
        matrix = matrix[:, [column_of[label] for label in text.left]]
    return _graph_from_matrix(text.left or text.top or (), matrix, task)


def _graph_from_matrix(labels: Sequence[str], matrix: NDArray[Any], task: _Task) -> _Graph:
    """Returns the graph of a matrix; without labels it has the order of the sensors, if that is known."""
    ids = task.sensors.ids
    counted = [str(number) for number in range(len(ids))]
    if not labels or (list(labels) == counted and (task.sensors.positions(labels) < 0).all()):
        if len(matrix) != len(ids):
            raise InputError(
                f"the matrix has {len(matrix)} rows and no ids, the readings {len(ids)} sensors",
                where=task.where,
                hint="give a matrix with sensor ids around it, or one of exactly these sensors",
            )
        labels = _rows_without_ids(task)
    if len(set(labels)) < len(labels):
        raise InputError("the matrix names a sensor twice", where=task.where, hint="keep one row for each sensor")
    with np.errstate(over="ignore"):
        numbers = matrix.astype(np.float32)
    numbers[np.isnan(numbers)] = 0
    source, target = np.nonzero(numbers)
    values = numbers[source, target]
    if task.matrix_holds == "distance":
        return _Graph(labels, source, target, distance=values)
    return _Graph(labels, source, target, weight=values)


def _rows_without_ids(task: _Task) -> Sequence[str]:
    """Returns the sensors of the rows of a matrix that names none, and says so."""
    hint = "put the sensor ids around the matrix, as CSV"
    if not task.matrix_rows:
        what = "the matrix names no sensors, and neither the readings nor the ids tell which row is whose"
        raise InputError(what, where=task.where, hint=hint)
    what = f"the matrix names no sensors: its rows were taken as those of {listed(task.matrix_rows)}, in this order"
    task.findings.warning(what, task.where, hint=f"{hint}, if that is wrong")
    return task.matrix_rows


def _check_numbers(graph: _Graph, where: str) -> None:
    wrong = np.zeros(len(graph.source), bool)
    if graph.weight is not None:
        wrong |= ~((graph.weight > 0) & np.isfinite(graph.weight))
    if graph.distance is not None:
        wrong |= ~((graph.distance >= 0) & np.isfinite(graph.distance))
    if wrong.any():
        raise InputError(
            "weights must be positive numbers, distances numbers of zero or more; look at " + graph.examples(wrong),
            where=where,
            hint="give every edge its number, or leave the edge out; a larger weight means closer",
        )


def _edges_among(graph: _Graph, task: _Task) -> Edges:
    """Returns the edges between known sensors, once each, in order."""
    if len(graph.source) == 0:
        task.findings.warning("there is not a single edge", task.where, hint="check the file")
        return Edges.none()
    positions = task.sensors.positions(graph.labels)
    source, target = positions[graph.source], positions[graph.target]
    is_known = (source >= 0) & (target >= 0)
    if not is_known.any():
        raise InputError(
            f"no edge joins two sensors that have readings; the edges name {listed(graph.labels)}, "
            f"the readings {listed(task.sensors.ids)}",
            where=task.where,
            hint="write the ids in both files alike",
        )
    dropped = int((~is_known).sum())
    if dropped:
        strangers = listed(graph.labels[i] for i in np.flatnonzero(positions < 0).tolist())
        task.findings.warning(
            "edges name sensors without readings: left out",
            f"{task.where}: {strangers}",
            dropped,
            "add readings of these sensors, or remove the edges",
        )
    chosen = _without_repetitions(graph, source, target, np.flatnonzero(is_known), task)
    loops = int((source[chosen] == target[chosen]).sum())
    if loops:
        task.findings.note("edges lead from a sensor to itself: kept", task.where, loops)
    return Edges(
        source=source[chosen].astype(np.int32),
        target=target[chosen].astype(np.int32),
        distance=None if graph.distance is None else graph.distance[chosen],
        weight=None if graph.weight is None else graph.weight[chosen],
        distance_unit=graph.distance_unit,
    )


def _without_repetitions(
    graph: _Graph,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    chosen: NDArray[np.int64],
    task: _Task,
) -> NDArray[np.int64]:
    """Returns the chosen edges ordered by source and target, those listed again left out."""
    ordered: NDArray[np.int64] = chosen[np.lexsort((target[chosen], source[chosen]))]
    pairs = np.stack([source, target], axis=1)[ordered]
    numbers = [part for part in (graph.distance, graph.weight) if part is not None]
    values = np.stack(numbers, axis=1)[ordered]
    is_again = np.append(False, (pairs[1:] == pairs[:-1]).all(axis=1))
    differs = is_again & np.append(False, (values[1:] != values[:-1]).any(axis=1))
    if differs.any():
        contradicting = np.zeros(len(source), bool)
        contradicting[ordered[differs]] = True
        raise InputError(
            f"edges are listed again with other numbers: {graph.examples(contradicting)}",
            where=task.where,
            hint="keep one row for each edge",
        )
    if is_again.any():
        what = "edges are listed more than once, with the same numbers: the first counts"
        again = int(is_again.sum())
        task.findings.warning(what, task.where, again, "remove the repeated rows")
    kept: NDArray[np.int64] = ordered[~is_again]
    return kept
