"""The index of a paper folder: one page without script, whose pictures lie beside it.

Whatever comes in as text is escaped; and should a name ever slip through, the page forbids the browser to run anything
or to fetch anything from elsewhere.
"""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from urllib.parse import quote

from candor.core.text import counted
from candor.render.html import cards, folded, frame_page, heading, note, paragraphs
from candor.render.paper.entry import Entry, Picture, ShownTable, count_pieces, make_slug
from candor.render.report.parts import Section
from candor.research.paper.found import Trouble
from candor.research.paper.missing import Missing
from candor.research.paper.origins import Origin
from candor.research.tables import TableCell

INDEX = "index.html"
SECTIONS: Mapping[str, str] = {
    "data": "The data before any model",
    "method": "The method",
    "comparisons": "Models beside each other",
    "ablations": "CANDOR without its parts",
    "runs": "What CANDOR learned",
    "sweeps": "One setting varied",
    "costs": "What models cost",
    "shock-rain": "Shocks and rain",
    "truth": "Are the explanations true?",
}
"""By name, in the order of the page."""
_MOST_IN_A_PARAGRAPH = 3
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' file:; base-uri 'none'; form-action 'none'"
_STYLE = """
h3 { margin-top: 0; }
nav { margin-bottom: 1rem; }
article { margin: 0 0 1.2rem; padding: 1rem; border: 1px solid var(--line); border-radius: 0.5rem; }
figure { margin: 0 0 1rem; }
figure img { display: block; width: 100%; max-width: 50rem; height: auto; border-radius: 0.3rem; background: #ffffff; }
figcaption { max-width: 46rem; margin-top: 0.3rem; color: var(--soft); font-size: 0.875rem; }
.files { margin: 0.2rem 0 0.6rem; font-size: 0.875rem; }
.facts { display: grid; grid-template-columns: 1fr; gap: 0.1rem 0.8rem; margin: 0.6rem 0 0; font-size: 0.85rem; }
.facts dt { color: var(--soft); font-weight: 600; }
.facts dd { margin: 0 0 0.3rem; }
.facts code, .missing code { padding: 0.05rem 0.3rem; border-radius: 0.25rem; background: var(--card); }
li { max-width: 46rem; }
article ul { margin: 0 0 0.8rem; padding-left: 1.2rem; }
.missing { margin: 0; padding: 0; list-style: none; }
.missing li { margin: 0 0 0.6rem; max-width: 52rem; }
.missing code { display: inline-block; }
td:first-child, th:first-child { max-width: 11rem; }
thead .group { text-align: center; }
@media (min-width: 40rem) {
  .facts { grid-template-columns: 6rem 1fr; }
  td:first-child, th:first-child { max-width: 22rem; white-space: nowrap; }
}
@media print { article { border: 0; padding: 0; } figure, .facts { break-inside: avoid; } }
"""


def make_index(
    entries: Mapping[str, Sequence[Entry]], missing: Sequence[Missing], troubles: Sequence[Trouble], newest: str
) -> str:
    """Returns the whole page.

    Args:
        entries: by name of the section.
        missing: what could be made.
        troubles: what could not be read.
        newest: date of the newest result; empty if none is known.
    """
    names: set[str] = set()
    sections = [
        Section(name, title, "\n".join(_article(entry, names) for entry in entries[name]))
        for name, title in SECTIONS.items()
        if entries.get(name)
    ]
    sections += _trouble_section(troubles) + _missing_section(missing)
    tables, figures = count_pieces([entry for found in entries.values() for entry in found])
    facts = [
        (str(tables), "tables"),
        (str(figures), "figures"),
        (str(len(missing)), "still to make"),
        (str(len(troubles)), "not readable"),
    ]
    style = files("candor.render.report").joinpath("report.css").read_text(encoding="utf-8")
    dated = f" The newest result is of {newest}." if newest else ""
    return frame_page(
        "CANDOR: tables and figures",
        f"Everything is made anew from the numbers that commands of candor left behind.{dated}",
        "\n".join([cards(facts), *(section.to_html() for section in sections)]),
        "Made by candor paper. The page needs no network; its pictures and tables lie beside it.",
        policy=_POLICY,
        style=style + _STYLE,
        sections={section.name: section.title for section in sections},
    )


def _article(entry: Entry, names: set[str]) -> str:
    """Returns an entry under a name that no other has; `names` are those of the others."""
    names.add(name := make_slug(f"entry {entry.title}", names))
    parts = [heading(entry.title), _sentences(entry.shows)]
    parts += [_figure(picture, entry.title) for picture in entry.pictures]
    parts += [_shown(shown) for shown in entry.tables]
    if entry.files:
        parts.append(f'<p class="files">{", ".join(_link(path, words) for path, words in entry.files)}</p>')
    parts.append(_facts(entry.origin))
    inside = "\n".join(parts)
    return f'<article id="{name}">\n{inside}\n</article>'


def _sentences(sentences: Sequence[str]) -> str:
    """Returns a paragraph, or where there is much to say, a line for each sentence after the first."""
    if len(sentences) <= _MOST_IN_A_PARAGRAPH:
        return paragraphs(sentences)
    lines = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences[1:])
    return f"{paragraphs(sentences[:1])}\n<ul>{lines}</ul>"


def _figure(picture: Picture, title: str) -> str:
    links = ", ".join(_link(f"{picture.stem}.{ending}", ending.upper()) for ending in ("png", "svg", "csv"))
    return (
        f'<figure>\n<img loading="lazy" alt="{escape(f"{title}. {picture.caption}")}" '
        f'src="{escape(quote(f"{picture.stem}.png"))}">\n'
        f'<figcaption>{escape(picture.caption)} <span class="files">{links}</span></figcaption>\n</figure>'
    )


def _shown(shown: ShownTable) -> str:
    inside = _table(shown) + (f"\n{note(f'{shown.table.note}.')}" if shown.has_note else "")
    if shown.is_folded:
        return folded(f"{shown.table.title}: {counted(len(shown.table.rows), 'row')}", inside)
    return inside


def _table(shown: ShownTable) -> str:
    """Returns a table with groups of columns; the best of a column is bold and the second best underlined."""
    content = shown.table
    groups = "".join(f'<th class="group" colspan="{span}">{escape(name)}</th>' for name, span in content.groups)
    columns = "".join(f'<th class="number">{escape(column)}</th>' for column in content.columns)
    rows = "\n".join(_row(name, cells) for name, cells in content.rows)
    head = f"<thead><tr><th></th>{groups}</tr>\n<tr><th>{escape(shown.head)}</th>{columns}</tr></thead>"
    return f'<div class="wide" tabindex="0"><table>\n{head}\n<tbody>\n{rows}\n</tbody></table></div>'


def _row(name: str, cells: Sequence[TableCell]) -> str:
    numbers = "".join(f'<td class="number">{_marked(cell)}</td>' for cell in cells)
    return f"<tr><td>{escape(name)}</td>{numbers}</tr>"


def _marked(cell: TableCell) -> str:
    text = escape(cell.text)
    return f"<b>{text}</b>" if cell.is_best else f"<u>{text}</u>" if cell.is_second else text


def _facts(origin: Origin) -> str:
    commands = "<br>".join(f"<code>{escape(command)}</code>" for command in origin.command.splitlines())
    facts = [
        ("command", commands),
        ("from", escape(origin.source)),
        ("data", escape(origin.data)),
        ("protocol", escape(origin.protocol)),
        ("made", escape(origin.made)),
        ("versions", escape(origin.versions)),
    ]
    lines = "\n".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in facts)
    return f'<dl class="facts">\n{lines}\n</dl>'


def _link(path: str, words: str) -> str:
    return f'<a href="{escape(quote(path))}">{escape(words)}</a>'


def _trouble_section(troubles: Sequence[Trouble]) -> list[Section]:
    if not troubles:
        return []
    lines = "\n".join(f"<li><code>{escape(one.where)}</code><br>{escape(one.what)}</li>" for one in troubles)
    return [Section("not-readable", "What could not be read", f'<ul class="missing">\n{lines}\n</ul>')]


def _missing_section(missing: Sequence[Missing]) -> list[Section]:
    if not missing:
        return []
    lines = "\n".join(f"<li>{escape(one.what)}<br><code>{escape(one.command)}</code></li>" for one in missing)
    said = paragraphs(["Each line says what is not here, and the command that makes it."])
    return [Section("missing", "Still to make", f'{said}\n<ul class="missing">\n{lines}\n</ul>')]
