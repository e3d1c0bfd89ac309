"""When sensors report, and their gaps."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candor.core.text import duration, duration_option, listed, rounded_percent
from candor.data.findings import Findings, Level
from candor.data.panel import Panel

# A record of 200 rows leaves some 20 for the evaluation, too few to show skill.
LEAST_ROWS = 200
# Silence in the last tenth of the record falls into the test part.
STOPPED_SHARE = 0.1
# A tenth is bridged by most models; with more than half missing, most of what is learned there was never measured.
SOME_MISSING, MOST_MISSING = 0.1, 0.5
# One gap of a twentieth of the record is longer than anything that filling in can bridge.
GAP_SHARE = 0.05
# Whatever the share, silence of less than two dozen rows is no news.
LEAST_SILENCE = 24
# A sensor with its own, slower interval keeps to it nearly always; lost readings lengthen a step to a multiple of it.
# Where more than 60 of 100 rows are filled, there is no slower interval.
OWN_INTERVAL_AT_MOST = 0.6
OWN_INTERVAL_KEPT = 0.95
LEAST_STEPS = 24


@dataclass(frozen=True)
class Gap:
    """Rows in succession without a reading: how many, and the first of them."""

    length: int
    start: int


@dataclass(frozen=True)
class Coverage:
    """When one sensor reports."""

    rows: int  # how many rows the panel has
    readings: int  # at how many of them the sensor reports
    last: int  # the row of its last reading, -1 if there is none
    longest_gap: Gap  # the longest gap
    earlier_gap: Gap  # the longest gap before the last reading
    step: int  # the sensor reports at one row in `step`

    @property
    def has_stopped(self) -> bool:
        """Whether there are readings, but none for a good while before the end."""
        silence = self.rows - 1 - self.last
        return self.readings > 0 and silence >= max(STOPPED_SHARE * self.rows, LEAST_SILENCE)

    @property
    def missing_while_alive(self) -> float:
        """Share of readings missing, by the sensor's own interval and until it stopped."""
        expected = (self.last + 1 if self.has_stopped else self.rows) / self.step
        return max(0.0, 1 - self.readings / expected)


def measure_coverage(reported: NDArray[np.int64], rows: int) -> Coverage:
    """Return when a sensor reports, from the rows at which it does."""
    starts, lengths = _gaps(reported, rows)
    longest, earlier = (
        Gap(int(chosen.max()), int(starts[chosen.argmax()]))
        for chosen in (lengths, lengths[:-1] if len(reported) else lengths)
    )
    last = int(reported[-1]) if len(reported) else -1
    return Coverage(rows, len(reported), last, longest, earlier, _own_step(reported, rows))


def _gaps(reported: NDArray[np.int64], rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row and the length of the gap before each reading, and of that after the last; 0 for none."""
    ends = np.concatenate([[-1], reported, [rows]])
    return ends[:-1] + 1, np.diff(ends) - 1


def _own_step(reported: NDArray[np.int64], rows: int) -> int:
    """Return in how many rows the sensor reports once, 1 unless it keeps to a slower interval of its own."""
    if len(reported) <= LEAST_STEPS or len(reported) > OWN_INTERVAL_AT_MOST * rows:
        return 1
    steps = np.diff(reported)
    step = int(np.median(steps))
    return step if np.mean(steps % step == 0) >= OWN_INTERVAL_KEPT else 1


def report_coverage(
    panel: Panel, coverages: Sequence[Coverage], is_reported: NDArray[np.bool_], findings: Findings
) -> None:
    """Add what there is to say about silence, from when each sensor reports, and at which rows any of them does."""
    if panel.times.length < LEAST_ROWS:
        findings.warning(
            f"the record is short, {panel.times.length} rows: little to learn from and less to evaluate by", panel.name,
            hint=f"give {LEAST_ROWS} rows or more",
        )  # fmt: skip
    by_id = dict(zip(panel.sensor_ids, coverages, strict=True))
    dead = [sensor for sensor, coverage in by_id.items() if not coverage.readings]
    if len(dead) == len(coverages):
        findings.error(
            "no sensor has a reading", panel.name or listed(dead), max(len(dead), 1),
            "check that the file holds numbers, and which of them --missing and --minimum take away",
        )  # fmt: skip
        return
    findings.about(dead, "sensors have no reading at all", "leave them out, or check their columns")
    alive = {sensor: coverage for sensor, coverage in by_id.items() if coverage.readings}
    _report_stopped(panel, alive, findings)
    _report_missing(alive, findings)
    _report_gaps(panel, alive, findings)
    _report_own_intervals(panel, alive, findings)
    if len(alive) > 1 and any(coverage.step == 1 for coverage in alive.values()):
        _report_empty_rows(panel, np.flatnonzero(is_reported), findings)


def _report_stopped(panel: Panel, alive: dict[str, Coverage], findings: Findings) -> None:
    stopped = sorted((s for s in alive if alive[s].has_stopped), key=lambda s: alive[s].last)
    findings.about(
        [f"{s} since {panel.times.short(alive[s].last + 1)}" for s in stopped],
        "sensors have stopped: silent until the end of the record",
        "leave them out, or repair them; there is nothing to evaluate their forecasts by",
    )


def _report_missing(alive: dict[str, Coverage], findings: Findings) -> None:
    missing = {sensor: coverage.missing_while_alive for sensor, coverage in alive.items()}
    worst = sorted(alive, key=lambda s: -missing[s])
    for level, low, high, share in (
        (Level.WARNING, MOST_MISSING, 1.0, "half"),
        (Level.NOTE, SOME_MISSING, MOST_MISSING, rounded_percent(SOME_MISSING)),
    ):
        findings.about(
            [f"{s} ({rounded_percent(missing[s], 3)})" for s in worst if low < missing[s] <= high],
            f"sensors miss more than {share} of their readings",
            "expect poorer forecasts there; leave out what is not needed",
            level=level,
        )


def _report_gaps(panel: Panel, alive: dict[str, Coverage], findings: Findings) -> None:
    gaps = {s: c.earlier_gap if c.has_stopped else c.longest_gap for s, c in alive.items()}
    least = max(GAP_SHARE * panel.times.length, LEAST_SILENCE)
    long = sorted((s for s in gaps if gaps[s].length > least), key=lambda s: -gaps[s].length)
    findings.about(
        [f"{s} from {panel.times.short(gaps[s].start)} ({gaps[s].length} rows)" for s in long],
        f"sensors have a gap longer than {rounded_percent(GAP_SHARE)} of the record",
        "use a part of the record without it if you can",
        level=Level.NOTE,
    )


def _report_own_intervals(panel: Panel, alive: dict[str, Coverage], findings: Findings) -> None:
    slow = defaultdict(list)
    for sensor, coverage in alive.items():
        if coverage.step > 1:
            slow[coverage.step].append(sensor)
    for step, sensors in sorted(slow.items()):
        own, grid = step * panel.times.interval, panel.times.interval
        findings.about(
            sensors,
            f"sensors report at one row in {step}: every {duration(own)}, where the rows are {duration(grid)} apart",
            f"to bring all sensors to that grid, say --interval {duration_option(own)}",
            level=Level.NOTE,
        )


def _report_empty_rows(panel: Panel, reported: NDArray[np.int64], findings: Findings) -> None:
    starts, lengths = _gaps(reported, panel.times.length)
    if lengths.any():
        findings.note(
            f"no sensor at all reports at some moments: {np.count_nonzero(lengths)} stretches, the longest of "
            f"{lengths.max()} rows",
            f"longest from {panel.times.short(int(starts[lengths.argmax()]))}",
            int(lengths.sum()),
            "nothing, if the logger was off; if clocks were changed in summer, say where the sensors are with --zone",
        )
