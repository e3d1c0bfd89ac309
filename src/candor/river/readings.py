"""What the sensors of a site measured, and which readings count.

Readings that are no numbers, not finite, stand for "no reading" (sentinels) or are negative count as missing. Nothing
else is judged: how the service qualifies a reading (ice, estimated, provisional) is counted for the report only.
"""

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.data.readers.options import SENTINELS
from candor.data.times import TimeAxis
from candor.river.cache import Request, Response
from candor.river.client import Fetch, ServiceClient, watched_library

MOST_DAYS = 1100  # of one request; the service refuses longer ones
DAYS_AT_A_TIME = 366  # less than that: an answer that fails on its last page is fetched again from the first
REVISED_WITHIN = timedelta(days=3)
"""Readings younger than this when they were asked for are asked for again: the service revises and completes them."""
PAGE = 10_000  # readings; the most the service sends at once
USGS_SENTINELS = (*SENTINELS, -123456.0)  # the last one: no rating for this stage
_PROPERTIES = ("time_series_id", "time", "value", "unit_of_measure", "approval_status", "qualifier")


@dataclass(frozen=True)
class SensorReadings:
    """The valid readings of one sensor, in order of time (UTC, strictly increasing), and what was left out."""

    times: NDArray[np.datetime64] = field(default_factory=lambda: np.empty(0, "datetime64[us]"))
    values: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # in `unit`, finite
    unit: str = ""  # as the service writes it
    left_out: Mapping[str, int] = field(default_factory=dict)  # how many, by cause
    approvals: Mapping[str, int] = field(default_factory=dict)  # how many of the valid readings, by approval status
    qualifiers: Mapping[str, int] = field(default_factory=dict)  # how many of all readings, by qualifier


def fetch_readings(
    client: ServiceClient, sites: Sequence[str], parameter: str, axis: TimeAxis
) -> dict[str, list[Response]]:
    """Return for each site what all its sensors sent for the hours of the axis, in as many answers as it took.

    A span is asked for again where its end was young when it was fetched: some of it may not have been there yet. Once
    a day is enough, so that a job that was killed goes on where it was.
    """
    half = axis.interval / 2
    spans = split_period(axis.start - half, axis.end - half)
    asked = [(site, *readings_request(site, parameter, *span)) for site in sites for span in spans]
    a_day_ago = datetime.now(UTC) - timedelta(days=1)
    fresh = [min(end + REVISED_WITHIN, a_day_ago) for _ in sites for _, end in spans]
    responses = client.get_all([(request, fetch) for _, request, fetch in asked], "fetching readings", fresh)
    by_site: dict[str, list[Response]] = {site: [] for site in sites}
    for (site, _, _), response in zip(asked, responses, strict=True):
        by_site[site].append(response)
    return by_site


def as_frame(responses: Sequence[Response]) -> pd.DataFrame:
    """Return a row of texts for every reading: its sensor, time, value, unit, approval status and qualifiers."""
    return pd.concat([pd.read_parquet(io.BytesIO(response.content)) for response in responses], ignore_index=True)


def split_period(first: datetime, last: datetime, days: int = DAYS_AT_A_TIME) -> list[tuple[datetime, datetime]]:
    """Return consecutive spans of at most `days` days that cover the time from `first` to `last`."""
    if not 0 < days <= MOST_DAYS:
        raise ValueError(f"a request may span 1 to {MOST_DAYS} days, not {days}")
    cuts = [first]
    while cuts[-1] < last:
        cuts.append(min(cuts[-1] + timedelta(days=days), last))
    return list(pairwise(cuts))


def readings_request(site: str, parameter: str, first: datetime, last: datetime) -> tuple[Request, Fetch]:
    """Return the request for what all sensors of a site read from `first` to `last` (UTC), and how to send it."""
    arguments: dict[str, Any] = {
        "monitoring_location_id": site,
        "parameter_code": parameter,
        "time": f"{first:%Y-%m-%dT%H:%M:%SZ}/{last:%Y-%m-%dT%H:%M:%SZ}",
    }

    def fetch() -> tuple[bytes, str, *tuple[str, ...]]:
        from dataretrieval import waterdata

        with watched_library() as pages:
            frame, metadata = waterdata.get_continuous(
                **arguments, properties=_PROPERTIES, limit=PAGE, convert_type=False, skip_geometry=True
            )
        texts = frame.reindex(columns=list(_PROPERTIES)).map(_as_text).astype("string")
        buffer = io.BytesIO()
        texts.to_parquet(buffer, index=False)
        return buffer.getvalue(), metadata.url, *pages[1:]

    return Request("waterdata", "get_continuous", arguments | {"properties": list(_PROPERTIES)}), fetch


def _as_text(cell: object) -> str | None:
    """Return what the service wrote as one text: several qualifiers come as a list."""
    if isinstance(cell, list | tuple):
        return ",".join(str(part) for part in cell)
    return None if cell is None or cell is pd.NA or cell != cell else str(cell)


def valid_readings(frame: pd.DataFrame, keep_negative: bool) -> dict[str, SensorReadings]:
    """Return the valid readings of every sensor that occurs in what the service sent, by the sensor's id."""
    by_sensor = frame.groupby(frame["time_series_id"].fillna("not named"), sort=True)
    return {str(sensor): _valid(rows, keep_negative) for sensor, rows in by_sensor}


def times_of(rows: pd.DataFrame) -> "pd.Series[pd.Timestamp]":
    """Return when rows were read (UTC), NaT where the service wrote no time that can be read."""
    return pd.to_datetime(rows["time"], utc=True, errors="coerce", format="ISO8601")


def _valid(rows: pd.DataFrame, keep_negative: bool) -> SensorReadings:
    times = times_of(rows)
    numbers = pd.to_numeric(rows["value"], errors="coerce").to_numpy(np.float64, na_value=np.nan)
    with np.errstate(over="ignore"):
        is_infinite = np.isinf(numbers.astype(np.float32))  # panels hold single precision
    causes = {
        "no time": times.isna().to_numpy(),
        "empty": (rows["value"].isna() | (rows["value"].str.strip() == "")).to_numpy(bool),
        "not a number": np.isnan(numbers),
        "infinite": is_infinite,
        "sentinel": np.isin(numbers, USGS_SENTINELS),
        "negative": (numbers < 0) & (not keep_negative),
    }
    is_valid, left_out = np.ones(len(rows), bool), {}
    for cause, is_hit in causes.items():
        left_out[cause] = int((is_valid & is_hit).sum())
        is_valid &= ~is_hit
    kept = rows.assign(moment=times.dt.tz_localize(None), number=numbers)[is_valid].sort_values("moment", kind="stable")
    is_repeated = kept["moment"].duplicated()  # requests meet at an instant that belongs to both
    left_out["repeated"] = int(is_repeated.sum())
    kept = kept[~is_repeated]
    return SensorReadings(
        times=kept["moment"].to_numpy("datetime64[us]"),
        values=kept["number"].to_numpy(np.float64),
        unit=", ".join(sorted(kept["unit_of_measure"].dropna().unique())),
        left_out=left_out,
        approvals=_counts(kept["approval_status"]),
        qualifiers=_counts(rows["qualifier"].dropna().str.split(",").explode()),
    )


def _counts(column: "pd.Series[str]") -> dict[str, int]:
    return {str(word): int(count) for word, count in sorted(Counter(column.dropna()).items())}
