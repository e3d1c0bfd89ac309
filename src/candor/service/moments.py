"""Times as clients write them."""

from datetime import UTC, datetime

from candor.core.errors import InputError
from candor.data.times import zone_from_name

_FIRST_YEAR, _LAST_YEAR = 1900, 2200


def parse_moment(text: str, zone: str) -> datetime:
    """Returns the moment that an ISO 8601 text names, in UTC.

    Without an offset it is read on the clock of the zone; where that clock showed it twice, the first time counts.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone_from_name(zone))
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{text[:60]!r} is not a time", hint="write it like 2024-03-01T06:00:00+01:00") from None
    if not _FIRST_YEAR <= moment.year < _LAST_YEAR:
        what = f"{text[:60]!r} is a time out of all proportion; expected are years from {_FIRST_YEAR} to {_LAST_YEAR}"
        raise InputError(what, hint="write it like 2024-03-01T06:00:00+01:00")
    return moment
