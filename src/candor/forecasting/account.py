"""The account alone as a forecaster: seconds to fit, closed form, no network."""

import json
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

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        return self.parts(panel, origins).forecast()
