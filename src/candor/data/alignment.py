"""New readings made to fit a trained model, or refused with a hint.

known = KnownPanel.of(panel)                      # stored with the model: known.to_json(), KnownPanel.from_json(...)
aligned = align(readings, known, history=48)
aligned.panel                                     # the model's sensors in its order, on its grid, in its units
aligned.findings                                  # what was done on the way, and what looks wrong

What can be corrected without guessing is corrected and said; what would need a guess is refused. Nothing is filled in
here: a sensor that is not there is NaN throughout, and the model's own rule fills it.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import duration, duration_option, first_line, listed
from candor.data.checks.sensors import columns_of
from candor.data.checks.values import LEAST_RUN, series_of
from candor.data.findings import Findings, Level
from candor.data.gridding import Grid, lay_rows
from candor.data.panel import Covariate, Edges, Panel
from candor.data.panel_store import SIGNS_OF_DAMAGE, axes_header, header_axes
from candor.data.times import DAY, TimeAxis, zone_from_name
from candor.data.units import UNITS, plain_unit

# Outside the range of training by more than its whole width is no weather that training just missed.
WIDTHS_BEYOND = 1.0
# One late row is how networks work; with more than two, the forecast is for times that people take for past.
STALE_INTERVALS = 2
# An agency before a number, as in USGS-01646500, and zeros before it, which spreadsheets lose. Two agencies may give
# the same number to two sensors.
_SENSOR_ID = re.compile(r"(?:([^\W\d_]+)[-_:. ]+(?=\d))?(?:0+(?=\d))?(.*)", re.DOTALL)


@dataclass(frozen=True, eq=False)
class KnownPanel:
    """What a model remembers of the panel it was trained on: enough to tell whether other readings fit it.

    Args:
        panel: the panel without its rows; its start is the time of one row, all others lie whole intervals away.
        lowest, highest: smallest and largest training reading of each sensor in its unit, NaN if it had none.
    """

    panel: Panel
    lowest: tuple[float, ...]
    highest: tuple[float, ...]

    @staticmethod
    def of(panel: Panel, train_end: int | None = None, covariates: Collection[str] | None = None) -> "KnownPanel":
        """Return what a model needs to remember of the rows up to `train_end` and the `covariates` it was trained on.

        None stands for all.
        """
        names = panel.covariates if covariates is None else covariates
        known = replace(panel, covariates={name: panel.covariates[name] for name in names}, provenance={}).slice(0, 0)
        lowest, highest = (e.reduce(panel.values[:train_end], axis=0, initial=np.nan) for e in (np.fmin, np.fmax))
        return KnownPanel(known, tuple(lowest.tolist()), tuple(highest.tolist()))

    def to_json(self) -> dict[str, Any]:
        """Return the description as content of a JSON file; times and sensors as in the header of a panel folder."""
        lowest, highest = ([None if np.isnan(x) else x for x in part] for part in (self.lowest, self.highest))
        return {
            "name": self.panel.name,
            **axes_header(self.panel.times, self.panel.sensors),
            "edges": self.panel.edges.digest(),
            "covariates": {name: covariate.unit for name, covariate in self.panel.covariates.items()},
            "lowest": lowest,
            "highest": highest,
        }

    @staticmethod
    def from_json(content: Any, where: str = "") -> "KnownPanel":
        """Return the description that `to_json` made the content of; anything else is refused."""
        try:
            times, sensors = header_axes(content)
            edges = Edges(**content["edges"])
            panel = Panel.without_rows(times, sensors, edges, content["covariates"], content["name"])
            lowest, highest = (np.array(content[name], np.float64) for name in ("lowest", "highest"))
            if not lowest.shape == highest.shape == (len(sensors),):
                raise ValueError("every sensor needs a lowest and a highest reading")
        except SIGNS_OF_DAMAGE as error:
            what = f"this is not the description of a model's training data ({first_line(error)})"
            raise InputError(what, where=where, hint="train the model again") from None
        return KnownPanel(panel, tuple(lowest.tolist()), tuple(highest.tolist()))


@dataclass(frozen=True, eq=False)
class Aligned:
    """Readings that fit a model, and what there is to say about them.

    Args:
        panel: all rows up to the last reading, at least as many as the model's history, with the model's sensors,
            units, edges, zone and covariates; name and provenance are those of the readings.
        findings: notes on what was done, and warnings of what looks wrong; never errors, for those are raised.
    """

    panel: Panel
    findings: Findings


def align(
    readings: Panel,
    known: KnownPanel,
    history: int,
    *,
    now: datetime | None = None,
    horizon: int | None = None,
    least_share: float = 0.5,
    allow_short: bool = False,
) -> Aligned:
    """Return the readings as the model knows them; the next row after the last is the first to forecast.

    Readings from later than `now` are refused: either the zone is wrong, and with it all other times, or they were
    never measured. Up to an interval later may be a clock that is a little off: these are left out.

    Args:
        readings: recent readings; their edges and descriptions of sensors are not used.
        known: what the model remembers of its training.
        history: rows that the model reads.
        now: the present, with a zone; None asks neither for readings that are too old nor for ones to come.
        horizon: rows that will be forecast, for the warning of old readings.
        least_share: share of the model's sensors that must be there, 0 to 1; the others count as silent.
        allow_short: whether rows missing at the beginning are made up as silence.

    Raises:
        InputError: if the readings cannot be made to fit.
    """
    if history < 1 or not 0 <= least_share <= 1 or (now is not None and now.tzinfo is None):
        raise ValueError("history must be positive, least_share a share, and now must have a zone")
    findings = Findings()
    columns = _find_sensors(readings, known.panel, least_share, findings)
    panel = _take_sensors(readings, known.panel, columns, findings)
    panel = _lay_on_grid(panel, known.panel.times, findings)
    panel = _end_at_last_reading(panel, now, findings)
    panel = _begin_early_enough(panel, history, allow_short, findings)
    _report_sensors(panel, known, columns, history, findings)
    _report_age(panel.times, now, horizon, findings)
    return Aligned(panel, findings)


def _find_sensors(readings: Panel, known: Panel, least_share: float, findings: Findings) -> list[int]:
    """Return the column of each of the model's sensors, -1 for those that are not there."""
    wanted, given = known.sensor_ids, readings.sensor_ids
    exact = set(wanted) & set(given)
    alike, claims = _lookalikes(wanted, given), _lookalikes(given, wanted)
    spelled = {s: others for s in wanted if s not in exact and (others := [o for o in alike[s] if o not in exact])}
    renamed = {s: others[0] for s, others in spelled.items() if len(others) == 1 and claims[others[0]] == [s]}
    called = {sensor: sensor for sensor in exact} | renamed
    hints = [f"{s!r} may be {' or '.join(map(repr, spelled[s]))}" for s in spelled if s not in renamed]
    hint = "add what is missing, and call the sensors as the model does" + (f": {listed(hints)}" if hints else "")
    if not called or len(called) / len(wanted) < least_share:
        raise InputError(
            f"{len(called) or 'none'} of the model's {len(wanted)} sensors are in the readings, {least_share:.0%} are "
            f"needed; the model's are called {listed(map(repr, wanted))}, the readings' {listed(map(repr, given))}",
            where=readings.name,
            hint=hint,
        )
    pairs = [f"{other!r} is {sensor!r}" for sensor, other in renamed.items()]
    findings.about(pairs, "sensors are spelled unlike the model's: matched", "rename them if wrong", level=Level.NOTE)
    extra = sorted(set(given) - set(called.values()))
    findings.about(extra, "sensors are unknown to the model: left out", level=Level.NOTE)
    missing = [sensor for sensor in wanted if sensor not in called]
    findings.about(missing, "sensors of the model are absent: treated as silent", hint)
    place = {sensor: column for column, sensor in enumerate(given)}
    return [place[called[sensor]] if sensor in called else -1 for sensor in wanted]


def _lookalikes(ids: Sequence[str], others: Sequence[str]) -> dict[str, list[str]]:
    """Return for each id the others that differ at most in case, spaces around, zeros before, or a left-out agency."""
    parts = {sensor: _SENSOR_ID.findall(sensor.strip().casefold())[0] for sensor in (*ids, *others)}
    by_number = defaultdict(list)
    for other in others:
        by_number[parts[other][1]].append(other)
    alike = {}
    for sensor in ids:
        agency, number = parts[sensor]
        alike[sensor] = [other for other in by_number[number] if parts[other][0] in (agency, "") or not agency]
    return alike


def _take_sensors(readings: Panel, known: Panel, columns: list[int], findings: Findings) -> Panel:
    """Return the model's sensors and covariates in its order and units; what is not there is NaN."""
    if absent := [name for name in known.covariates if name not in readings.covariates]:
        what = f"the model also reads {listed(absent)}; the readings come with {listed(readings.covariates) or 'none'}"
        raise InputError(what, where=readings.name, hint="give a panel with these, or train a model without them")

    def take(values: NDArray[np.float32], units: list[str], wanted: list[str], what: str) -> NDArray[np.float32]:
        taken = np.pad(values, ((0, 0), (0, 1)), constant_values=np.nan)[:, columns]  # column -1 is the added one
        given = [unit if column < 0 else units[column] for unit, column in zip(wanted, columns, strict=True)]
        return _convert(taken, given, wanted, what, readings.name, findings)

    units, wanted = ([sensor.unit for sensor in panel.sensors] for panel in (readings, known))
    values = take(readings.values, units, wanted, "readings")
    if np.isnan(values).all():
        what = f"no sensor of the model has a reading; expected are some of {listed(known.sensor_ids)}"
        raise InputError(what, where=readings.name, hint="check which numbers --missing and --minimum take away")
    covariates = {}
    for name, covariate in known.covariates.items():
        given = readings.covariates[name]
        units, wanted = [given.unit] * len(readings.sensors), [covariate.unit] * len(columns)
        covariates[name] = Covariate(take(given.values, units, wanted, name), covariate.unit)
    return replace(readings, values=values, sensors=known.sensors, edges=known.edges, covariates=covariates)


def _convert(
    values: NDArray[np.float32], units: list[str], wanted: list[str], what: str, where: str, findings: Findings
) -> NDArray[np.float32]:
    """Return the values, time x sensor, each sensor in the unit that is wanted of it."""
    values = values.copy()
    pairs = list(zip(units, wanted, strict=True))
    for unit, other in dict.fromkeys(pairs):
        columns = [column for column, pair in enumerate(pairs) if pair == (unit, other)]
        known, known_other = plain_unit(unit), plain_unit(other)
        if known == known_other:
            continue
        if not known or not known_other:
            stated = f"are in {unit}" if known else "state no unit"
            taken = f"taken to be in the model's, {other}" if known_other else "the model's is unknown"
            findings.note(f"{what} {stated}: {taken}", where, len(columns), "name the unit with --unit")
            continue
        kind = next((kind for kind, names in UNITS.items() if {known, known_other} <= names.keys()), None)
        if kind is None:
            what = f"{what} are in {unit}, the model expects {other}, and there is no known way from one to the other"
            raise InputError(what, where=where, hint=f"give them in {other}; if they are, say --unit {other}")
        (factor, offset), (divisor, subtracted) = UNITS[kind][known], UNITS[kind][known_other]
        with np.errstate(over="ignore"):
            values[:, columns] = (values[:, columns].astype(np.float64) * factor + offset - subtracted) / divisor
        findings.note(f"{what} were converted as {kind}, from {unit} to {other}", where, len(columns))
    if np.isinf(values).any():
        found = f"{what} hold numbers too large to be converted, of 1e35 and more; expected are measurements"
        raise InputError(found, where=where, hint="if a number stands for missing, name it with --missing")
    return values


def _lay_on_grid(panel: Panel, known: TimeAxis, findings: Findings) -> Panel:
    """Return the panel on the model's time grid and in its zone."""
    times, own, wanted = panel.times, panel.times.interval, known.interval
    if wanted % own:
        raise InputError(
            f"rows of the readings are {duration(own)} apart, those of the model {duration(wanted)}; expected is the "
            "same interval, or a finer one that divides it",
            where=panel.name,
            hint=f"give readings every {duration(wanted)}; if they are, say --interval {duration_option(wanted)}",
        )
    beside = (times.start - known.start) % own
    if beside and own % DAY == timedelta(0):
        zone = "the --zone whose clock they follow" if times.zone == known.zone else f"--zone {known.zone}"
        raise InputError(
            f"days of the readings begin at {times.start:%H:%M} UTC, {duration(beside)} after the model's, which are "
            f"expected to begin at {known.start:%H:%M} UTC",
            where=panel.name,
            hint=f"read the dates with {zone}; means over other days must be taken anew",
        )
    if times.zone != known.zone:
        hint = f"if they were written down in {known.zone}, say --zone {known.zone}"
        findings.note(f"times of {times.zone} were put on the model's clock, {known.zone}", panel.name, hint=hint)
    if own == wanted and not beside:
        return replace(panel, times=replace(times, zone=known.zone))
    shift = f", {duration(beside)} late," if beside else ""
    is_day_from_moment = wanted % DAY == timedelta(0) and own % DAY != timedelta(0)
    (findings.warning if is_day_from_moment else findings.note)(
        f"readings every {duration(own)}{shift} were laid on the model's grid of {duration(wanted)}: the nearest to a "
        "moment counts, none are averaged", panel.name, hint="if the model was trained on means, give means",
    )  # fmt: skip
    grid, moments = Grid(known), panel.times.utc.astype(np.int64)
    first, stop = grid.row(int(moments[0])), grid.row(int(moments[-1])) + 1
    return panel.mapped(lambda values: lay_rows(grid, moments, values, first, stop), times=known.slice(first, stop))


def _end_at_last_reading(panel: Panel, now: datetime | None, findings: Findings) -> Panel:
    """Return the rows up to the last one with a reading, none of them later than `now`."""
    times, rows = panel.times, np.flatnonzero(panel.mask.any(axis=1))
    past = rows if now is None else rows[rows < times.index_after(now)]
    if now is not None and (len(past) == 0 or times.start + int(rows[-1]) * times.interval > now + times.interval):
        raise InputError(
            f"readings reach until {times.short(int(rows[-1]))}; expected are none later than now, "
            f"{now.astimezone(zone_from_name(times.zone)):%Y-%m-%d %H:%M}",
            where=panel.name,
            hint="give the true --zone of the file, or remove the rows that were not measured",
        )
    stop, to_come = int(past[-1]) + 1, len(rows) - len(past)
    findings.note("rows are for a moment still to come: left out", panel.name, to_come, "check the clocks")
    what = f"rows at the end are empty: left out, the forecast begins at {times.short(stop)}"
    findings.note(what, panel.name, times.length - stop - to_come)
    return panel.slice(0, stop)


def _begin_early_enough(panel: Panel, history: int, allow_short: bool, findings: Findings) -> Panel:
    """Return the panel with enough rows for the model's history."""
    length, missing = panel.times.length, history - panel.times.length
    if missing <= 0:
        return panel
    begin = panel.times.short(-missing)
    if not allow_short:
        what = f"there are {length} rows until the last reading; the model needs {history}"
        hint = f"give readings from {begin} on, or allow a short history: what is missing counts as silence"
        raise InputError(what, where=panel.name, hint=hint)
    findings.note(f"rows before the first were added without readings, from {begin} on", panel.name, missing)
    times, added = panel.times.slice(-missing, length), ((missing, 0), (0, 0))
    return panel.mapped(lambda values: np.pad(values, added, constant_values=np.nan), times=times)


def _report_sensors(panel: Panel, known: KnownPanel, columns: list[int], history: int, findings: Findings) -> None:
    """Add warnings of sensors that are there, but silent, stuck, or far from what training saw."""
    silent, stuck, far = [], [], []
    ranges = zip(known.lowest, known.highest, strict=True)
    for sensor, column, values, (low, high) in zip(panel.sensors, columns, columns_of(panel), ranges, strict=True):
        name = f"{sensor.id} ({sensor.name})" if sensor.name else sensor.id
        window, readings = series_of(values[-history:]).values, series_of(values).values[-LEAST_RUN - 1 :]
        if len(window) == 0:
            silent.extend([name] if column >= 0 else [])
            continue
        beyond = np.maximum(low - window, window - high)
        if beyond.max() > WIDTHS_BEYOND * ((high - low) or abs(high)):
            far.append(f"{name} reads {window[beyond.argmax()]:.6g}, training saw {low:.6g} to {high:.6g}")
        # At an end of its range a sensor may rest: dry rain gauges, detectors capped at 70 mph.
        if len(readings) > LEAST_RUN and np.ptp(readings) == 0 and low < readings[0] < high:
            stuck.append(f"{name} at {readings[0]:.6g}")
    findings.about(silent, f"sensors have no reading in the last {history} rows", "expect poor forecasts there")
    what = f"sensors repeat one number for {LEAST_RUN + 1} readings or more"
    findings.about(stuck, what, "empty them if the sensors stick")
    what, hint = "readings lie far outside of what training saw", "check the sensors, and the unit of the readings"
    findings.about(far, what, hint)


def _report_age(times: TimeAxis, now: datetime | None, horizon: int | None, findings: Findings) -> None:
    """Add a warning if the last reading is old."""
    age = timedelta(0) if now is None else now - (times.end - times.interval)
    if age > STALE_INTERVALS * times.interval:
        last, begin = times.short(times.length - 1), times.short(times.length)
        end = f"to {times.short(times.length + horizon - 1)}" if horizon else "on"
        what = f"the last reading is {duration(age)} old: the forecast is for {begin} {end}"
        findings.warning(what, last, hint="give newer readings")
