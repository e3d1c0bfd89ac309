"""The check of a whole panel: every sensor on its own, then the rows and the network they share."""

from dataclasses import dataclass

import numpy as np

from candor.core.progress import Report, silent
from candor.core.text import duration, listed
from candor.data.checks.coverage import report_coverage
from candor.data.checks.sensors import SensorFacts, columns_of, examine_sensor, report_sensors
from candor.data.findings import Findings, Level
from candor.data.panel import Panel
from candor.graph import components, isolated


@dataclass(frozen=True)
class SensorSummary:
    """One sensor in numbers, ready for a table or for JSON; None where there is nothing to measure."""

    id: str
    name: str  # what people call it; may be empty
    missing_share: float | None  # share of the rows without a reading, 0 to 1
    longest_gap: int  # the most rows in succession without a reading
    longest_gap_start: str | None  # local time of the first row of that gap
    # of the readings, in the sensor's unit
    minimum: float | None
    median: float | None
    maximum: float | None
    flat_share: float | None  # share of the readings that lie in unusually long runs of one value, 0 to 1
    # edges that lead here from other sensors, and from here to them
    edges_in: int
    edges_out: int


@dataclass(frozen=True)
class CheckReport:
    """What was noticed about a panel."""

    findings: Findings
    sensors: tuple[SensorSummary, ...]  # a summary of each sensor, in the order of the panel
    components: int  # parts of the network that hang together, whatever the directions; a lone sensor is one
    times: int  # how many rows there are
    # local times of the first and the last row
    first: str | None
    last: str | None
    interval: str  # the distance between two rows, in words
    missing_share: float | None  # share of all cells without a reading, 0 to 1; None if there are no cells


def _report_network(panel: Panel, findings: Findings) -> int:
    """Add what there is to say about the edges, and return the number of components."""
    sensors = len(panel.sensors)
    source, target = panel.edges.source, panel.edges.target
    sizes = np.bincount(components(source, target, sensors))
    lonely = isolated(source, target, sensors)
    if sensors <= 1:
        return sensors
    if len(lonely) == sensors:
        findings.note(
            "there are no edges between sensors: each is forecast from itself and from sensors that behave alike",
            panel.name, sensors,
            "give a list of connections with --edges if there is one",
        )  # fmt: skip
        return len(sizes)
    findings.about(
        [panel.sensors[i].id for i in lonely],
        "sensors have no edge to any other",
        "add their edges; check that the edges call them by the same names as the readings do",
        level=Level.NOTE,
    )
    groups = sorted((int(size) for size in sizes if size > 1), reverse=True)
    if len(groups) > 1:
        findings.note(
            "the network falls into parts that do not touch", f"parts of {listed(groups)} sensors", len(groups),
            "nothing, if they are separate rivers or roads; else add the edges between them",
        )  # fmt: skip
    return len(sizes)


def check_panel(panel: Panel, report: Report = silent) -> CheckReport:
    """Return what is noticeable about a panel; `report` is a progress callback.

    Besides the panel itself, at most 32 MB of readings (or the columns of two sensors, if that is more) and 300 bytes
    per row are in memory at a time, however many sensors there are.
    """
    facts: list[SensorFacts] = []
    is_reported = np.zeros(panel.times.length, np.bool_)
    for column in columns_of(panel):
        facts.append(examine_sensor(column, panel.times.interval))
        is_reported |= ~np.isnan(column)
        report("checking the sensors", len(facts) / len(panel.sensors))
    findings = Findings()
    report_coverage(panel, [fact.coverage for fact in facts], is_reported, findings)
    report_sensors(panel, facts, findings)
    parts = _report_network(panel, findings)
    cells = panel.times.length * len(panel.sensors)
    return CheckReport(
        findings=findings,
        sensors=_summaries(panel, facts),
        components=parts,
        times=panel.times.length,
        first=panel.times.iso(0) if panel.times.length else None,
        last=panel.times.iso(panel.times.length - 1) if panel.times.length else None,
        interval=duration(panel.times.interval),
        missing_share=1 - sum(fact.coverage.readings for fact in facts) / cells if cells else None,
    )


def _summaries(panel: Panel, facts: list[SensorFacts]) -> tuple[SensorSummary, ...]:
    between_two = panel.edges.source != panel.edges.target
    ends = (panel.edges.target[between_two], panel.edges.source[between_two])
    edges_in, edges_out = (np.bincount(end, minlength=len(facts)).tolist() for end in ends)
    return tuple(
        SensorSummary(
            id=sensor.id,
            name=sensor.name,
            missing_share=1 - fact.coverage.readings / panel.times.length if panel.times.length else None,
            longest_gap=fact.coverage.longest_gap.length,
            longest_gap_start=panel.times.iso(gap.start) if (gap := fact.coverage.longest_gap).length else None,
            minimum=fact.minimum,
            median=fact.median,
            maximum=fact.maximum,
            flat_share=fact.flatness.readings / fact.coverage.readings if fact.coverage.readings else None,
            edges_in=edges_in[position],
            edges_out=edges_out[position],
        )
        for position, (sensor, fact) in enumerate(zip(panel.sensors, facts, strict=True))
    )
