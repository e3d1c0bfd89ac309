"""Tables as Markdown, LaTeX and HTML."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import pandas as pd

from candor.core.files import atomic_file
from candor.research.suites import Suite
from candor.research.tables import Table, TableCell, paper_tables_of, rain_table_of

_LATEX_SPECIALS = {
    **{letter: f"\\{letter}" for letter in "%&_#${}"},
    **{"±": r"$\pm$", "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"},
}
_MARKDOWN_SPECIALS = {"|": r"\|", "<": "&lt;"}


def write_grid_tables(results: pd.DataFrame, suite: Suite, folder: Path) -> list[Path]:
    """Writes the tables of a grid and returns the files.

    `tables.*` has ours and the best baselines, `tables-all.*` all models, and `tables-rain.*` models without and with
    rain, if the suite has such pairs.
    """
    rain = rain_table_of(results, suite)
    return [
        *write_tables(paper_tables_of(results, suite), folder, "tables"),
        *write_tables(paper_tables_of(results, suite, is_whole=True), folder, "tables-all"),
        *(write_tables([rain], folder, "tables-rain") if rain else ()),
    ]


def write_tables(tables: Sequence[Table], folder: Path, name: str) -> list[Path]:
    """Writes all tables in each of the three forms; returns the files."""
    forms = {"md": as_markdown, "tex": as_latex, "html": as_html}
    files = []
    for ending, form in forms.items():
        files.append(folder / f"{name}.{ending}")
        with atomic_file(files[-1]) as temporary:
            temporary.write_text(form(tables), encoding="utf-8")
    return files


def as_markdown(tables: Sequence[Table]) -> str:
    """Returns Markdown; the best is bold and the second best underlined."""

    def mark(cell: TableCell) -> str:
        text = _markdown(cell.text)
        return f"**{text}**" if cell.is_best else f"<u>{text}</u>" if cell.is_second else text

    parts = []
    for table in tables:
        pairs = zip(table.columns, _spread(table), strict=True)
        heads = [_markdown(f"{column}, {group}" if group else column) for column, group in pairs]
        lines = [
            f"## {_markdown(table.title)}",
            "",
            f"| model | {' | '.join(heads)} |",
            "|---" * (len(heads) + 1) + "|",
        ]
        lines += [f"| {_markdown(name)} | {' | '.join(mark(cell) for cell in cells)} |" for name, cells in table.rows]
        parts.append("\n".join([*lines, "", _markdown(table.note), ""]))
    return "\n".join(parts)


def as_latex(tables: Sequence[Table]) -> str:
    """Returns LaTeX for the package booktabs."""

    def mark(cell: TableCell) -> str:
        text = _latex(cell.text)
        return rf"\textbf{{{text}}}" if cell.is_best else rf"\underline{{{text}}}" if cell.is_second else text

    parts = []
    for table in tables:
        groups = " & ".join(rf"\multicolumn{{{span}}}{{c}}{{{_latex(name)}}}" for name, span in table.groups)
        lines = [
            r"\begin{table}", r"\centering", rf"\caption{{{_latex(table.title)}. {_latex(table.note)}.}}",
            rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}", r"\toprule", rf" & {groups} \\",
            rf"Method & {' & '.join(_latex(column) for column in table.columns)} \\", r"\midrule",
        ]  # fmt: skip
        lines += [rf"{_latex(name)} & {' & '.join(mark(cell) for cell in cells)} \\" for name, cells in table.rows]
        parts.append("\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]))
    return "\n".join(parts)


def as_html(tables: Sequence[Table]) -> str:
    """Returns a page of its own that needs nothing from elsewhere."""

    def mark(cell: TableCell) -> str:
        text = escape(cell.text)
        return f"<b>{text}</b>" if cell.is_best else f"<u>{text}</u>" if cell.is_second else text

    style = (
        "body{font:15px/1.4 system-ui,sans-serif;margin:2rem;color-scheme:light dark}"
        "table{border-collapse:collapse;margin:.5rem 0}th,td{padding:.25rem .6rem;text-align:right}"
        "th:first-child,td:first-child{text-align:left}thead{border-bottom:1px solid}div{overflow-x:auto}"
    )
    parts = [f"<!doctype html><html lang='en'><meta charset='utf-8'><title>Results</title><style>{style}</style>"]
    for table in tables:
        groups = "".join(f"<th colspan='{span}'>{escape(name)}</th>" for name, span in table.groups)
        columns = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
        rows = "".join(
            f"<tr><td>{escape(name)}</td>{''.join(f'<td>{mark(cell)}</td>' for cell in cells)}</tr>"
            for name, cells in table.rows
        )
        parts.append(
            f"<h2>{escape(table.title)}</h2><div><table><thead><tr><th></th>{groups}</tr>"
            f"<tr><th>model</th>{columns}</tr></thead><tbody>{rows}</tbody></table></div><p>{escape(table.note)}</p>"
        )
    return "\n".join([*parts, "</html>", ""])


def _spread(table: Table) -> list[str]:
    return [name for name, span in table.groups for _ in range(span)]


def _markdown(text: str) -> str:
    return "".join(_MARKDOWN_SPECIALS.get(letter, letter) for letter in text)


def _latex(text: str) -> str:
    return "".join(_LATEX_SPECIALS.get(letter, letter) for letter in text)
