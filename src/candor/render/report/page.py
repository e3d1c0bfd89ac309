"""The page of a report: sections, style, charts and the script that draws them, all in one file."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from candor.core.files import atomic_file
from candor.core.text import timestamp
from candor.explain.overview import Overview
from candor.render.html import frame_page
from candor.render.report.charts import plain
from candor.render.report.sections import ReportSections

REPORT = "report.html"
_WITHOUT_SCRIPT = "<noscript><p>The charts of this report need JavaScript; words and tables do not.</p></noscript>"


def write_report(overview: Overview, path: Path) -> None:
    """Write the report of a run to an HTML file, all or nothing."""
    page = make_page(overview)
    with atomic_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def make_page(overview: Overview) -> str:
    """Return the report as one HTML page."""
    writer = ReportSections(overview)
    sections = list(writer.sections())
    record = overview.record
    data = {
        "charts": {name: chart.to_json() for name, chart in writer.charts.items()},
        "units": [plain(sensor.unit) for sensor in overview.panel.sensors],
        "chosen": overview.shown,
    }
    return frame_page(
        f"{record.label} on {record.data}",
        f"Report of a run made on {timestamp(record.made)} (UTC); unit {record.unit or 'unknown'}.",
        sections,
        before=_WITHOUT_SCRIPT,
        images="data: blob:",  # a chart can be saved as a picture
        data=f'<script type="application/json" id="report-data">{_embedded(data)}</script>\n',
        scripts=[get_plotlyjs(), files("candor.render.report").joinpath("report.js").read_text(encoding="utf-8")],
    )


def _embedded(content: dict[str, Any]) -> str:
    """Return JSON that can stand inside a script element: nothing in it can end the element."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
