"""How to read a file: everything that it does not say about itself."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite

from candor.core.errors import InputError

SENTINELS = (-9999.0, -99999.0, -999999.0)


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file, with defaults that fit most.

    Args:
        missing: numbers that stand for "no reading", such as -9999 (METR-LA: 0).
        minimum: readings below it are impossible and count as missing; None allows all.
        unit: the unit of the readings, for tables and pictures.
        zone: the local zone. Stamps without a zone are read on its clock; None takes the one that all stamps carry,
            else UTC.
        wall_zone: the zone at whose midnights days begin that carry offsets, if `zone` is but its standard time; None
            means `zone`.
        interval: the distance of the time grid; None takes the most common one.
        start: the first moment on the local clock, for files that carry no times.
        time_column: the column that holds the times; None finds it.
        day_first: whether 03/04/2020 is the third of April; None decides by the file.
        variable: which variable of a NetCDF file to read; None takes the only one that fits.
    """

    missing: tuple[float, ...] = SENTINELS
    minimum: float | None = None
    unit: str = ""
    zone: str | None = None
    wall_zone: str | None = None
    interval: timedelta | None = None
    start: datetime | None = None
    time_column: str | None = None
    day_first: bool | None = None
    variable: str | None = None

    def __post_init__(self) -> None:
        # What is no number is missing in any case.
        object.__setattr__(self, "missing", tuple(number for number in self.missing if isfinite(number)))
        if self.minimum is not None and not isfinite(self.minimum):
            raise InputError(f"a minimum of {self.minimum} is none", hint="give a number, or leave it out")
        if self.interval is not None and self.interval <= timedelta(0):
            raise InputError(f"an interval of {self.interval} is none", hint="give a positive one, such as 15 minutes")
