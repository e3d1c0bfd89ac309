"""What a check of a panel hands back: the findings, and a line about every sensor."""

from dataclasses import dataclass

from candor.data.findings import Findings


@dataclass(frozen=True)
class SensorSummary:
    """One sensor in numbers, ready for a table or for JSON; None where there is nothing to measure.

    Args:
        id: what the readings call the sensor.
        name: what people call it; may be empty.
        missing_share: share of the rows without a reading, 0 to 1.
        longest_gap: the most rows in succession without a reading.
        longest_gap_start: local time of the first row of that gap.
        minimum: smallest reading, in the sensor's unit.
        median: middle reading, in the sensor's unit.
        maximum: largest reading, in the sensor's unit.
        flat_share: share of the readings that lie in unusually long runs of one value, 0 to 1.
        edges_in: edges that lead here from other sensors.
        edges_out: edges that lead from here to other sensors.
    """

    id: str
    name: str
    missing_share: float | None
    longest_gap: int
    longest_gap_start: str | None
    minimum: float | None
    median: float | None
    maximum: float | None
    flat_share: float | None
    edges_in: int
    edges_out: int


@dataclass(frozen=True)
class CheckReport:
    """What was noticed about a panel.

    Args:
        findings: errors, warnings and notes.
        sensors: a summary of each sensor, in the order of the panel.
        components: parts of the network that hang together, whatever the directions; a lone sensor is one.
        times: how many rows there are.
        first: local time of the first row.
        last: local time of the last row.
        interval: the distance between two rows, in words.
        missing_share: share of all cells without a reading, 0 to 1; None if there are no cells.
    """

    findings: Findings
    sensors: tuple[SensorSummary, ...]
    components: int
    times: int
    first: str | None
    last: str | None
    interval: str
    missing_share: float | None
