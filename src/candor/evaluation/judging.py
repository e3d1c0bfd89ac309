"""One pass over the test windows of a task, and the scores that come out, in the sensors' unit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.data.protocol import Task
from candor.data.splits import Origins
from candor.forecasting.forecaster import Forecaster
from candor.metrics import PeakTiming, ScoreAccumulator, as_json, peak_timing, skill
from candor.progress import Report, silent
from candor.versions import versions

_NUMBERS_PER_BATCH = 4_000_000


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The scores of one forecaster on one task.

    `peaks` holds the timing of peaks at the last step of the horizon, one per sensor, for rivers only.
    """

    forecaster: Forecaster
    task: Task
    part: str
    scores: ScoreAccumulator
    peaks: tuple[PeakTiming, ...] | None

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
        by_sensor = self.scores.scores("sensor")
        split = {name: len(getattr(self.task.split, name)) for name in ("train", "validation", "test")}
        return {
            "model": self.forecaster.name,
            "settings": self.forecaster.settings(),
            "data": {"name": panel.name, "sha256": panel.fingerprint, "sensors": len(panel.sensors)},
            "part": self.part,
            "split": {"kind": protocol.split, "shares": list(protocol.shares), "windows": split},
            "protocol": protocol.model_dump(mode="json"),
            "mask": "observed targets only" if protocol.targets == "observed" else "none: the filled series counts",
            "unit": panel.unit,
            "aggregation": "pooled over every valid window, step and sensor; nse and kge: mean over sensors",
            "seed": self.forecaster.seed,
            "versions": versions(),
            "overall": as_json(self.overall()),
            "by_step": as_json(self.scores.scores("step")),
            "by_sensor": {
                sensor: as_json({name: column[i] for name, column in by_sensor.items()})
                for i, sensor in enumerate(panel.sensor_ids)
            },
        }


def evaluate(
    forecaster: Forecaster,
    task: Task,
    part: str = "test",
    report: Report = silent,
) -> Evaluation:
    """Returns the scores of a fitted forecaster on one part of a task; `report` is told how far it has come."""
    origins: Origins = getattr(task.split, part)
    panel, horizon = task.panel, task.protocol.horizon
    scores = ScoreAccumulator(horizon, len(panel.sensors))
    last_step = np.full((len(origins), len(panel.sensors)), np.nan, np.float32) if task.protocol.is_river else None
    windows = max(1, _NUMBERS_PER_BATCH // (horizon * len(panel.sensors)))
    for first in range(0, len(origins), windows):
        batch = origins[first : first + windows]
        rows = batch[:, None] + np.arange(horizon)
        forecast = forecaster.predict(panel, batch)
        scores.update(forecast, panel.values[rows], panel.mask[rows])
        if last_step is not None:
            last_step[first : first + len(batch)] = forecast[:, -1]
        report(f"judging {forecaster.name}", (first + len(batch)) / len(origins))
    peaks = None if last_step is None else _peaks(panel.values[origins + horizon - 1], last_step, horizon)
    return Evaluation(forecaster, task, part, scores, peaks)


def _peaks(observed: NDArray[np.float32], forecast: NDArray[np.float32], horizon: int) -> tuple[PeakTiming, ...]:
    """Returns the timing of peaks per sensor in the series of forecasts made one horizon ahead."""
    window = max(horizon // 2, 1)
    return tuple(peak_timing(observed[:, i], forecast[:, i], window) for i in range(observed.shape[1]))
