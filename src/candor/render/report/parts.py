"""Pieces of a report that show its charts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from candor.render.report.charts import Chart


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


def chart_place(name: str, chart: Chart) -> str:
    """Returns the place where the page draws a chart."""
    height = f"{chart.height}px"
    if chart.aspect is not None:  # 110 pixels are for what stands around a map
        height = f"min({chart.height}px, 110px + {80 / chart.aspect:.0f}vw)"
    facts = f'style="height:{height}" role="img" aria-label="{escape(chart.says)}"'
    return f'<div class="chart" id="chart-{escape(name)}" {facts}></div>'


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
