"""What a run of CANDOR learned and how it uses that, with one of its forecasts: many windows are read."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from candor.core.progress import Report, silent, within
from candor.core.text import sensor_label
from candor.core.versions import versions
from candor.data.protocol import Origins, Task
from candor.explain.analyses.embedding import find_embedding
from candor.explain.analyses.fusion import MOST_WINDOWS as MOST_FUSION_WINDOWS
from candor.explain.analyses.fusion import find_fusion, fusion_weights
from candor.explain.analyses.operator import find_operator
from candor.explain.analyses.propagation import find_propagation
from candor.explain.analyses.reconstruction import find_reconstruction
from candor.explain.analyses.relations import find_relations
from candor.explain.analyses.roles import find_roles
from candor.explain.analyses.states import untrained, window_states
from candor.explain.choices import MOST_WINDOWS, choose_forecast, choose_windows
from candor.explain.explanation import Explanation, ModelFinding
from candor.explain.forecast import explain_forecast
from candor.explain.overview import training_of
from candor.explain.pictures import AnyPicture
from candor.forecasting.candor import Candor
from candor.nets.candor.candor import CandorNetwork
from candor.runs.run import Run

FORMAT = "candor-explained"
_STEPS_SHOWN = 96  # of trajectories, in whole histories
_MOST_NUMBERS = 6_000_000  # of one state of all windows: 24 MB, and there are about twenty of them


@dataclass(frozen=True, eq=False)
class RunExplanation:
    """The explanation of a run and of one of its forecasts."""

    run: Explanation  # a finding for each question, the last one about the forecast
    forecast: Explanation  # where one forecast came from
    circumstances: tuple[str, ...]  # sentences about how the findings were made
    summary: Mapping[str, Any]  # all numbers, as summary.json holds them

    @property
    def pictures(self) -> dict[str, AnyPicture]:
        """All pictures, by the name of their files."""
        return self.run.pictures | self.forecast.pictures


def explain_run(
    run: Run,
    sensor: str | None = None,
    time: datetime | str | None = None,
    windows: int | None = None,
    report: Report = silent,
) -> RunExplanation:
    """Return what a run of CANDOR learned, and where one of its forecasts came from.

    Args:
        run: the run.
        sensor: whose forecast is explained; None means the one with most readings in the test part.
        time: of its first step; None means the last one whose whole outcome is known.
        windows: how many are read, evenly spread over the test part; None means 200, fewer for large networks.
        report: progress callback.
    """
    report("explaining | opening the run", 0.0)
    candor, task = run.candor(), run.as_measured(run.task())
    panel = task.panel
    column, origin = choose_forecast(task, candor, sensor, time)
    windows = windows or affordable_windows(candor.trained().network)
    part, origins = choose_windows(task.split, panel.times.length, windows)
    findings = list(_analyses(candor, task, origins, column, origin, report))
    if (training := training_of(run.folder, panel.unit)) is not None:
        sentence = f"Of {len(training.epochs)} epochs, the weights of epoch {training.kept + 1} were kept."
        findings.append(ModelFinding("training", "How did its errors fall?", (sentence,), {}, {"training": training}))
    report("explaining | one forecast", 0.95)
    data = f"{run.record.model} on {run.record.data}"
    forecast = explain_forecast(candor, panel, column, origin, f"Where this forecast of {data} came from.")
    title = f"Where does one forecast come from? {sensor_label(panel.sensors[column].id, panel.sensors[column].name)}"
    findings.append(ModelFinding("forecast", title, forecast.findings[0].sentences))
    subtitle = f"What the run {run.folder.name} learned and how it uses that; unit {run.record.unit or 'unknown'}."
    summary = {
        "format": FORMAT,
        "run": run.folder.name,
        "model": run.record.model,
        "data": run.record.data,
        "unit": run.record.unit,
        "part": part,
        "windows": len(origins),
        "sensor": panel.sensor_ids[column],
        "time": panel.times.slice(origin, origin + 1).local[0].isoformat(),
        "findings": {
            one.name: {"title": one.title, "sentences": list(one.sentences), "numbers": _finite(dict(one.numbers))}
            for one in findings
        },
    }
    explanation = Explanation(f"Reading {data}", subtitle, tuple(findings))
    return RunExplanation(explanation, forecast, tuple(_circumstances(run, candor, part, len(origins))), summary)


def affordable_windows(network: CandorNetwork) -> int:
    """Return the default number of windows: 200, or fewer where a network is so large that they fill the memory."""
    settings = network.settings
    return int(np.clip(_MOST_NUMBERS // (settings.nodes * settings.patches * settings.hidden), 2, MOST_WINDOWS))


def _analyses(
    candor: Candor, task: Task, origins: Origins, column: int, origin: int, report: Report
) -> Iterator[ModelFinding]:
    """Yield the findings over many windows, in the order of the paper."""
    trained, panel, windows = candor.trained(), task.panel, candor.windows(task.panel, origins)
    after = window_states(trained, windows, within(report, "explaining", "trained", 0.0, 0.5))
    # Only components are compared with those before training.
    before = after
    if after.components is not None:
        before = window_states(untrained(candor), windows, within(report, "explaining", "untrained", 0.5, 0.8))
    # Histories that follow one another up to the forecast.
    count = max(min(-(-_STEPS_SHOWN // candor.history), origin // candor.history), 1)
    shown = window_states(trained, candor.windows(panel, origin - candor.history * np.arange(count)[::-1]))
    yield find_reconstruction(after, shown, panel, column)
    yield find_embedding(before, after)
    yield find_propagation(after, panel, int(np.abs(origins - origin).argmin()))
    yield find_roles(before, after)
    yield find_operator(after, panel)
    yield find_relations(after, panel)
    _, many = choose_windows(task.split, panel.times.length, MOST_FUSION_WINDOWS)
    yield find_fusion(fusion_weights(candor, panel, many, within(report, "explaining", "branches", 0.9, 0.95)))


def _circumstances(run: Run, candor: Candor, part: str, windows: int) -> Iterator[str]:
    yield f"States are those of {windows:,} windows, evenly spread over the {part}."
    yield f"Before training means the first weights, drawn again from seed {candor.seed}."
    if run.record.start is not None:
        yield f"This training began elsewhere, with the weights of {run.record.start.run}."
    then, now = run.record.versions.get("torch", ""), versions()["torch"]
    if then and then != now:
        yield f"The run was made with torch {then}, and {now} is installed: first weights may differ."


def _finite(content: Any) -> Any:
    """Return content in which what is not a number is None, as JSON wants it."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
