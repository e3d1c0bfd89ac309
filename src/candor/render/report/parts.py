"""Pieces of HTML. Whatever comes in as text is escaped here, so that no name can become a part of the page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from candor.render.report.charts import Chart

Cell = str | tuple[str, str]  # a text, or one with small print under it


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page.

    Args:
        name: what links call it.
        title: its heading.
        body: its HTML.
        charts: by the id of the place that `chart_place` keeps for each.
    """

    name: str
    title: str
    body: str
    charts: dict[str, Chart] = field(default_factory=dict)

    def to_html(self) -> str:
        """Returns the section with its heading."""
        return f'<section id="{escape(self.name)}">\n<h2>{escape(self.title)}</h2>\n{self.body}\n</section>'


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


def chart_place(name: str, chart: Chart) -> str:
    """Returns the place where the page draws a chart."""
    height = f"{chart.height}px"
    if chart.aspect is not None:  # 110 pixels are for what stands around a map
        height = f"min({chart.height}px, 110px + {80 / chart.aspect:.0f}vw)"
    facts = f'style="height:{height}" role="img" aria-label="{escape(chart.says)}"'
    return f'<div class="chart" id="chart-{escape(name)}" {facts}></div>'


def cards(facts: Iterable[tuple[str, str]]) -> str:
    """Returns the few numbers that matter most: each a number and what it is."""
    inside = (f"<li><strong>{escape(figure)}</strong> <span>{escape(words)}</span></li>" for figure, words in facts)
    return f'<ul class="cards">\n{"".join(inside)}\n</ul>'


def sensor_choice(names: Sequence[str], chosen: int, place: str) -> str:
    """Returns a selector of sensors; all selectors of the page show the same sensor."""
    options = "\n".join(
        f'<option value="{number}"{" selected" if number == chosen else ""}>{escape(name)}</option>'
        for number, name in enumerate(names)
    )
    field_id = f"sensor-{escape(place)}"
    return (
        f'<p class="choice"><label for="{field_id}">Sensor</label>\n'
        f'<select id="{field_id}" class="sensor-choice" autocomplete="off">\n{options}\n</select></p>\n'
        f'<p class="chosen">Sensor: <span class="chosen-name">{escape(names[chosen])}</span></p>'
    )
