"""Reading a run of CANDOR: what it learned and how it uses that, as figures, numbers, sentences and two pages."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from candor.core.errors import InputError
from candor.core.files import atomic_folder, is_of_format, write_json
from candor.core.progress import Report, silent
from candor.core.versions import versions
from candor.data.protocol import Origins, Task
from candor.explain.embedding import find_embedding
from candor.explain.finding import Finding
from candor.explain.forecast import Told, look_into, tell_branches, tell_forecast, tell_past
from candor.explain.fusion import find_fusion, fusion_origins, fusion_weights
from candor.explain.operator import find_operator
from candor.explain.propagation import find_propagation
from candor.explain.reconstruction import find_reconstruction
from candor.explain.relations import find_relations
from candor.explain.roles import find_roles
from candor.explain.sources import tell_arrivals, tell_peers
from candor.explain.states import affordable_windows, choose_origins, read_windows, untrained
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import find_origin, find_sensor
from candor.render.explanation_page import PageSection, make_page
from candor.render.figures.style import Drawing
from candor.runs.run import Run

EXPLAINED, INDEX, FORECAST_PAGE, SUMMARY = "explained", "index.html", "forecast.html", "summary.json"
_FORMAT = "candor-explained"
_STEPS_SHOWN = 96  # of trajectories, in whole histories


@dataclass(frozen=True, eq=False)
class Explained:
    """What a run told of itself.

    Args:
        folder: where the figures and pages are.
        findings: one for each question.
        summary: all numbers, as summary.json holds them.
    """

    folder: Path
    findings: tuple[Finding, ...]
    summary: dict[str, Any]


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked: of which windows of which part, and the forecast of which sensor from which row on."""

    candor: Candor
    task: Task
    part: str
    origins: Origins
    column: int
    origin: int


def explain_run(
    run: Run,
    folder: Path | None = None,
    sensor: str | None = None,
    time: datetime | str | None = None,
    windows: int | None = None,
    report: Report = silent,
) -> Explained:
    """Writes all figures, numbers and pages of a run of CANDOR into a folder, which is made anew, and returns them.

    Args:
        run: the run.
        folder: where to; None means `explained` in the run. A folder with anything else in it is refused.
        sensor: whose forecast is told; None means the one with most readings in the test part.
        time: of its first step; None means the last one whose whole outcome is known.
        windows: over how many windows, evenly spread over the test part; None means 200, fewer for large networks.
        report: is told how far it has come.
    """
    folder = run.folder / EXPLAINED if folder is None else Path(folder)
    report("explaining | opening the run", 0.0)
    asked = _ask(run, sensor, time, windows)
    _check_place(folder)
    findings = list(_find(asked, _within(report, 0.0, 0.75)))
    report("explaining | telling one forecast", 0.75)
    told = look_into(asked.candor, asked.task.panel, asked.column, asked.origin)
    story = _story(asked.candor, told)
    findings.append(Finding("forecast", f"Where does one forecast come from? {told.name}", tuple(story[0].sentences)))
    summary = _summary(run, asked, findings)
    _write(folder, _Content(run, asked, findings, story, told, summary), _within(report, 0.8, 1.0))
    return Explained(folder, tuple(findings), summary)


def _ask(run: Run, sensor: str | None, time: datetime | str | None, windows: int | None) -> _Question:
    candor, task = run.candor(), run.as_measured(run.task())
    panel, length = task.panel, task.panel.times.length
    tested = panel.mask[task.split.test[0] :] if len(task.split.test) else panel.mask
    column = int(tested.sum(axis=0).argmax()) if sensor is None else find_sensor(panel, sensor)
    known = max(candor.history, length - candor.horizon)
    origin = known if time is None else find_origin(panel, time, candor.history)
    network = candor.trained().network
    part, origins = choose_origins(task.split, length, windows or affordable_windows(network))
    return _Question(candor, task, part, origins, column, origin)


def _check_place(folder: Path) -> None:
    """Refuses a folder that holds anything but an earlier explanation: it would be lost."""
    if folder.exists() and not folder.is_dir():
        raise InputError("this is a file, and a folder is needed", where=str(folder), hint="choose another place")
    if folder.is_dir() and any(folder.iterdir()) and not is_of_format(folder / SUMMARY, _FORMAT):
        raise InputError(
            "this folder holds other things, and an explanation takes the place of all that is in its folder",
            where=str(folder),
            hint="choose an empty folder or a new one: --out DIR",
        )


def _find(asked: _Question, report: Report) -> Iterator[Finding]:
    """Yields the findings in the order of the paper."""
    candor, panel, origins = asked.candor, asked.task.panel, asked.origins
    trained, windows = candor.trained(), candor.windows(panel, origins)
    after = read_windows(trained, windows, _within(report, 0.0, 0.5))
    # Only components are compared with those before training.
    before = after if after.components is None else read_windows(untrained(candor), windows, _within(report, 0.5, 0.9))
    shown = read_windows(trained, candor.windows(panel, _in_a_row(candor.history, asked.origin)))
    report("finding out", 0.9)
    yield find_reconstruction(after, shown, panel, asked.column)
    yield find_embedding(before, after)
    yield find_propagation(after, panel, int(np.abs(origins - asked.origin).argmin()))
    yield find_roles(before, after)
    yield find_operator(after, panel)
    yield find_relations(after, panel)
    many = candor.windows(panel, fusion_origins(asked.task.split, origins))
    weights = fusion_weights(trained, many, panel, _within(report, 0.95, 1.0))
    yield find_fusion(weights, is_learned=trained.network.settings.learned_fusion)


def _in_a_row(history: int, origin: int) -> Origins:
    """Returns origins whose histories follow one another up to `origin`, about a hundred steps together."""
    count = min(-(-_STEPS_SHOWN // history), origin // history)
    return np.array([origin - place * history for place in reversed(range(max(count, 1)))], np.int64)


def _story(candor: Candor, told: Told) -> list[PageSection]:
    return [
        tell_forecast(told),
        tell_past(candor, told),
        tell_arrivals(told),
        tell_peers(told),
        tell_branches(told),
    ]


@dataclass(frozen=True, eq=False)
class _Content:
    """All that is written."""

    run: Run
    asked: _Question
    findings: list[Finding]
    story: list[PageSection]
    told: Told
    summary: dict[str, Any]

    def drawings(self) -> dict[str, Drawing]:
        """Returns all figures by the names of their files."""
        found = {one.name: one.drawing for one in self.findings if one.drawing is not None}
        return found | {name: drawing for section in self.story for name, drawing in section.drawings.items()}


def _write(folder: Path, content: _Content, report: Report) -> None:
    drawings = content.drawings()
    try:
        with atomic_folder(folder) as temporary:
            for done, (name, drawing) in enumerate(drawings.items()):
                report(f"drawing {name}", done / len(drawings))
                drawing.write(temporary, name)
            pictures = {name: (temporary / f"{name}.png").read_bytes() for name in drawings}
            (temporary / INDEX).write_text(_index(content, pictures), encoding="utf-8")
            (temporary / FORECAST_PAGE).write_text(_forecast_page(content, pictures), encoding="utf-8")
            write_json(temporary / SUMMARY, content.summary)
    except OSError as error:
        what = f"the explanation cannot be written ({error.strerror or error})"
        raise InputError(what, where=str(folder), hint="choose another place, or make room") from None


def _index(content: _Content, pictures: dict[str, bytes]) -> str:
    run, asked = content.run, content.asked
    sections = []
    for finding in content.findings:
        drawings = {} if finding.drawing is None else {finding.name: finding.drawing}
        link = (FORECAST_PAGE, "The whole story of this forecast") if finding.name == "forecast" else None
        sections.append(PageSection(finding.title, finding.sentences, drawings, link=link))
    sections.append(PageSection("How this was made", _circumstances(run, asked)))
    subtitle = f"What the run {run.folder.name} learned and how it uses that; unit {run.record.unit or 'unknown'}."
    return make_page(f"Reading {run.record.model} on {run.record.data}", subtitle, sections, pictures)


def _circumstances(run: Run, asked: _Question) -> list[str]:
    """Returns what has to be known about how the findings were made."""
    sentences = [
        f"States are those of {len(asked.origins):,} windows, evenly spread over the {asked.part}.",
        f"Before training means the first weights, drawn again from seed {asked.candor.seed}.",
    ]
    if run.record.start is not None:
        sentences.append(f"This training began elsewhere, with the weights of {run.record.start.run}.")
    then, now = run.record.versions.get("torch", ""), versions()["torch"]
    if then and then != now:
        sentences.append(f"The run was made with torch {then}, and {now} is installed: first weights may differ.")
    return sentences


def _forecast_page(content: _Content, pictures: dict[str, bytes]) -> str:
    told, record = content.told, content.run.record
    title = f"{told.name}, from {told.when(told.found.time)}"
    subtitle = f"Where this forecast of {record.model} on {record.data} came from."
    return make_page(title, subtitle, content.story, pictures)


def _summary(run: Run, asked: _Question, findings: list[Finding]) -> dict[str, Any]:
    panel = asked.task.panel
    return {
        "format": _FORMAT,
        "run": run.folder.name,
        "model": run.record.model,
        "data": run.record.data,
        "unit": run.record.unit,
        "part": asked.part,
        "windows": len(asked.origins),
        "sensor": panel.sensor_ids[asked.column],
        "time": panel.times.slice(asked.origin, asked.origin + 1).local[0].isoformat(),
        "findings": {
            one.name: {"title": one.title, "sentences": list(one.sentences), "numbers": _finite(dict(one.numbers))}
            for one in findings
        },
    }


def _finite(content: Any) -> Any:
    """Returns content in which what is not a number is None, as JSON wants it."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _within(report: Report, begin: float, end: float) -> Callable[[str, float | None], None]:
    """Returns a report of work that is the part from `begin` to `end` of the whole, told under one name."""

    def tell(what: str, share: float | None) -> None:
        words = what.partition(" | ")[2] or what
        report(f"explaining | {words}", begin + (end - begin) * (share or 0.0))

    return tell
