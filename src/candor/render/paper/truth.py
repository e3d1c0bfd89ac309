"""Whether explanations are true: the tables and the figures of `candor truth`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from candor.core.files import atomic_file, write_json
from candor.core.progress import Report
from candor.render.figures.truth import draw_pulses, draw_truth
from candor.render.paper.entry import PaperEntry, Picture, ShownTable, write_shown
from candor.research.paper.origins import origin_of_truth
from candor.research.paper.tables import truth_tables
from candor.research.truth.cells import Scored
from candor.research.truth.results import OURS, Row, content_of, curve_frame, read_truth, rows_of, verdicts

NAME, PULSES = "truth", "truth-pulses"
_CAPTION = "Scores of explanations (blue) beside those of simple rules (grey) and the goals (red lines)."
_PULSES_CAPTION = "What arrives downstream of a pulse upstream, by the true delay of the edge, which a dot marks."


def write_truth(cells: Sequence[Scored], folder: Path, command: str) -> list[Path]:
    """Write results and the command that made them as JSON, Markdown, CSV and figures, and return the files."""
    write_json(folder / f"{NAME}.json", content_of(cells, command))
    with atomic_file(folder / f"{NAME}.md") as temporary:
        temporary.write_text(as_markdown(cells, command), encoding="utf-8")
    return [
        folder / f"{NAME}.json",
        folder / f"{NAME}.md",
        *draw_truth(rows_of(cells)).write(folder, NAME),
        *draw_pulses(curve_frame(cells)).write(folder, PULSES),
    ]


def as_markdown(cells: Sequence[Scored], command: str) -> str:
    """Return the table with a column per dataset, what became of the goals, and what it was made with."""
    rows = rows_of(cells)
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    by_place: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        by_place.setdefault((row.question, row.measure, row.answer), {})[row.dataset] = row
    lines = [
        "# Are the explanations true?", "", f"    {command}", "",
        f"| question | measure | goal | answer | {' | '.join(datasets)} |", "|---" * (4 + len(datasets)) + "|",
    ]  # fmt: skip
    for (question, measure, answer), by_dataset in by_place.items():
        first = next(iter(by_dataset.values()))
        goal = f"{first.goal:g}" if first.is_ours and first.goal is not None else ""
        name = f"**{answer}**" if first.is_ours else answer
        texts = (by_dataset[dataset].text if dataset in by_dataset else "–" for dataset in datasets)
        lines.append(f"| {question} | {measure} | {goal} | {name} | {' | '.join(texts)} |")
    lines += ["", f"Bold: {OURS[rows[0].model]}. Mean ± standard deviation over seeds; held-out test part.", ""]
    lines += [f"- {verdict}" for verdict in verdicts(rows)]
    return "\n".join([*lines, "", "## Made with", "", *_made_with(cells), ""])


def _made_with(cells: Sequence[Scored]) -> list[str]:
    lines = []
    for scored in cells:
        at = scored.circumstances
        if scored.cell.model == "account":
            found = f"account found and scored in {at['seconds']:.1f} seconds, data {at['data_sha256'][:12]}"
        else:
            found = (
                f"{at['epochs']} epochs in {at['train_seconds'] / 60:.1f} minutes, mean absolute error "
                f"{at['mae']:.4g} {at['unit']}, data {at['data_sha256'][:12]}, model {at['model_sha256'][:12]}"
            )
        lines.append(f"- {scored.cell.name}: {found}, {at['made'][:10]}")
    versions = cells[0].circumstances["versions"].items()
    return [*lines, f"- {', '.join(f'{name} {version}' for name, version in versions)}"]


def make_truth(path: Path, folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Write the tables and the figures of `candor truth` to a folder and return the entry."""
    report("drawing truth", None)
    cells, command = read_truth(path)
    write_truth(cells, folder, command)
    rows = rows_of(cells)
    tables = truth_tables(rows)
    yield PaperEntry(
        title="Are the explanations true?",
        shows=(
            "What CANDOR says of its forecasts, on networks whose truth is known, beside simple rules.",
            *(f"{verdict}." for verdict in verdicts(rows)),
        ),
        origin=origin_of_truth(path, cells, command),
        pictures=(
            Picture(f"{folder.name}/{NAME}", _CAPTION),
            Picture(f"{folder.name}/{PULSES}", _PULSES_CAPTION),
        ),
        tables=tuple(ShownTable(table, "answer", is_folded=True) for table in tables),
        files=(*write_shown(tables, folder), (f"{folder.name}/{NAME}.json", "all scores as JSON")),
    )
