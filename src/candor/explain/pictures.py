"""What the figures of an explanation show, as plain data: arrays, local times and names.

`candor.render.figures.gallery` has the drawing function of each kind of picture.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from candor.core.arrays import Booleans, Floats, Integers


class Spread(NamedTuple):
    """Mean, and the 10th and 90th percentile."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Floats) -> "Spread":
        """Return the spread of all values of an array."""
        low, high = np.quantile(values, (0.1, 0.9))
        return cls(float(values.mean(dtype=np.float64)), float(low), float(high))


class AnyPicture:
    """What one figure shows."""


@dataclass(frozen=True, eq=False)
class MapPicture(AnyPicture):
    """What a figure shows of sensors on a map."""

    sensors: Sequence[str]  # ids
    names: Sequence[str]
    places: Floats | None  # longitude and latitude in degrees, sensor x 2; None where some are unknown


@dataclass(frozen=True, eq=False)
class ForecastPicture(AnyPicture):
    """One forecast of one sensor, in its unit, with what was read before and what happened."""

    sensor: str  # what people call it
    unit: str
    past_times: Sequence[datetime]
    past: Floats  # readings before the forecast, NaN where there is none
    times: Sequence[datetime]  # of the forecast steps
    forecast: Floats
    lower: Floats | None = None  # ends of the intervals by step; None if there are none
    upper: Floats | None = None
    coverage: float = 0.9  # probability that an interval contains the reading
    happened: Floats | None = None  # readings of the forecast steps, NaN where there is none; None if not known yet


@dataclass(frozen=True, eq=False)
class BreakdownPicture(AnyPicture):
    """What one forecast of one sensor is made of, as changes from its last reading, in its unit."""

    sensor: str
    unit: str
    times: Sequence[datetime]  # of the forecast steps
    names: Sequence[str]  # of the parts
    kinds: Sequence[str]  # of the parts, see `candor.forecasting.breakdown`
    changes: Floats  # part x step
    forecast: Floats
    last: float  # the reading that changes are counted from


@dataclass(frozen=True, eq=False)
class ComponentPicture(AnyPicture):
    """What the history of one sensor was split into, by patch."""

    sensor: str
    starts: Sequence[datetime]  # of the first reading of each patch
    ends: Sequence[datetime]  # of the last one
    strengths: Mapping[str, Floats]  # by component: how much of it there was, in the network's own measure
    gates: Mapping[str, Floats]  # by gate: 0 shut, 1 open


@dataclass(frozen=True, eq=False)
class ReconstructionPicture(AnyPicture):
    """Histories of one sensor, one after the other, and what its components rebuild of them, in its unit."""

    sensor: str
    unit: str
    times: Sequence[datetime]
    breaks: Sequence[datetime]  # times at which a new history begins
    readings: Floats  # NaN where there is none
    current: Floats  # rebuilt against the background of the same patch
    following: Floats  # rebuilt against that of the next patch
    parts: Mapping[str, Floats]  # what accumulation, release and shock add
    note: str = ""  # how large the errors are


@dataclass(frozen=True, eq=False)
class Senders:
    """What came along the edges of one direction, the largest sender first."""

    names: Sequence[str]
    shares: Floats  # sender x position: parts of all that arrived this way; they sum to one over all senders


@dataclass(frozen=True, eq=False)
class ArrivalPicture(AnyPicture):
    """What arrived at one sensor along edges."""

    sensor: str
    patches: Sequence[str]  # the patches that positions of the window stand for, in words, oldest first
    directions: Mapping[str, Senders]  # forward and reverse, as far as anything came along them
    most: int = 6  # senders that are drawn of each direction


@dataclass(frozen=True, eq=False)
class PeerPicture(AnyPicture):
    """Sensors that the functional branch relates to one sensor, the heaviest first."""

    sensor: str
    names: Sequence[str]
    weights: Floats  # they sum to one
    resemblance: Floats  # of their backgrounds to that of the sensor, -1 to 1
    is_beyond: Sequence[bool]  # whether no walk of up to `orders` edges joins the peer and the sensor
    orders: int
    most: int = 12  # peers that are drawn


@dataclass(frozen=True, eq=False)
class BranchPicture(AnyPicture):
    """What each branch alone would have forecast for one sensor, and how much it counted, by forecast step."""

    sensor: str
    unit: str
    times: Sequence[datetime]  # at least two
    forecast: Floats  # of all branches together
    alone: Mapping[str, Floats]
    weights: Mapping[str, Floats]  # mean over the target patches that cover the step
    happened: Floats  # NaN where not known


@dataclass(frozen=True, eq=False)
class WeightGroup:
    """Fusion weights of one hour, month or step: its number, what it is called, and the spread by branch."""

    value: int
    label: str
    weights: Mapping[str, Spread]


FUSION_CLOCKS = ("hour of day", "month", "weekday")
"""What fusion weights are drawn by: the first of these that there is."""


@dataclass(frozen=True, eq=False)
class FusionPicture(AnyPicture):
    """Fusion weights altogether, and by hour of day, weekday, month and step ahead."""

    overall: Mapping[str, Spread]  # by branch
    groups: Mapping[str, Sequence[WeightGroup]]
    note: str = ""  # what the weights are over


@dataclass(frozen=True, eq=False)
class WeightedEdges:
    """Edges of one direction: from a sender to a receiver (positions of sensors), with mean weights 0 to 1."""

    sender: Integers
    receiver: Integers
    weight: Floats


@dataclass(frozen=True, eq=False)
class EdgePicture(MapPicture):
    """The learned weights of edges on the map."""

    edges: Mapping[str, WeightedEdges]  # forward and reverse
    note: str = ""


@dataclass(frozen=True, eq=False)
class OperatorWeights:
    """Weights of the edges of one direction, position x edge if not said otherwise; positions oldest first."""

    sender: Integers  # by edge
    receiver: Integers  # by edge
    has_choice: Booleans  # whether its receiver hears from another one as well, by edge
    support: Floats  # by the given edges alone
    with_shared: Floats  # with what was learned for all windows
    mean: Floats  # with what depends on the window too: mean over windows, and what 10 % and 90 % of them are below
    low: Floats
    high: Floats
    shared_scores: Floats | None = None  # learned for all windows; None if nothing is
    sample_mean: Floats | None = None  # of the scores that depend on the window, over windows, by edge
    sample_deviation: Floats | None = None


@dataclass(frozen=True, eq=False)
class OperatorPicture(AnyPicture):
    """Weights of edges as given, as learned for all windows, and as windows vary, by direction."""

    sensors: Sequence[str]  # ids
    directions: Mapping[str, OperatorWeights]
    windows: int


@dataclass(frozen=True, eq=False)
class RelationPicture(MapPicture):
    """Functional relations beyond the topology, the heaviest first."""

    edges: tuple[Integers, Integers]  # sources and targets of the physical edges
    receiver: Integers  # position of the sensor that hears, by relation
    peer: Integers  # position of the sensor it hears from
    weight: Floats  # share of what it hears from all peers, 0 to 1
    resemblance: Floats  # of the backgrounds of both, -1 to 1
    distance: Floats | None = None  # straight, in km; None where places are unknown
    note: str = ""


@dataclass(frozen=True, eq=False)
class EmbeddingPicture(AnyPicture):
    """States of the components in the plane in which they spread most, and how far apart components are."""

    points: Mapping[str, Floats]  # by component, state x 2
    shares: tuple[float, float]  # of the variance, along the two axes
    before: Mapping[str, float]  # separation by component, and under `all` of all of them, before training: -1 to 1
    after: Mapping[str, float]
    note: str = ""  # what the states are


@dataclass(frozen=True, eq=False)
class PropagationPicture(AnyPicture):
    """How residuals become contributions: one window patch by patch, and all windows by lag."""

    sensors: Sequence[str]  # ids
    starts: Sequence[datetime]  # of the history patches, and after them of the first predicted one
    residual: Floats  # of one window, sensor x patch: how unusual it is, 1 is as unusual as residuals are
    contribution: Floats  # the same of what arrives, by the patch it is made at
    lags: Integers  # in patches before the one that is predicted
    likeness: Floats  # of what came in and the contribution by lag, 0 to 1, NaN where unknown
    own: Floats  # influence of the sensor's own residuals by lag 1, 2, ...
    others: Floats  # influence of all other sensors' residuals by lag
    windows: int  # that the last four are over


@dataclass(frozen=True, eq=False)
class RolePicture(AnyPicture):
    """How components align with states of the physical branch, by what is compared and then by kind.

    Kinds: states before training (before), after it (after), after it with another window's states (after_apart), and
    deviations from the usual (deviations_before, deviations_after).
    """

    alignments: Mapping[str, Mapping[str, Spread]]  # cosines, -1 to 1
    windows: int


@dataclass(frozen=True)
class Epoch:
    """One pass over the training windows."""

    number: int  # 0 is the first
    train_error: float  # mean absolute error in training, over the steps that were supervised
    validation_error: float  # over all steps of the validation windows; NaN where nothing was observed
    steps: int  # forecast steps that were supervised


@dataclass(frozen=True, eq=False)
class TrainingPicture(AnyPicture):
    """The errors by epoch, in the unit."""

    epochs: Sequence[Epoch]
    unit: str

    @property
    def kept(self) -> int:
        """The place of the epoch whose weights were kept: the best, or the latest where nothing was validated."""
        known = [place for place, epoch in enumerate(self.epochs) if not math.isnan(epoch.validation_error)]
        return min(known, key=lambda place: self.epochs[place].validation_error) if known else len(self.epochs) - 1


@dataclass(frozen=True, eq=False)
class RiverMapPicture(MapPicture):
    """A directed network: where sensors are, which way the water goes, and what they are called."""

    name: str  # of the network
    plan: Floats  # points to draw where places are unknown: water from left to right, sensor x 2
    source: Integers  # of the edges
    target: Integers
    is_direct: Booleans  # edges to the next sensor, which are drawn; the others pass over sensors
    has_cycle: bool  # then there is no next sensor, and all edges are drawn
    distance: Floats | None = None  # of the edges
    distance_unit: str = ""
