"""Whether explanations are true: the tables and the figures of `candor truth`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from candor.core.errors import InputError
from candor.core.files import read_json
from candor.core.progress import Report
from candor.core.settings import parse_settings
from candor.core.text import NOTHING
from candor.render.paper.entry import Entry, Origin, Picture, ShownTable, in_dates, in_versions, table_files
from candor.render.paper.words import data_in_words, protocol_in_words
from candor.research.tables import Table, TableCell
from candor.research.truth.asking import Findings
from candor.research.truth.cells import FORMAT_VERSION, Cell, Scored, read_curves
from candor.research.truth.results import NAME, PULSES, Row, rows_of, verdicts, write_results
from candor.research.truth.scores import Score
from candor.render.paper.tables import write_tables

_CAPTION = "Scores of explanations (blue) beside those of simple rules (grey) and the goals (red lines)."
_PULSES_CAPTION = "What arrives downstream of a pulse upstream, by the true delay of the edge, which a dot marks."


def read_truth(path: Path) -> tuple[list[Scored], str]:
    """Returns the cells that `candor truth` scored, and the command that did."""
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"these are not results of `candor truth` in format {FORMAT_VERSION}",
            where=str(path),
            hint="run the command again; cells that are done are not trained again",
        )
    cells = []
    for described in content["cells"]:
        cell = parse_settings(Cell, described["cell"], str(path))
        findings = Findings(tuple(_scores(content["rows"], cell)), read_curves(described["curves"]))
        cells.append(Scored(cell, findings, described["circumstances"]))
    if not cells:
        raise InputError("there are no cells in these results", where=str(path))
    return cells, str(content["command"])


def _scores(rows: Sequence[dict[str, Any]], cell: Cell) -> list[Score]:
    seed = str(cell.seed)
    return [
        Score(row["question"], row["measure"], row["answer"], row["is_ours"], row["by_seed"][seed])
        for row in rows
        if row["dataset"] == cell.dataset and seed in row["by_seed"]
    ]


def make_truth(path: Path, folder: Path, report: Report) -> list[Entry]:
    """Writes the tables and the figures of `candor truth` to a folder and returns the entry."""
    report("drawing truth", None)
    cells, command = read_truth(path)
    write_results(cells, folder, command)
    rows = rows_of(cells)
    tables = truth_tables(rows)
    write_tables(tables, folder, "tables")
    return [
        Entry(
            title="Are the explanations true?",
            shows=(
                "What CANDOR says of its forecasts, on networks whose truth is known, beside simple rules.",
                *(f"{verdict}." for verdict in verdicts(rows)),
            ),
            origin=_origin(path, cells, command),
            pictures=(
                Picture(f"{folder.name}/{NAME}", _CAPTION),
                Picture(f"{folder.name}/{PULSES}", _PULSES_CAPTION),
            ),
            tables=tuple(ShownTable(table, "answer", is_folded=True) for table in tables),
            files=(*table_files(folder.name), (f"{folder.name}/{NAME}.json", "all scores as JSON")),
        )
    ]


def truth_tables(rows: Sequence[Row]) -> list[Table]:
    """Returns a table for each question and measure, a row per answer; the best of each dataset is marked."""
    tables = []
    for question, measure in dict.fromkeys((row.question, row.measure) for row in rows):
        asked = [row for row in rows if (row.question, row.measure) == (question, measure)]
        datasets = list(dict.fromkeys(row.dataset for row in asked))
        shown = []
        for answer, is_ours in dict.fromkeys((row.answer, row.is_ours) for row in asked):
            by_dataset = {row.dataset: row for row in asked if (row.answer, row.is_ours) == (answer, is_ours)}
            cells = tuple(_cell(by_dataset.get(name), asked) for name in datasets)
            shown.append((f"candor: {answer}" if is_ours else answer, cells))
        goal = asked[0].goal
        tables.append(
            Table(
                title=f"{question}: {measure}",
                groups=(("score", len(datasets)),),
                columns=tuple(datasets),
                rows=tuple(shown),
                note="Mean over seeds ± standard deviation, held-out test part"
                + ("" if goal is None else f"; goal of candor: {goal:g}"),
            )
        )
    return tables


def _cell(row: Row | None, asked: Sequence[Row]) -> TableCell:
    if row is None or row.mean is None:
        return TableCell(NOTHING)
    best = max(other.mean for other in asked if other.dataset == row.dataset and other.mean is not None)
    return TableCell(row.text, is_best=row.mean == best)


def _origin(path: Path, cells: Sequence[Scored], command: str) -> Origin:
    first = cells[0].circumstances
    seeds = ", ".join(str(seed) for seed in dict.fromkeys(scored.cell.seed for scored in cells))
    names = dict.fromkeys(scored.cell.dataset for scored in cells)
    protocol = protocol_in_words(first["protocol"], first["split"]["windows"]) if "protocol" in first else NOTHING
    return Origin(
        source=str(path),
        command=command,
        data=" and ".join(data_in_words(name) for name in names) + f"; made anew with seeds {seeds}",
        protocol=f"{protocol} The seed is that of the network and of the training.",
        made=in_dates(str(scored.circumstances.get("made", "")) for scored in cells),
        versions=in_versions(scored.circumstances["versions"] for scored in cells),
    )
