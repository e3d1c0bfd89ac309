"""Fetches readings of some sites from a local server, until somebody kills it: ADDRESS CACHE SITE ..."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dataretrieval
from dataretrieval.waterdata import WaterdataConfiguration

from candor.data.times import TimeAxis
from candor.river.cache import ResponseCache
from candor.river.client import ServiceClient
from candor.river.readings import fetch_readings
from candor.river.retries import RetryPolicy


def main(address: str, cache: Path, sites: list[str]) -> None:
    axis = TimeAxis(datetime(2021, 5, 1, tzinfo=UTC), timedelta(hours=1), 24)
    with dataretrieval.configure(WaterdataConfiguration(base_url=address)):
        fetch_readings(ServiceClient(ResponseCache(cache), RetryPolicy(at_once=1)), sites, "00300", axis)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
