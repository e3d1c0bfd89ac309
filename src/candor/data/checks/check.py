"""The check of a whole panel: every sensor on its own, then the rows and the network they share."""

import numpy as np

from candor.core.progress import Report, silent
from candor.core.text import duration
from candor.data.checks.coverage import report_coverage
from candor.data.checks.network import count_edges, report_network
from candor.data.checks.report import CheckReport, SensorSummary
from candor.data.checks.sensors import SensorFacts, columns_of, examine_sensor, report_sensors
from candor.data.findings import Findings
from candor.data.panel import Panel


def check_panel(panel: Panel, report: Report = silent) -> CheckReport:
    """Returns what a careful person would notice about a panel; `report` is told how far it has come.

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
    parts = report_network(panel, findings)
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
    arriving, leaving = count_edges(panel)
    return tuple(
        SensorSummary(
            id=sensor.id,
            name=sensor.name,
            missing_share=1 - fact.coverage.readings / panel.times.length if panel.times.length else None,
            longest_gap=fact.coverage.longest_gap,
            longest_gap_start=panel.times.iso(fact.coverage.gap_start) if fact.coverage.longest_gap else None,
            minimum=fact.minimum,
            median=fact.median,
            maximum=fact.maximum,
            flat_share=fact.flat_share,
            edges_in=int(edges_in),
            edges_out=int(edges_out),
        )
        for sensor, fact, edges_in, edges_out in zip(panel.sensors, facts, arriving, leaving, strict=True)
    )
