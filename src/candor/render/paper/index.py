"""The index of a paper folder: one page without script, whose pictures lie beside it."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from urllib.parse import quote

from candor.core.text import counted
from candor.render.html import (
    Section,
    bullets,
    cards,
    figure_links,
    folded,
    frame_page,
    heading,
    links,
    note,
    paragraphs,
)
from candor.render.paper.entry import PaperEntry, Picture, ShownTable, count_pieces, make_slug
from candor.render.paper.tables import html_table
from candor.research.paper.found import Trouble
from candor.research.paper.missing import Missing
from candor.research.paper.origins import Origin

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


def make_index(
    entries: Mapping[str, Sequence[PaperEntry]], missing: Sequence[Missing], troubles: Sequence[Trouble], newest: str
) -> str:
    """Return the whole page; entries are by section, and `newest` is the date of the newest result if one is known."""
    names: set[str] = set()
    sections = [
        Section(name, title, "\n".join(_article(entry, names) for entry in entries[name]))
        for name, title in SECTIONS.items()
        if entries.get(name)
    ]
    if troubles:
        lines = _lines(f"<code>{escape(one.where)}</code><br>{escape(one.what)}" for one in troubles)
        sections.append(Section("not-readable", "What could not be read", lines))
    if missing:
        said = paragraphs(["Each line says what is not here, and the command that makes it."])
        lines = _lines(f"{escape(one.what)}<br><code>{escape(one.command)}</code>" for one in missing)
        sections.append(Section("missing", "Still to make", f"{said}\n{lines}"))
    counts = (*count_pieces([entry for found in entries.values() for entry in found]), len(missing), len(troubles))
    facts = zip(map(str, counts), ("tables", "figures", "still to make", "not readable"), strict=True)
    dated = f" The newest result is of {newest}." if newest else ""
    return frame_page(
        "CANDOR: tables and figures",
        f"Everything is made anew from the numbers that commands of candor left behind.{dated}",
        sections,
        before=cards(facts),
        images="'self' file:",
        footer="The page needs no network; its pictures and tables lie beside it.",
    )


def _article(entry: PaperEntry, names: set[str]) -> str:
    """Return an entry under a name that no other has; `names` are those of the others."""
    names.add(name := make_slug(f"entry {entry.title}", names))
    parts = [heading(entry.title), _sentences(entry.shows)]
    parts += [_figure(picture, entry.title) for picture in entry.pictures]
    parts += [_shown(shown) for shown in entry.tables]
    if entry.files:
        parts.append(f'<p class="files">{links(dict(entry.files))}</p>')
    inside = "\n".join([*parts, _facts(entry.origin)])
    return f'<article id="{name}">\n{inside}\n</article>'


def _sentences(sentences: Sequence[str]) -> str:
    """Return a paragraph, or where there is much to say, a line for each sentence after the first."""
    if len(sentences) <= _MOST_IN_A_PARAGRAPH:
        return paragraphs(sentences)
    return f"{paragraphs(sentences[:1])}\n{bullets(sentences[1:])}"


def _figure(picture: Picture, title: str) -> str:
    shown, source = escape(f"{title}. {picture.caption}"), escape(quote(f"{picture.stem}.png"))
    caption = f"{escape(picture.caption)} {figure_links(picture.stem)}"
    image = f'<img loading="lazy" alt="{shown}" src="{source}">'
    return f"<figure>\n{image}\n<figcaption>{caption}</figcaption>\n</figure>"


def _shown(shown: ShownTable) -> str:
    inside = html_table(shown.table, shown.head) + (f"\n{note(f'{shown.table.note}.')}" if shown.has_note else "")
    if shown.is_folded:
        return folded(f"{shown.table.title}: {counted(len(shown.table.rows), 'row')}", inside)
    return inside


def _facts(origin: Origin) -> str:
    commands = "<br>".join(f"<code>{escape(command)}</code>" for command in origin.command.splitlines())
    facts = {"command": commands, "from": escape(origin.source)}
    facts |= {name: escape(getattr(origin, name)) for name in ("data", "protocol", "made", "versions")}
    lines = "\n".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in facts.items())
    return f'<dl class="facts">\n{lines}\n</dl>'


def _lines(items: Iterable[str]) -> str:
    """Return a list of HTML."""
    lines = "\n".join(f"<li>{item}</li>" for item in items)
    return f'<ul class="missing">\n{lines}\n</ul>'
