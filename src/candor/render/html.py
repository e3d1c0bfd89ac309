"""HTML of the pages that candor writes to files: their frame, and pieces to put into it.

Whatever comes in as text is escaped here, so that no name can become a part of a page.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

Cell = str | tuple[str, str]  # a text, or one with small print under it
_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{subtitle}</p>
{links}</header>
<main>
{body}
</main>
<footer><p>{footer}</p></footer>
{scripts}</body>
</html>
"""


def frame_page(
    title: str,
    subtitle: str,
    body: str,
    footer: str,
    *,
    policy: str,
    style: str,
    sections: Mapping[str, str] | None = None,
    scripts: str = "",
) -> str:
    """Returns a whole page.

    Args:
        title: of the page, any text.
        subtitle: a sentence under it, any text.
        body: HTML of what stands between header and footer.
        footer: a sentence, any text.
        policy: what the browser may do, as a Content-Security-Policy.
        style: CSS.
        sections: titles of the sections by name, for links to them in the header.
        scripts: HTML of script elements.
    """
    links = [f'<a href="#{escape(name)}">{escape(words)}</a>\n' for name, words in (sections or {}).items()]
    return _FRAME.format(
        policy=policy,
        title=escape(title),
        subtitle=escape(subtitle),
        style=style,
        links=f'<nav aria-label="Sections">\n{"".join(links)}</nav>\n' if links else "",
        body=body,
        footer=escape(footer),
        scripts=scripts,
    )


def paragraphs(sentences: Iterable[str]) -> str:
    """Returns one paragraph of sentences."""
    return f"<p>{escape(' '.join(sentences))}</p>"


def note(text: str, is_for_paper: bool = True) -> str:
    """Returns small print, which may be left out on paper."""
    kind = "note" if is_for_paper else "note on-screen"
    return f'<p class="{kind}">{escape(text)}</p>'


def heading(text: str) -> str:
    """Returns the heading of a part of a section."""
    return f"<h3>{escape(text)}</h3>"


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]], words: int = 1) -> str:
    """Returns a table whose first `words` columns are words and whose other columns are numbers."""

    def line(tag: str, cells: Sequence[Cell]) -> str:
        kinds = ("" if place < words else ' class="number"' for place in range(len(cells)))
        inside = (f"<{tag}{kind}>{_cell(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(inside)}</tr>"

    body = "\n".join(line("td", row) for row in rows)
    head_line = f"<thead>{line('th', head)}</thead>"
    return f'<div class="wide" tabindex="0"><table>\n{head_line}\n<tbody>\n{body}\n</tbody></table></div>'


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escape(cell)
    main, small = cell
    return f"{escape(main)}<small>{escape(small)}</small>" if small else escape(main)


def folded(summary: str, inside: str) -> str:
    """Returns HTML behind a line that opens it."""
    return f"<details>\n<summary>{escape(summary)}</summary>\n{inside}\n</details>"


def cards(facts: Iterable[tuple[str, str]]) -> str:
    """Returns the few numbers that matter most: each a number and what it is."""
    inside = (f"<li><strong>{escape(figure)}</strong> <span>{escape(words)}</span></li>" for figure, words in facts)
    return f'<ul class="cards">\n{"".join(inside)}\n</ul>'
