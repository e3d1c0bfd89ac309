"""The rules of a comparison: what is read, what is forecast, how the record is cut, which targets count.

A forecast is named by its origin: the row of its first target. Origin o reads the rows o - history .. o - 1 and
forecasts the rows o .. o + horizon - 1.
"""

import itertools
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, PositiveInt, model_validator

from candor.core.errors import InputError
from candor.core.settings import Settings
from candor.data.panel import Panel
from candor.data.preprocessing import Fill, fill
from candor.data.times import DAY

Origins = NDArray[np.int64]
SplitKind = Literal["windows", "time"]


@dataclass(frozen=True, eq=False)
class Split:
    """The origins of the three parts, each in order of time, and the row at which the training period ends."""

    train: Origins
    validation: Origins
    test: Origins
    train_end: int


def split_origins(
    length: int, history: int, horizon: int, kind: SplitKind, shares: tuple[float, float, float]
) -> Split:
    """Return the split of a record of `length` rows.

    windows
        All windows are listed and the list is cut: training and test get their rounded shares, validation the rest.
        Targets next to a cut are shared by both sides (horizon - 1 rows): the standard protocol of the traffic sets.
    time
        The rows are cut: training and test get their shares rounded down, validation the rest. Targets lie wholly in
        their period, so no target row is shared; histories may reach back into the period before.
    """
    if not (abs(sum(shares) - 1.0) <= 1e-6 and min(shares) >= 0):  # so that NaN is refused as well
        raise InputError(
            f"the shares of a split must be positive and sum to 1, not {shares}",
            hint="give those of training, validation and test, e.g. shares=[0.6,0.2,0.2]",
        )
    if kind == "windows":
        origins = np.arange(history, length - horizon + 1, dtype=np.int64)
        train, test = round(len(origins) * shares[0]), round(len(origins) * shares[2])
        cut = max(train, len(origins) - test)  # without a validation part both may have been rounded up
        parts, train_end = [origins[:train], origins[train:cut], origins[cut:]], history + train + horizon - 1
    else:
        # The small addition keeps 0.29 x 100 from being 28.
        train_end, test = int(length * shares[0] + 1e-9), int(length * shares[2] + 1e-9)
        cuts = itertools.pairwise([0, train_end, length - test, length])
        parts = [np.arange(max(first, history), last - horizon + 1, dtype=np.int64) for first, last in cuts]
    for name, part, share in zip(("train", "validation", "test"), parts, shares, strict=True):
        if share > 0 and len(part) == 0:
            raise InputError(
                f"the record has {length} rows: too few for a {name} part with a history of {history} and a "
                f"horizon of {horizon} steps",
                hint="give a longer record, or a shorter history or horizon",
            )
    return Split(parts[0], parts[1], parts[2], train_end)


HOUR = timedelta(hours=1)
# YAML makes dates of texts that look like one.
Moment = Annotated[str | None, BeforeValidator(lambda moment: str(moment) if isinstance(moment, date) else moment)]


class Protocol(Settings):
    """Everything besides the data and the model that a score depends on."""

    history: PositiveInt
    """Steps a model reads before each forecast."""
    horizon: PositiveInt
    """Steps it forecasts."""
    split: SplitKind = "time"
    """Whether windows (traffic benchmarks) or rows (water, own data) are cut into the three parts."""
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2)
    """Shares of training, validation and test."""
    first: Moment = None
    """First date of the record that is used, on the local clock."""
    last: Moment = None
    """Last date of the record that is used."""
    fill: Fill = "last"
    """How gaps in model inputs are filled."""
    targets: Literal["observed", "filled"] = "observed"
    """Which targets count: those measured, or all of the filled series (the paper's basins)."""
    steps: tuple[PositiveInt, ...] = ()
    """Forecast steps with a row of their own in the table; empty means four spread over the horizon."""
    is_river: bool = False
    """Whether the timing of peaks is scored."""

    @model_validator(mode="after")
    def _refuse_invented_targets(self) -> "Protocol":
        if (self.targets == "filled") != (self.fill == "forward-backward"):
            raise ValueError(
                "targets=filled and fill=forward-backward go together, as in the paper's basins: no other rule knows "
                "what was before a first reading, and where measured targets count it would read the first of them"
            )
        return self

    def reported_steps(self) -> tuple[int, ...]:
        """Return the forecast steps (1 is the first) that get a row of their own."""
        if wanted := tuple(step for step in self.steps if step <= self.horizon):
            return wanted
        quarters = (1, self.horizon // 4, self.horizon // 2, self.horizon)
        return tuple(sorted({step for step in quarters if step >= 1}))


@dataclass(frozen=True, eq=False)
class Task:
    """A panel cut by a protocol: what every model is given, and evaluated on."""

    panel: Panel
    split: Split
    protocol: Protocol


def make_task(panel: Panel, protocol: Protocol) -> Task:
    """Return the task that the protocol makes of a panel."""
    if protocol.first is not None or protocol.last is not None:
        panel = panel.between(protocol.first, protocol.last)
    if protocol.targets == "filled":
        panel = replace(panel, values=fill(panel.values, protocol.fill))
    split = split_origins(panel.times.length, protocol.history, protocol.horizon, protocol.split, protocol.shares)
    return Task(panel, split, protocol)


def suggest_protocol(panel: Panel) -> Protocol:
    """Return a protocol for data without a preset, by the interval of the readings.

    Minutes: an hour ahead from an hour, as the traffic benchmarks do. Hours: a day ahead from two. Days: two weeks
    ahead from four. The record is cut by time; gaps are filled without looking ahead and never scored.
    """
    interval = panel.times.interval
    if interval >= DAY:
        return Protocol(history=28, horizon=14)
    if interval >= HOUR / 2:
        return Protocol(history=2 * DAY // interval, horizon=DAY // interval)
    steps = max(HOUR // interval, 4)
    return Protocol(history=steps, horizon=steps)
