"""Tables as Markdown, LaTeX and HTML."""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import pandas as pd

from candor.core.files import atomic_file
from candor.render.html import Html, Section, frame_page, note
from candor.render.html import table as html_rows
from candor.research.suites import Suite
from candor.research.tables import PaperTable, TableCell, paper_tables_of, rain_table_of

_MARKDOWN = str.maketrans({"|": r"\|", "<": "&lt;"})
_LATEX = str.maketrans(
    {letter: f"\\{letter}" for letter in "%&_#${}"}
    | {"±": r"$\pm$", "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
)


def write_grid_tables(results: pd.DataFrame, suite: Suite, folder: Path) -> list[Path]:
    """Write the tables of a grid and return the files.

    `tables.*` has ours and the best baselines, `tables-all.*` all models, and `tables-rain.*` models without and with
    rain, if the suite has such pairs.
    """
    rain = rain_table_of(results, suite)
    return [
        *write_tables(paper_tables_of(results, suite), folder, "tables"),
        *write_tables(paper_tables_of(results, suite, is_whole=True), folder, "tables-all"),
        *(write_tables([rain], folder, "tables-rain") if rain else ()),
    ]


def write_tables(tables: Sequence[PaperTable], folder: Path, name: str) -> list[Path]:
    """Write all tables in each of the three forms; return the files."""
    forms = {"md": as_markdown, "tex": as_latex, "html": as_html}
    for ending, form in forms.items():
        with atomic_file(folder / f"{name}.{ending}") as temporary:
            temporary.write_text(form(tables), encoding="utf-8")
    return [folder / f"{name}.{ending}" for ending in forms]


def as_markdown(tables: Sequence[PaperTable]) -> str:
    """Return Markdown; the best is bold and the second best underlined."""
    parts = []
    for table in tables:
        groups = [name for name, span in table.groups for _ in range(span)]
        pairs = zip(table.columns, groups, strict=True)
        heads = [_markdown(f"{column}, {group}" if group else column) for column, group in pairs]
        rows = [[_markdown(name), *_marked(cells, _markdown, "**{}**", "<u>{}</u>")] for name, cells in table.rows]
        head, *body = (f"| {' | '.join(row)} |" for row in [["model", *heads], *rows])
        lines = [head, "|---" * (len(heads) + 1) + "|", *body]
        parts.append("\n".join([f"## {_markdown(table.title)}", "", *lines, "", _markdown(table.note), ""]))
    return "\n".join(parts)


def as_latex(tables: Sequence[PaperTable]) -> str:
    """Return LaTeX for the package booktabs."""
    parts = []
    for table in tables:
        groups = (rf"\multicolumn{{{span}}}{{c}}{{{_latex(name)}}}" for name, span in table.groups)
        marks = r"\textbf{{{}}}", r"\underline{{{}}}"
        rows = [[_latex(name), *_marked(cells, _latex, *marks)] for name, cells in table.rows]
        head, *body = (rf"{' & '.join(row)} \\" for row in [["Method", *map(_latex, table.columns)], *rows])
        lines = [
            r"\begin{table}", r"\centering", rf"\caption{{{_latex(table.title)}. {_latex(table.note)}.}}",
            rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}", r"\toprule", rf" & {' & '.join(groups)} \\", head,
            r"\midrule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
        ]  # fmt: skip
        parts.append("\n".join(lines))
    return "\n".join(parts)


def as_html(tables: Sequence[PaperTable]) -> str:
    """Return a page of its own that needs nothing from elsewhere."""
    sections = [
        Section(f"table-{place}", table.title, f"{html_table(table)}\n{note(table.note)}")
        for place, table in enumerate(tables, start=1)
    ]
    return frame_page("Results", "Bold: the best of a column. Underlined: the second best.", sections)


def html_table(table: PaperTable, head: str = "model") -> str:
    """Return a table with groups of columns; `head` is what its first column holds."""
    rows = (
        [name, *(Html(cell) for cell in _marked(cells, escape, "<b>{}</b>", "<u>{}</u>"))] for name, cells in table.rows
    )
    return html_rows((head, *table.columns), rows, groups=table.groups)


def _marked(cells: Sequence[TableCell], escaped: Callable[[str], str], best: str, second: str) -> list[str]:
    """Return the texts of cells; the best and the second best stand in their forms."""
    forms = (best if cell.is_best else second if cell.is_second else "{}" for cell in cells)
    return [form.format(escaped(cell.text)) for form, cell in zip(forms, cells, strict=True)]


def _markdown(text: str) -> str:
    return text.translate(_MARKDOWN)


def _latex(text: str) -> str:
    return text.translate(_LATEX)
