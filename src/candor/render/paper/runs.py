"""Figures of runs of CANDOR, of the data before any model, and of the method."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from candor.core.progress import Report
from candor.core.text import NOTHING, counted, duration, percent
from candor.data.catalog import load_dataset
from candor.data.panel import Panel
from candor.data.panel_store import load_panel
from candor.explain.analyses.fusion import MOST_WINDOWS, fusion_weights
from candor.explain.choices import choose_windows
from candor.explain.explanation import ModelFinding
from candor.explain.pictures import Spread
from candor.explain.run import explain_run
from candor.explain.run_pictures import run_pictures
from candor.render.explanation_page import FORECAST_PAGE, INDEX, write_explanation
from candor.render.figures.explore import NAME as EXPLORE
from candor.render.figures.explore import write_exploration
from candor.render.figures.gallery import write_figures
from candor.render.figures.learned import draw_fusions
from candor.render.figures.schematics import draw_decomposition, draw_overview
from candor.render.paper.entry import PaperEntry, Picture, draw
from candor.research.explore import explore
from candor.research.paper.found import FoundRun
from candor.research.paper.origins import Origin, data_in_words, joined, origin_of_run
from candor.runs.run import load_run

_CAPTIONS: Mapping[str, str] = {
    "forecast": "A forecast beside what happened, for the sensor with most readings.",
    "forecast-next": "The forecast of the same sensor after the record ends.",
    "components": "What its recent past was split into: strengths of the four components, and the gates.",
    "fusion": "How much each branch counts, by how far ahead a forecast is.",
    "edges": "Which sensors hear from which, by the weights that were learned.",
    "training": "Errors during training.",
}
FUSIONS = "fusion-systems"
_EXPLORED = {"lags": "lags", "pairs": "distant pairs", "profiles": "what is usual at them"}  # tables of the data


def make_figures(run: FoundRun, folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Draw the figures of `candor explain --figures` into a folder and return their entry."""
    written = write_figures(run_pictures(load_run(run.folder), report=report), folder, report)
    stems = [path.stem for path in written if path.suffix == ".png"]
    yield PaperEntry(
        title=f"{run.name}: a run of CANDOR",
        shows=("Forecasts of one run, and how its parts were used.",),
        origin=_explained(run, "--figures", str(run.folder / "figures")),
        pictures=tuple(Picture(f"{folder.name}/{stem}", _CAPTIONS.get(stem, stem)) for stem in stems),
    )


def _explained(run: FoundRun, *options: str) -> Origin:
    """Return where what `candor explain` says of a run comes from."""
    command = shlex.join(["candor", "explain", str(run.folder), *options])
    return origin_of_run(run.record, str(run.folder), command)


def make_explanation(run: FoundRun, folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Write what `candor explain` tells into a folder and return its entry."""
    found = explain_run(load_run(run.folder), report=report)
    write_explanation(found, folder, report)
    findings = found.run.findings
    pictures = [Picture(f"{folder.name}/{name}", _told(one)) for one in findings for name in one.pictures]
    without = [_told(one) for one in findings if not one.pictures]
    yield PaperEntry(
        title=f"{run.name}: what CANDOR learned",
        shows=("What a run learned and how it uses that.", *without),
        origin=_explained(run),
        pictures=tuple(pictures),
        files=(
            (f"{folder.name}/{INDEX}", "the whole explanation"),
            (f"{folder.name}/{FORECAST_PAGE}", "where one forecast came from"),
        ),
    )


def _told(finding: ModelFinding) -> str:
    end = "" if finding.title.endswith(("?", ".")) else ":"
    return " ".join([f"{finding.title}{end}", *finding.sentences])


def make_fusions(runs: Sequence[FoundRun], folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Draw how much the branches count in all runs beside each other; no entry if fewer than two learned it."""
    found: dict[str, dict[str, Spread]] = {}
    origins = []
    for place, run in enumerate(runs):
        report(f"reading fusion weights | {run.name}", place / len(runs))
        opened = load_run(run.folder)
        if opened.record.model != "candor":  # is named where its own figures are tried
            continue
        candor, task = opened.candor(), opened.task()
        settings = candor.trained().network.settings
        if settings.learned_fusion and len(settings.branches) > 1:
            _, windows = choose_windows(task.split, task.panel.times.length, MOST_WINDOWS)
            found[run.name] = fusion_weights(candor, task.panel, windows).spreads()
            origins.append(_explained(run))
    if len(found) < 2:
        return
    caption = "Mean weight of each branch in the forecast; bars hold 10 % to 90 % of sensors, windows and positions."
    yield PaperEntry(
        title="All systems: what forecasts rest on",
        shows=("How much a sensor's own past and its like, and both directions of the network, count.",),
        origin=joined(origins),
        pictures=(draw(folder, FUSIONS, draw_fusions(found), caption),),
    )


def make_exploration(name: str, own: Path | None, folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Draw the three views of data before any model into a folder; `own` is that of data beside the catalogue."""
    report("reading data", None)
    panel = load_dataset(name) if own is None else load_panel(own)
    write_exploration(explore(panel, report=report), folder)
    caption = (
        "Coexisting dynamics of one sensor, the lags at which the ends of edges correlate most, and two distant pairs "
        "of sensors, one alike and one not."
    )
    yield PaperEntry(
        title=f"{name}: the data before any model",
        shows=("What a model of these data has to cope with.", _facts(panel)),
        origin=Origin(
            source=name if own is None else str(own),
            command=shlex.join(["candor", "data", "explore", name if own is None else str(own)]),
            data=data_in_words(name, panel.fingerprint, panel.unit, is_dataset=own is None),
            protocol="The whole record; deviations are readings minus what is usual at their time of the week "
            "(daily readings: week of the year).",
            made=NOTHING,
            versions=NOTHING,
        ),
        pictures=(Picture(f"{folder.name}/{EXPLORE}", caption),),
        files=tuple(
            (f"{folder.name}/{EXPLORE}-{table}.csv", f"numbers of {words} as CSV")
            for table, words in _EXPLORED.items()
            if (folder / f"{EXPLORE}-{table}.csv").is_file()
        ),
    )


def _facts(panel: Panel) -> str:
    edges = counted(len(panel.edges), "directed edge") if len(panel.edges) else "no edges"
    first, last = (panel.times.local[place].date().isoformat() for place in (0, -1))
    return (
        f"{counted(len(panel.sensors), 'sensor')} with {edges}, a reading every {duration(panel.times.interval)} from "
        f"{first} to {last}; {percent(1 - float(panel.mask.mean()))} missing."
    )


def make_schematics(folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Draw the two schematics of the method into a folder and return their entry."""
    report("drawing the method", None)
    split = "What the recent past of a sensor is split into, and what reads the parts."
    pictures = (
        draw(folder, "overview", draw_overview(), "How a forecast is made, from readings to readings."),
        draw(folder, "decomposition", draw_decomposition(), split),
    )
    yield PaperEntry(
        title="The method in two drawings",
        shows=("How CANDOR works; the words stand in the CSV files.",),
        origin=Origin(source="drawn by candor itself", command="candor paper", made=NOTHING, versions=NOTHING),
        pictures=pictures,
    )
