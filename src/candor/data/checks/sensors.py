"""What the readings of one sensor show by themselves."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
# Two sensors that hardly ever change can agree by coincidence: two rain gauges in a dry month.
LEAST_CHANGES_OF_A_COPY = 10


@dataclass(frozen=True)
class SensorFacts:
    """What the readings of one sensor show; None where there are none."""

    coverage: Coverage  # when it reports
    # of the readings, in the sensor's unit
    minimum: float | None
    median: float | None
    maximum: float | None
    oddities: Oddities  # readings that look wrong one by one
    flatness: Flatness  # how it sticks, apart from those
    unit_change: UnitChange | None  # a suspected change of unit, apart from those
    digest: bytes | None  # equal for sensors with equal readings; None where equality would mean nothing


def columns_of(panel: Panel) -> Iterator[NDArray[np.float32]]:
    """Yield the readings of each sensor, in order of time."""
    per_block = max(1, READINGS_PER_BLOCK // max(1, panel.times.length))
    for first in range(0, len(panel.sensors), per_block):
        yield from np.ascontiguousarray(panel.values[:, first : first + per_block].T)


def examine_sensor(column: NDArray[np.float32], interval: timedelta) -> SensorFacts:
    """Return what the readings of one sensor show; they are in order of time, NaN where missing."""
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
    """Return a float32 reading as the number with the fewest digits, 0.1 instead of 0.10000000149."""
    return float(str(np.float32(number)))


def _digest(column: NDArray[np.float32]) -> bytes:
    comparable = column + np.float32(0)  # -0 becomes 0
    comparable[np.isnan(column)] = np.nan  # there is more than one NaN
    return hashlib.blake2b(comparable.data, digest_size=16).digest()


def report_sensors(panel: Panel, facts: Sequence[SensorFacts], findings: Findings) -> None:
    """Add what there is to say about the readings of the sensors, each kind once with the worst sensors first."""
    by_id = dict(zip(panel.sensor_ids, facts, strict=True))
    odd = {sensor: facts.oddities for sensor, facts in by_id.items()}
    _report_codes(odd, findings)
    _report_zeros(by_id, findings)
    _report_negatives(by_id, findings)
    _report_outliers(panel, {sensor: oddities.outliers for sensor, oddities in odd.items()}, findings)
    _report_flat(panel, {sensor: facts.flatness for sensor, facts in by_id.items()}, findings)
    findings.about(
        [
            f"{s} at {panel.times.short(f.unit_change.row)} ({f.unit_change.words})"
            for s, f in by_id.items()
            if f.unit_change
        ],
        "the level jumps and stays, as if the unit had changed",
        "bring the readings before and after to one unit, and name it with --unit",
    )
    _report_copies(by_id, findings)


def _worst_first(sizes: Mapping[str, float]) -> list[str]:
    """Return the sensors for which there is something to report, the largest first."""
    return sorted((sensor for sensor in sizes if sizes[sensor]), key=lambda sensor: -sizes[sensor])


def _report_codes(odd: dict[str, Oddities], findings: Findings) -> None:
    sensors_with: dict[float, dict[str, int]] = defaultdict(dict)
    for sensor, oddities in odd.items():
        for number, count in oddities.codes:
            sensors_with[_plain(number)][sensor] = count
    for number, counts in sorted(sensors_with.items()):
        findings.about(
            [f"{sensor} ({counts[sensor]} times)" for sensor in _worst_first(counts)],
            f"the number {number:.10g} is repeated far outside all other readings: it may stand for missing",
            f"say --missing {number:.10g}",
            count=sum(counts.values()),
        )


def _report_zeros(by_id: dict[str, SensorFacts], findings: Findings) -> None:
    zeros = {sensor: facts.oddities.zeros for sensor, facts in by_id.items()}
    shares = {sensor: count / by_id[sensor].coverage.readings for sensor, count in zeros.items() if count}
    findings.about(
        [f"{sensor} ({rounded_percent(shares[sensor], 3)} of the readings)" for sensor in _worst_first(shares)],
        "zeros lie far from all other readings: zero may stand for missing",
        "say --missing 0, unless the sensors really measure nothing then",
        count=sum(zeros.values()),
    )


def _report_negatives(by_id: dict[str, SensorFacts], findings: Findings) -> None:
    for level, is_abrupt, what in (
        (Level.WARNING, True, "readings fall below zero all at once, at sensors that are otherwise positive"),
        (Level.NOTE, False, "a few readings are below zero, at sensors that are otherwise positive"),
    ):
        found = {s: f.oddities.negatives for s, f in by_id.items() if f.oddities.is_abrupt == is_abrupt}
        findings.about(
            [f"{sensor} ({found[sensor]}, down to {by_id[sensor].minimum:.6g})" for sensor in _worst_first(found)],
            what,
            "if the quantity cannot be negative, say --minimum 0",
            count=sum(found.values()),
            level=level,
        )


def _report_outliers(panel: Panel, rows: dict[str, tuple[int, ...]], findings: Findings) -> None:
    counts = {sensor: len(found) for sensor, found in rows.items()}
    findings.about(
        [f"{s} ({counts[s]}, first {panel.times.short(rows[s][0])})" for s in _worst_first(counts)],
        "single readings are absurdly far from those before and after",
        "correct or empty them if they are errors",
        count=sum(counts.values()),
        level=Level.NOTE,
    )


def _report_flat(panel: Panel, flat: dict[str, Flatness], findings: Findings) -> None:
    findings.about(
        [f"{sensor} ({_plain(found.value):.6g})" for sensor, found in flat.items() if found.is_constant],
        "sensors report the same number throughout",
        "check them, or leave them out",
    )
    stuck = _worst_first({sensor: found.longest for sensor, found in flat.items() if not found.is_constant})
    findings.about(
        [
            f"{s} from {panel.times.short(flat[s].row)} ({flat[s].longest} times {_plain(flat[s].value):.6g})"
            for s in stuck
        ],
        "sensors stick: the same number for far longer than is usual there",
        "empty these readings if the sensor was stuck or the numbers were filled in",
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
