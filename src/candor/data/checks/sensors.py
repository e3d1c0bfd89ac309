"""One sensor at a time: everything that its readings alone tell."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from candor.core.text import rounded_percent
from candor.data.checks.coverage import Coverage, measure_coverage
from candor.data.checks.units import UnitChange, find_unit_change
from candor.data.checks.values import Flatness, Oddities, find_flat_stretches, find_oddities, series_of
from candor.data.findings import Findings, Level
from candor.data.panel import Panel

# Sensors are copied out of the panel in blocks, so that a panel larger than memory is read in few sweeps. A block is
# 16 MB, or one sensor if its column is longer; the last block and the next are in memory together.
READINGS_PER_BLOCK = 4_000_000
# Two sensors that hardly ever change can agree by chance: two rain gauges in a dry month.
LEAST_CHANGES_OF_A_COPY = 10


@dataclass(frozen=True)
class SensorFacts:
    """What the readings of one sensor tell; None where there is none.

    Args:
        coverage: when it reports.
        minimum: smallest reading, in the sensor's unit.
        median: middle reading, in the sensor's unit.
        maximum: largest reading, in the sensor's unit.
        oddities: readings that look wrong one by one.
        flatness: how it sticks, apart from those.
        unit_change: a suspected change of unit, apart from those.
        digest: equal for sensors with equal readings; None where equality would mean nothing.
    """

    coverage: Coverage
    minimum: float | None
    median: float | None
    maximum: float | None
    oddities: Oddities
    flatness: Flatness
    unit_change: UnitChange | None
    digest: bytes | None

    @property
    def flat_share(self) -> float | None:
        """Share of the readings in suspiciously long runs of one value."""
        return self.flatness.readings / self.coverage.readings if self.coverage.readings else None


def columns_of(panel: Panel) -> Iterator[NDArray[np.float32]]:
    """Yields the readings of each sensor, in order of time."""
    per_block = max(1, READINGS_PER_BLOCK // max(1, panel.times.length))
    for first in range(0, len(panel.sensors), per_block):
        yield from np.ascontiguousarray(panel.values[:, first : first + per_block].T)


def examine_sensor(column: NDArray[np.float32], interval: timedelta) -> SensorFacts:
    """Returns what the readings of one sensor tell.

    Args:
        column: the readings in order of time, NaN where missing.
        interval: the distance between two rows.
    """
    series = series_of(column)
    coverage = measure_coverage(series.rows, len(column))
    oddities, remaining = find_oddities(series)
    flatness = find_flat_stretches(remaining)
    ordered, middle = series.ordered, len(series) // 2
    return SensorFacts(
        coverage=coverage,
        minimum=_plain(ordered[0]) if len(series) else None,
        median=_plain((ordered[middle] + ordered[-middle - 1]) / 2) if len(series) else None,
        maximum=_plain(ordered[-1]) if len(series) else None,
        oddities=oddities,
        flatness=flatness,
        unit_change=find_unit_change(remaining, len(column), interval),
        digest=_digest(column) if flatness.runs > LEAST_CHANGES_OF_A_COPY else None,
    )


def _plain(number: float) -> float:
    """Returns a float32 reading as the number with the fewest digits, 0.1 instead of 0.10000000149."""
    return float(str(np.float32(number)))


def _digest(column: NDArray[np.float32]) -> bytes:
    comparable = column + np.float32(0)  # -0 becomes 0
    comparable[np.isnan(column)] = np.nan  # there is more than one NaN
    return hashlib.blake2b(comparable.data, digest_size=16).digest()


def report_sensors(panel: Panel, facts: Sequence[SensorFacts], findings: Findings) -> None:
    """Adds what there is to say about the readings of the sensors, each kind once with the worst sensors first."""
    by_id = dict(zip(panel.sensor_ids, facts, strict=True))
    _report_codes(by_id, findings)
    _report_zeros(by_id, findings)
    _report_negatives(by_id, findings)
    _report_outliers(panel, by_id, findings)
    _report_flat(panel, by_id, findings)
    _report_unit_changes(panel, by_id, findings)
    _report_copies(by_id, findings)


def _report_codes(by_id: dict[str, SensorFacts], findings: Findings) -> None:
    sensors_with: dict[float, dict[str, int]] = defaultdict(dict)
    for sensor, facts in by_id.items():
        for number, count in facts.oddities.codes:
            sensors_with[_plain(number)][sensor] = count
    for number, counts in sorted(sensors_with.items()):
        findings.about(
            [f"{s} ({counts[s]} times)" for s in sorted(counts, key=lambda s: -counts[s])],
            f"the number {number:.10g} is repeated far outside all other readings: it may stand for missing",
            f"say --missing {number:.10g}",
            count=sum(counts.values()),
        )


def _report_zeros(by_id: dict[str, SensorFacts], findings: Findings) -> None:
    zeros = {sensor: facts.oddities.zeros for sensor, facts in by_id.items() if facts.oddities.zeros}
    shares = {s: count / by_id[s].coverage.readings for s, count in zeros.items()}
    findings.about(
        [f"{s} ({rounded_percent(shares[s], 3)} of the readings)" for s in sorted(shares, key=lambda s: -shares[s])],
        "zeros lie far from all other readings: zero may stand for missing",
        "say --missing 0, unless the sensors really measure nothing then",
        count=sum(zeros.values()),
    )


def _report_negatives(by_id: dict[str, SensorFacts], findings: Findings) -> None:
    for level, is_abrupt, what in (
        (Level.WARNING, True, "readings fall below zero all at once, at sensors that are otherwise positive"),
        (Level.NOTE, False, "a few readings are below zero, at sensors that are otherwise positive"),
    ):
        odd = {sensor: facts.oddities for sensor, facts in by_id.items()}
        found = {s: o.negatives for s, o in odd.items() if o.negatives and o.is_abrupt == is_abrupt}
        worst = sorted(found, key=lambda s: -found[s])
        findings.about(
            [f"{s} ({found[s]}, down to {by_id[s].minimum:.6g})" for s in worst],
            what,
            "if the quantity cannot be negative, say --minimum 0",
            count=sum(found.values()),
            level=level,
        )


def _report_outliers(panel: Panel, by_id: dict[str, SensorFacts], findings: Findings) -> None:
    found = {sensor: facts.oddities.outliers for sensor, facts in by_id.items() if facts.oddities.outliers}
    worst = sorted(found, key=lambda s: -len(found[s]))
    findings.about(
        [f"{s} ({len(found[s])}, first {panel.times.short(found[s][0])})" for s in worst],
        "single readings are absurdly far from those before and after",
        "correct or empty them if they are errors",
        count=sum(len(rows) for rows in found.values()),
        level=Level.NOTE,
    )


def _report_flat(panel: Panel, by_id: dict[str, SensorFacts], findings: Findings) -> None:
    constant = {sensor: facts.flatness.value for sensor, facts in by_id.items() if facts.flatness.is_constant}
    findings.about(
        [f"{s} ({_plain(value):.6g})" for s, value in constant.items()],
        "sensors report the same number throughout",
        "check them, or leave them out",
    )
    stuck = {s: f.flatness for s, f in by_id.items() if f.flatness.readings and not f.flatness.is_constant}
    findings.about(
        [
            f"{s} from {panel.times.short(stuck[s].row)} ({stuck[s].longest} times {_plain(stuck[s].value):.6g})"
            for s in sorted(stuck, key=lambda s: -stuck[s].longest)
        ],
        "sensors stick: the same number for far longer than is usual there",
        "empty these readings if the sensor was stuck or the numbers were filled in",
    )


def _report_unit_changes(panel: Panel, by_id: dict[str, SensorFacts], findings: Findings) -> None:
    found = [(sensor, facts.unit_change) for sensor, facts in by_id.items() if facts.unit_change is not None]
    findings.about(
        [f"{sensor} at {panel.times.short(change.row)} ({change.words})" for sensor, change in found],
        "the level jumps and stays, as if the unit had changed",
        "bring the readings before and after to one unit, and name it with --unit",
    )


def _report_copies(by_id: dict[str, SensorFacts], findings: Findings) -> None:
    groups = defaultdict(list)
    for sensor, facts in by_id.items():
        if facts.digest is not None:
            groups[facts.digest].append(sensor)
    copies = [sensors for sensors in groups.values() if len(sensors) > 1]
    findings.about(
        [" = ".join(sensors) for sensors in copies],
        "sensors have identical readings throughout",
        "check for a copied column; keep one of each",
        count=sum(map(len, copies)),
    )
