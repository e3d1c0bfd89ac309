"""One pass over the test windows of a task, and the scores that come out, in the sensors' unit."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

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
    """The scores of one forecaster on one task.

    Args:
        forecaster: what was judged.
        task: what it was judged on.
        part: which part of the task.
        windows: how many forecasts were judged.
        scores: the errors of the forecasts.
        intervals: the scores of their intervals; None if the forecaster is not calibrated.
        peaks: the timing of peaks at the last step of the horizon, one per sensor, for rivers only.
    """

    forecaster: Forecaster
    task: Task
    part: Part
    windows: int
    scores: ScoreAccumulator
    intervals: IntervalAccumulator | None
    peaks: tuple[PeakTiming, ...] | None = None

    def overall(self) -> dict[str, float]:
        """Returns the pooled scores; the timing of peaks is the mean over all peaks of all sensors, in steps."""
        scores = self.scores.scores("overall")
        if self.peaks is not None:
            counts = np.array([timing.peaks for timing in self.peaks])
            steps = np.array([timing.mean_absolute_steps for timing in self.peaks])
            known = counts > 0
            scores["peak_timing"] = float(np.average(steps[known], weights=counts[known])) if known.any() else np.nan
        return scores

    def skill_against(self, reference: "Evaluation") -> float:
        """Returns by how much the MAE is smaller than the reference's, as a share: 1 is perfect, 0 no better."""
        return float(skill(self.scores.scores("overall")["mae"], reference.scores.scores("overall")["mae"]))

    def to_json(self) -> dict[str, Any]:
        """Returns the scores with everything they depend on."""
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
        """Returns the errors of the forecasts alone: overall, by step and by sensor."""
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
        _, told = halve_validation(split, self.task.protocol.horizon)
        if np.isin(told, self.forecaster.selection(split).validation).any():
            return f"{method}, which also chose the weights: they may be too narrow for it"
        return method


def evaluate(
    forecaster: Forecaster,
    task: Task,
    part: Part = "test",
    report: Report = silent,
    coverage: float = 0.9,
) -> Evaluation:
    """Returns the scores of a fitted forecaster on one part of a task.

    Args:
        forecaster: what is judged.
        task: what it is judged on.
        part: which part of the task.
        report: is told how far it has come.
        coverage: the share of observations that intervals are asked to hold, for calibrated forecasters on the test
            part.
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
        report(f"judging {forecaster.name}", done / len(origins))
    peaks = None if last_step is None else _peaks(panel.values[origins + horizon - 1], last_step, horizon)
    return Evaluation(forecaster, task, part, len(origins), scores, intervals, peaks)


def evaluate_run(run: Run, report: Report = silent, task: Task | None = None) -> Evaluation:
    """Returns the scores of a run on its test part, and keeps them in its folder with the checksum of its model.

    Args:
        run: with a model.
        report: progress callback.
        task: of the run; None reads it.
    """
    checksum = model_checksum(run.folder)  # before judging: training may go on meanwhile and leave another model
    judged = evaluate(run.forecaster, task or run.task(), report=report)
    write_json(run.folder / EVALUATION, judged.to_json() | {"model_sha256": checksum})
    return judged


def evaluate_simple(task: Task, report: Report = silent) -> dict[str, Evaluation]:
    """Returns the scores on the test part of the four simple forecasters by name, each fitted to the same task."""
    history, horizon = task.protocol.history, task.protocol.horizon
    judged = {}
    for name in SIMPLE:
        forecaster = forecasters.get(name)(history=history, horizon=horizon).fit(task.panel, task.split, report)
        judged[name] = evaluate(forecaster, task, report=report)
    return judged


def check_part(task: Task, part: Part) -> None:
    """Refuses a part of a task that holds no windows."""
    if not len(getattr(task.split, part)):
        raise InputError(
            f"the {part} part holds no windows: there is nothing to judge",
            where=task.panel.name,
            hint="train with shares that leave some, e.g. shares=[0.6,0.2,0.2]",
        )


def _by_sensor(scores: ScoreAccumulator | IntervalAccumulator, ids: tuple[str, ...]) -> dict[str, Any]:
    columns = scores.scores("sensor")
    return {sensor: as_json({name: column[i] for name, column in columns.items()}) for i, sensor in enumerate(ids)}


def _peaks(observed: NDArray[np.float32], forecast: NDArray[np.float32], horizon: int) -> tuple[PeakTiming, ...]:
    """Returns the timing of peaks per sensor in the series of forecasts made one horizon ahead."""
    window = max(horizon // 2, 1)
    return tuple(peak_timing(observed[:, i], forecast[:, i], window) for i in range(observed.shape[1]))
