"""CANDOR as a forecaster: stages that each begin where the one before ended, or the published network alone.

account   the closed form: usual + own + arrivals + rest (`candor.account`)
shared    a small network for all sensors on what the account leaves (`candor.nets.additive`)
network   the paper's network (`candor.nets.candor`); alone it is the published model

The last word is a blend of the stages with simple rules, see `candor.forecasting.blend`.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import model_validator
from pydantic.dataclasses import dataclass
from safetensors.numpy import load_file, save_file

from candor.account.account import Account
from candor.account.fitting import Fitting
from candor.account.likeness import most_alike
from candor.account.settings import AccountSettings
from candor.core.files import atomic_file
from candor.core.progress import Report
from candor.data.panel import Panel, adjacency_of
from candor.data.preprocessing import Scaler
from candor.data.protocol import Origins, Split
from candor.data.times import calendar_of
from candor.forecasting.blend import blended, fit_blend
from candor.forecasting.forecaster import REFUSE_UNKNOWN, Forecaster, State, forecasters
from candor.forecasting.inference import infer
from candor.forecasting.network import WEIGHTS, NetworkForecaster, scaler_of
from candor.forecasting.own_data import ADDITIVE, StageName
from candor.forecasting.published import PublishedCandor
from candor.forecasting.simple import training_means
from candor.graph import row_normalised
from candor.nets.additive.account import AccountLayer
from candor.nets.additive.additive import AdditiveNetwork, AdditiveTrainable
from candor.nets.additive.recipe import SharedRecipe
from candor.nets.additive.shared import Relations, SharedNetwork
from candor.training.processes import in_main_process

RULES = ("last-value", "linear", "seasonal-naive")
_ACCOUNT, _RELATIONS, _BLEND, _RULES = "account/", "relations/", "blend", "rules/"
_WINDOWS_THAT_BLEND = 500
_WINDOWS_TO_MEASURE, _MARGIN = 32, 1.3
_FRAME = "frame.safetensors"


@forecasters.register("candor")
@dataclass(config=REFUSE_UNKNOWN)
class Candor(PublishedCandor):
    """Component-Aware Network Dynamics with Ordered Relations.

    Args:
        stages: which there are; None is the account and the shared network, or with a recipe the published network.
        account: what the account is made of; what is left open is chosen on the readings.
        shared: sizes and training of the shared network.
    """

    stages: tuple[StageName, ...] | None = None
    account: AccountSettings = AccountSettings()
    shared: SharedRecipe = SharedRecipe()

    @model_validator(mode="after")
    def _refuse_other_stages(self) -> Self:
        if self.stages is not None and self.stages not in (("network",), ("account",), ADDITIVE):
            raise ValueError("stages are network alone, account alone, or account and shared, in this order")
        return self

    def used_stages(self) -> tuple[StageName, ...]:
        """Return the stages, in their order."""
        if self.stages is not None:
            return self.stages
        state: State = self.__dict__.get("state_", {})
        is_published = self.recipe is not None or (state and f"{_ACCOUNT}own" not in state)
        return ("network",) if is_published else ADDITIVE

    @property
    def is_additive(self) -> bool:
        """Whether there are stages before the published network."""
        return self.used_stages() != ("network",)

    def used_recipe(self) -> Any:
        """Return how the last stage is trained."""
        return self.shared if self.is_additive else super().used_recipe()

    def quantities_read(self) -> tuple[str, ...]:
        """Return rain, if the network reads it."""
        return () if self.is_additive else super().quantities_read()

    @property
    def rows_needed(self) -> int:
        """The history, or what a simple rule in the blend repeats."""
        return max([self.history, *(rule.rows_needed for rule in self._rules().values())])

    @property
    def rows_read(self) -> int:
        """The history, or what a simple rule in the blend may look back."""
        return max([self.history, *(rule.rows_read for rule in self._rules().values())])

    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        if not self.is_additive:
            return super()._learn(panel, split, report)
        began = time.monotonic()
        state = self._frame_in(self._limits["folder"], panel, split, report)
        rules = {name: _fitted_rule(name, self.history, self.horizon, panel, split) for name in RULES}
        if "shared" in self.used_stages():
            if (budget := self._limits["budget_seconds"]) is not None:
                last = self._seconds_of_the_last_word(panel, split, state, rules)
                self._limits["budget_seconds"] = max(0.0, budget - (time.monotonic() - began) - last)
            state = self._train(panel, split, state, report)
        return state | self._learn_blend(panel, split, state, rules, report)

    def _seconds_of_the_last_word(
        self, panel: Panel, split: Split, state: State, rules: Mapping[str, Forecaster]
    ) -> float:
        """Return how long it will take to blend and to calibrate, by forecasting from a few windows now."""
        some = split.validation[:_WINDOWS_TO_MEASURE]
        if not len(some):
            return 0.0
        began = time.monotonic()
        first = {f"{WEIGHTS}{name}": tensor.numpy() for name, tensor in self._untrained(panel, state).items()}
        self.state_ = state | first
        self._remember(panel, split)
        self._members(panel, some, rules)
        took = (time.monotonic() - began) / len(some)
        return _MARGIN * took * (len(split.validation) + min(len(split.validation), _WINDOWS_THAT_BLEND))

    def _frame_in(self, folder: Path | None, panel: Panel, split: Split, report: Report) -> State:
        """Return what is learned before any network, from the folder of a training that goes on."""
        path = None if folder is None else folder / _FRAME
        if path is not None and path.is_file():
            return load_file(path)
        state = self._learn_frame(panel, split, report)
        if path is not None:
            in_main_process(lambda: _write(path, state))
        return state

    def _learn_frame(self, panel: Panel, split: Split, report: Report) -> State:
        state = super()._learn_frame(panel, split, report)
        if not self.is_additive:
            return state
        account, chosen = Fitting(panel, split, self.history, self.horizon, report).fit(self.account)
        state |= {f"{_ACCOUNT}{name}": array for name, array in account.to_state().items()}
        state["chosen"] = np.frombuffer(chosen.model_dump_json().encode(), np.uint8).copy()
        filled = account.deviations.filled(panel.values, calendar_of(panel.times))[: split.train_end]
        values = panel.values[: split.train_end].astype(np.float64)
        with np.errstate(invalid="ignore"):
            deviation = np.sqrt(np.nan_to_num(np.nanmean((values - training_means(panel, split)) ** 2, axis=0)))
        state["levels"] = np.stack([training_means(panel, split), np.where(deviation > 0, deviation, 1.0)], axis=1)
        return state | _relations(panel, filled, self.shared.sizes.alike)

    def _inputs(self, panel: Panel, state: State) -> NDArray[np.float32]:
        if not self.is_additive:
            return super()._inputs(panel, state)
        return _account(state).deviations.filled(panel.values, calendar_of(panel.times))

    def _trainable(self, state: State, scaler: Scaler, nodes: int) -> Any:
        if not self.is_additive:
            return super()._trainable(state, scaler, nodes)
        shared = None
        if "shared" in self.used_stages():
            row, column, weight = (
                torch.from_numpy(state[f"{_RELATIONS}{name}"]) for name in ("row", "column", "weight")
            )
            relations = Relations.of(row, column, weight, int(state[f"{_RELATIONS}kinds"][0]), nodes)
            scale = torch.from_numpy(state["levels"]).float()
            shared = SharedNetwork(self.shared.sizes, nodes, self.history, self.horizon, relations, scale)
        return AdditiveTrainable(AdditiveNetwork(AccountLayer(_account(state)), shared), self.horizon)

    def trained(self) -> Any:
        """Return the stages, or the published network, with the weights they learned."""
        return super().trained() if not self.is_additive else NetworkForecaster.trained(self)

    def _untrained(self, panel: Panel, state: State) -> dict[str, torch.Tensor]:
        """Return the first weights of the stages."""
        with torch.random.fork_rng(devices=[]):
            weights: dict[str, torch.Tensor] = self._trainable(
                state, scaler_of(state), len(panel.sensors)
            ).network.state_dict()
        return weights

    def _learn_blend(
        self, panel: Panel, split: Split, state: State, rules: Mapping[str, Forecaster], report: Report
    ) -> State:
        """Return the weights of stages and rules, and what the rules that have any have learned."""
        choosing, stages = split.validation, len(self.used_stages())
        places = np.linspace(0, len(choosing) - 1, min(len(choosing), _WINDOWS_THAT_BLEND)).round().astype(np.int64)
        report("blending", None)
        weights = np.zeros((self.horizon, stages + len(rules)))
        weights[:, stages - 1] = 1.0
        if len(origins := choosing[places]):
            self.state_ = state
            self._remember(panel, split)
            truth = panel.values[origins[:, None] + np.arange(self.horizon)]
            span = (int(choosing[-1]) - int(choosing[0]) + self.horizon) / self.horizon
            weights = fit_blend(self._members(panel, origins, rules), truth, span)
        is_used = [True] * stages + [bool(column.any()) for column in weights.T[stages:]]
        found: State = {_BLEND: weights[:, is_used]}
        for (name, rule), is_kept in zip(rules.items(), is_used[stages:], strict=True):
            found |= {f"{_RULES}{name}/{key}": array for key, array in rule.state_.items() if is_kept}
        return found

    def _members(self, panel: Panel, origins: Origins, rules: Mapping[str, Forecaster]) -> list[NDArray[np.float32]]:
        """Return the forecasts that are blended: those of the stages, then those of rules."""
        return [*self._stage_forecasts(panel, origins), *(rule.predict(panel, origins) for rule in rules.values())]

    def _rules(self) -> dict[str, Forecaster]:
        """Return the simple rules that have a weight, by name and in order."""
        state: State = self.__dict__.get("state_", {})
        found = {}
        for name in RULES:
            prefix = f"{_RULES}{name}/"
            own = {key.removeprefix(prefix): array for key, array in state.items() if key.startswith(prefix)}
            if own:
                rule = forecasters.get(name)(history=self.history, horizon=self.horizon)
                rule.state_, rule.trained_on_ = own, self.trained_on_
                found[name] = rule
        return found

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        if not self.is_additive:
            return super()._forecast(panel, origins)
        return blended(self.state_[_BLEND], self._members(panel, origins, self._rules()))

    def _stage_forecasts(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        """Return the forecast as it stands after each stage: stage x origin x horizon x sensor."""
        found = list(infer(self.trained(), self.windows(panel, origins), lambda net, batch: net.network(batch)))
        if not found:
            return np.empty((len(self.used_stages()), 0, self.horizon, len(panel.sensors)), np.float32)
        return torch.cat(found, dim=1).numpy()


def _account(state: State) -> Account:
    return Account.from_state(
        {name.removeprefix(_ACCOUNT): array for name, array in state.items() if name.startswith(_ACCOUNT)}
    )


def _relations(panel: Panel, filled: NDArray[np.float32], alike: int) -> State:
    """Return who is averaged for whom: senders, receivers and likes of each sensor, see `Relations`."""
    sensors = len(panel.sensors)
    kinds = []
    adjacency = adjacency_of(panel).tolil()
    adjacency.setdiag(0)
    if adjacency.count_nonzero():
        forward = adjacency.tocsr()
        kinds += [row_normalised(forward.T.tocsr()), row_normalised(forward)]
    found, _ = most_alike(filled, alike)
    if found.shape[1]:
        from scipy.sparse import csr_array

        rows = np.repeat(np.arange(sensors), found.shape[1])
        kinds.append(
            csr_array((np.full(rows.size, 1 / found.shape[1]), (rows, found.ravel())), shape=(sensors, sensors))
        )
    parts: dict[str, list[NDArray[Any]]] = {
        "row": [np.empty(0, np.int64)], "column": [np.empty(0, np.int64)], "weight": [np.empty(0, np.float32)],
    }  # fmt: skip
    for kind, matrix in enumerate(kinds):
        entries = matrix.tocoo()
        order = np.lexsort((entries.col, entries.row))
        parts["row"].append(kind * sensors + entries.row[order].astype(np.int64))
        parts["column"].append(entries.col[order].astype(np.int64))
        parts["weight"].append(entries.data[order].astype(np.float32))
    found_state = {f"{_RELATIONS}{name}": np.concatenate(part) for name, part in parts.items()}
    return found_state | {f"{_RELATIONS}kinds": np.array([len(kinds)])}


def _fitted_rule(name: str, history: int, horizon: int, panel: Panel, split: Split) -> Forecaster:
    """Return a simple rule fitted to the training part."""
    return forecasters.get(name)(history=history, horizon=horizon).fit(
        panel, replace(split, validation=split.validation[:0])
    )


def _write(path: Path, state: State) -> None:
    with atomic_file(path) as temporary:
        save_file({name: np.ascontiguousarray(array) for name, array in state.items()}, temporary)
