"""Three sites with a day of readings each, for tests of how services are asked and what is kept of their answers."""

from datetime import UTC, datetime, timedelta

from usgs_answers import Observation

from candor.data.times import TimeAxis
from candor.river.client import ServiceClient
from candor.river.readings import as_frame, fetch_readings

HOUR = timedelta(hours=1)
AXIS = TimeAxis(datetime(2021, 5, 1, tzinfo=UTC), HOUR, 24)
SITES = ["USGS-1", "USGS-2", "USGS-3"]
ALL = dict.fromkeys(SITES, 24)


def observations() -> list[Observation]:
    """Returns the readings of all sites."""
    return [
        Observation(site, "00300", f"sensor of {site}", AXIS.start + hour * HOUR, f"{hour}.5")
        for site in SITES
        for hour in range(24)
    ]


def hours_of(client: ServiceClient) -> dict[str, int]:
    """Returns how many readings of each site arrive."""
    return {site: len(as_frame(responses)) for site, responses in fetch_readings(client, SITES, "00300", AXIS).items()}
