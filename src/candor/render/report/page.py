"""The page of a report: sections, style, charts and the script that draws them, all in one file.

Only the two scripts of the page may run, by their checksums, and nothing may be fetched: should a name ever slip
through unescaped, the browser still refuses to execute it.
"""

import json
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from candor.core.errors import InputError
from candor.core.files import atomic_file
from candor.core.text import NOTHING
from candor.core.versions import versions
from candor.explain.overview import Overview
from candor.render.html import frame_page
from candor.render.report.charts import plain
from candor.render.report.parts import Section
from candor.render.report.sections import all_sections

REPORT = "report.html"
_WITHOUT_SCRIPT = "<noscript><p>The charts of this report need JavaScript; words and tables do not.</p></noscript>"


def write_report(overview: Overview, path: Path) -> None:
    """Writes the report of a run to an HTML file, all or nothing."""
    page = make_page(overview)
    try:
        with atomic_file(path) as temporary:
            temporary.write_text(page, encoding="utf-8")
    except OSError as error:
        what = f"the report cannot be written ({error.strerror or error})"
        raise InputError(what, where=str(path), hint="choose another place, or make room") from None


def make_page(overview: Overview) -> str:
    """Returns the report as one HTML page."""
    sections = list(all_sections(overview))
    own = files("candor.render.report")
    style, script = (own.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    library = get_plotlyjs()
    record = overview.record
    made = record.made.strftime("%d %B %Y, %H:%M UTC") if record.made is not None else NOTHING
    version = versions().get("candor-forecast", "")
    data = _embedded(_data(overview, sections))
    return frame_page(
        f"{record.label} on {record.data}",
        f"Report of a run made on {made}; unit {record.unit or 'unknown'}.",
        "\n".join([_WITHOUT_SCRIPT, *(section.to_html() for section in sections)]),
        f"Made by candor {version}. This file needs no network and no other file.",
        policy=_policy(library, script),
        style=style,
        sections={section.name: section.title for section in sections},
        scripts=f"""<script type="application/json" id="report-data">{data}</script>
<script>{library}</script>
<script>{script}</script>
""",
    )


def _policy(*scripts: str) -> str:
    """Returns what the browser may do: run these scripts, style the page, save a chart as a picture."""
    allowed = " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in scripts)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"


def _data(overview: Overview, sections: list[Section]) -> dict[str, Any]:
    return {
        "charts": {name: chart.to_json() for section in sections for name, chart in section.charts.items()},
        "units": [plain(sensor.unit) for sensor in overview.panel.sensors],
        "chosen": overview.shown,
    }


def _embedded(content: dict[str, Any]) -> str:
    """Returns JSON that can stand inside a script element: nothing in it can end the element."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
