"""The account alone as a forecaster: seconds to fit, closed form, no network."""

import json
from datetime import datetime
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass

from candor.account.account import Account, Parts
from candor.account.fitting import Fitting
from candor.account.settings import AccountSettings
from candor.core.progress import Report
from candor.core.settings import parse_settings
from candor.data.panel import Panel
from candor.data.protocol import Origins, Split
from candor.data.times import calendar_of
from candor.forecasting.breakdown import Breakdown, break_down, own_parts
from candor.forecasting.explanation import find_origin, find_sensor
from candor.forecasting.forecaster import REFUSE_UNKNOWN, Forecaster, State, forecasters

_CHOSEN = "chosen"


@forecasters.register("account")
@dataclass(config=REFUSE_UNKNOWN)
class AccountForecaster(Forecaster):
    """What is usual, what a sensor's own past says, and what arrives along edges: parts that sum to the forecast.

    Args:
        account: what it is made of; what is left open is chosen on the readings.
    """

    account: AccountSettings = AccountSettings()

    name: ClassVar[str] = "account"

    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        account, chosen = Fitting(panel, split, self.history, self.horizon, report).fit(self.account)
        return account.to_state() | {_CHOSEN: np.frombuffer(chosen.model_dump_json().encode(), np.uint8).copy()}

    @property
    def is_additive(self) -> bool:
        """It is made of parts."""
        return True

    def chosen(self) -> AccountSettings:
        """Return the settings with everything that was left open."""
        self._check_fitted()
        return parse_settings(AccountSettings, json.loads(self.state_[_CHOSEN].tobytes()), _CHOSEN)

    def parts(self, panel: Panel, origins: Origins) -> Parts:
        """Return the parts that forecasts at origins are made of."""
        account = Account.from_state(self.state_)
        panel = panel.in_zone(self.trained_on_.panel.times.zone)
        calendar = calendar_of(panel.times.slice(0, panel.times.length + self.horizon))
        filled = account.deviations.filled(panel.values, calendar.take(slice(0, panel.times.length)))
        ahead = origins[:, None] + np.arange(self.horizon)
        usual = account.deviations.usual.at(calendar.take(ahead.ravel()))
        return account.parts(
            filled[origins[:, None] + np.arange(-self.history, 0)], usual.reshape(*ahead.shape, len(panel.sensors))
        )

    def break_down(self, panel: Panel, sensor: str, time: datetime | str | None = None) -> Breakdown:
        """Return what the forecast of one sensor is made of, in parts that sum to it, see `Candor.break_down`."""
        self._check_fitted()
        self._check_same_sensors(panel)
        panel = panel.in_zone(self.trained_on_.panel.times.zone)
        column, origin = find_sensor(panel, sensor), find_origin(panel, time, self.history)
        parts = tuple(own_parts(Account.from_state(self.state_), panel, column, origin, self.horizon))
        forecast = self.predict(panel, np.array([origin]))[0, :, column].astype(np.float64)
        return break_down(panel, column, origin, forecast, parts)

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        return self.parts(panel, origins).forecast()
