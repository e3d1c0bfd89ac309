"""One pass over the test windows of a task, and the scores that come out, in the sensors' unit."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from candor.core.errors import InputError
from candor.core.files import write_json
from candor.core.progress import Report, silent
from candor.core.versions import versions
from candor.data.protocol import Origins, Task
from candor.forecasting.forecaster import Forecaster, forecasters, halve_validation
from candor.metrics import IntervalAccumulator, PeakTiming, ScoreAccumulator, as_json, peak_timing, skill
from candor.runs.run import EVALUATION, Run, model_checksum

SIMPLE = ("last-value", "seasonal-naive", "historical-average", "linear")
Part = Literal["train", "validation", "test"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The scores of one forecaster on one part of a task."""

    forecaster: Forecaster
    task: Task
    part: Part
    windows: int
    """How many forecasts were evaluated."""
    scores: ScoreAccumulator
    intervals: IntervalAccumulator | None
    """None if the forecaster is not calibrated."""
    peaks: tuple[PeakTiming, ...] | None = None
    """The timing of peaks at the last step of the horizon, one per sensor, for rivers only."""

    def overall(self) -> dict[str, float]:
        """Return the pooled scores; the timing of peaks is the mean over all peaks of all sensors, in steps."""
        scores = self.scores.scores("overall")
        if self.peaks is not None:
            counts = np.array([timing.peaks for timing in self.peaks])
            steps = np.array([timing.mean_absolute_steps for timing in self.peaks])
            known = counts > 0
            scores["peak_timing"] = float(np.average(steps[known], weights=counts[known])) if known.any() else np.nan
        return scores

    def skill_against(self, reference: "Evaluation") -> float:
        """Return by how much the MAE is smaller than the reference's, as a share: 1 is perfect, 0 no better."""
        return float(skill(self.scores.scores("overall")["mae"], reference.scores.scores("overall")["mae"]))

    def to_json(self) -> dict[str, Any]:
        """Return the scores with everything they depend on."""
        panel, protocol = self.task.panel, self.task.protocol
        split = {name: len(getattr(self.task.split, name)) for name in ("train", "validation", "test")}
        return {
            "model": self.forecaster.name,
            "settings": self.forecaster.settings(),
            "data": {"name": panel.name, "sha256": panel.fingerprint, "sensors": len(panel.sensors)},
            "part": self.part,
            "windows": self.windows,
            "split": {"kind": protocol.split, "shares": list(protocol.shares), "windows": split},
            "protocol": protocol.model_dump(mode="json"),
            "mask": "observed targets only" if protocol.targets == "observed" else "none: the filled series counts",
            "unit": panel.unit,
            "aggregation": "pooled over every valid window, step and sensor; nse and kge: mean over sensors",
            "seed": self.forecaster.seed,
            "versions": versions(),
            **self.errors_to_json(),
            "intervals": self._intervals_to_json(),
        }

    def errors_to_json(self) -> dict[str, Any]:
        """Return the errors of the forecasts alone: overall, by step and by sensor."""
        return {
            "overall": as_json(self.overall()),
            "by_step": as_json(self.scores.scores("step")),
            "by_sensor": _by_sensor(self.scores, self.task.panel.sensor_ids),
        }

    def _intervals_to_json(self) -> dict[str, Any] | None:
        if self.intervals is None:
            return None
        content = {
            "asked_coverage": self.intervals.coverage,
            "method": self._interval_method(),
            "overall": as_json(self.intervals.scores("overall")),
            "by_step": as_json(self.intervals.scores("step")),
            "by_sensor": _by_sensor(self.intervals, self.task.panel.sensor_ids),
        }
        if (calibration := self.forecaster.calibration_) is not None:
            content["most_residuals_of_a_step_and_sensor"] = int(calibration.counts.max())
            content["borrowing"] = asdict(calibration.borrowing(self.intervals.coverage))
        return content

    def _interval_method(self) -> str:
        method = "split conformal per step and sensor, on the second half of the validation part"
        split = self.task.split
        _, calibrating = halve_validation(split, self.task.protocol.horizon)
        if np.isin(calibrating, self.forecaster.selection(split).validation).any():
            return f"{method}, which also chose the weights: they may be too narrow for it"
        return method


def evaluate(
    forecaster: Forecaster, task: Task, part: Part = "test", report: Report = silent, coverage: float = 0.9
) -> Evaluation:
    """Return the scores of a fitted forecaster on one part of a task.

    On the test part, calibrated forecasters give intervals too, which should cover a share of `coverage`.
    """
    check_part(task, part)
    origins: Origins = getattr(task.split, part)
    panel, horizon = task.panel, task.protocol.horizon
    # On parts that it learned from or was calibrated on, intervals hold what they were made to hold.
    calibration = forecaster.calibration_ if part == "test" else None
    scores = ScoreAccumulator(horizon, len(panel.sensors))
    intervals = None if calibration is None else IntervalAccumulator(horizon, len(panel.sensors), coverage)
    last_step = np.full((len(origins), len(panel.sensors)), np.nan, np.float32) if task.protocol.is_river else None
    done = 0
    for batch, forecast in forecaster.predict_in_batches(panel, origins):
        rows = batch[:, None] + np.arange(horizon)
        scores.update(forecast, panel.values[rows], panel.mask[rows])
        if intervals is not None and calibration is not None:
            intervals.update(*calibration.interval(forecast, coverage), panel.values[rows], panel.mask[rows])
        if last_step is not None:
            last_step[done : done + len(batch)] = forecast[:, -1]
        done += len(batch)
        report(f"evaluating {forecaster.name}", done / len(origins))
    peaks = None
    if last_step is not None:  # the series of forecasts made one horizon ahead
        observed, window = panel.values[origins + horizon - 1], max(horizon // 2, 1)
        columns = range(last_step.shape[1])
        peaks = tuple(peak_timing(observed[:, column], last_step[:, column], window) for column in columns)
    return Evaluation(forecaster, task, part, len(origins), scores, intervals, peaks)


def evaluate_run(run: Run, report: Report = silent, task: Task | None = None) -> Evaluation:
    """Return the scores of a run on its test part, and keep them in its folder with the checksum of its model.

    Its task is read if it is not given.
    """
    checksum = model_checksum(run.folder)  # before: training may go on meanwhile and leave another model
    evaluation = evaluate(run.forecaster, task or run.task(), report=report)
    write_json(run.folder / EVALUATION, evaluation.to_json() | {"model_sha256": checksum})
    return evaluation


def evaluate_simple(task: Task, report: Report = silent) -> dict[str, Evaluation]:
    """Return the scores on the test part of the four simple forecasters by name, each fitted to the same task."""
    history, horizon = task.protocol.history, task.protocol.horizon
    found = {}
    for name in SIMPLE:
        forecaster = forecasters.get(name)(history=history, horizon=horizon).fit(task.panel, task.split, report)
        found[name] = evaluate(forecaster, task, report=report)
    return found


def check_part(task: Task, part: Part) -> None:
    """Refuse a part of a task that holds no windows."""
    if not len(getattr(task.split, part)):
        raise InputError(
            f"the {part} part holds no windows: there is nothing to evaluate",
            where=task.panel.name,
            hint="train with shares that leave some, e.g. shares=[0.6,0.2,0.2]",
        )


def _by_sensor(scores: ScoreAccumulator | IntervalAccumulator, ids: tuple[str, ...]) -> dict[str, Any]:
    columns = scores.scores("sensor")
    return {sensor: as_json({name: column[i] for name, column in columns.items()}) for i, sensor in enumerate(ids)}
