"""CANDOR as a forecaster: stages that each begin where the one before ended, or the published network alone.

account   the closed form: usual + own + arrivals + rest (`candor.account`)
shared    small networks for all sensors on what the account leaves (`candor.nets.additive`)
network   the paper's network (`candor.nets.candor`), which is the published model alone

The last word is a blend of the stages with simple rules, see `candor.forecasting.blend`.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
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
from candor.account.settings import AccountSettings
from candor.core.errors import InputError
from candor.core.files import atomic_file, read_json, write_json
from candor.core.progress import Report
from candor.core.settings import parse_settings
from candor.data.panel import Panel
from candor.data.preprocessing import Scaler
from candor.data.protocol import Origins, Split
from candor.data.times import calendar_of
from candor.forecasting.blend import blended, fit_blend
from candor.forecasting.breakdown import Breakdown, ForecastPart, break_down, own_parts
from candor.forecasting.explanation import ForecastExplanation, find_origin, find_sensor
from candor.forecasting.forecaster import REFUSE_UNKNOWN, Forecaster, State, forecasters
from candor.forecasting.inference import infer
from candor.forecasting.network import WEIGHTS, NetworkForecaster
from candor.forecasting.own_data import ADDITIVE, TWO_YEARS, StageName
from candor.forecasting.published import PublishedCandor
from candor.forecasting.relations import relations_in, relations_of
from candor.nets.additive.account import AccountLayer
from candor.nets.additive.additive import AdditiveNetwork, AdditiveTrainable
from candor.nets.additive.settings import SharedRecipe
from candor.nets.additive.shared import SharedNetwork
from candor.nets.recipe import Stage
from candor.nets.trainable import StepContext, tensors_of
from candor.training.processes import in_main_process
from candor.training.stages import Session

RULES = ("last-value", "linear", "seasonal-naive")
_ACCOUNT, _RELATIONS, _RULES = "account/", "relations/", "rules/"
_CHOSEN, _LEVELS, _YEARS, _DISJOINT = "chosen", "levels", "has_years", "disjoint"
_NETWORKS, _BLEND = "networks", "blend"
PLAN = "plan.json"
"""In the folder of a training: how many networks there are, over how many passes, by what schedule."""
_FRAME = "frame.safetensors"
_WINDOWS_THAT_BLEND = 500
_WINDOWS_TO_MEASURE, _FILLINGS, _MARGIN = 32, 4, 1.3
_MOST_NETWORKS = 8
_SHARE_OF_LEARNING = 0.8  # of the time of a network; the rest is validation
_SEEDS_APART = 7919


@forecasters.register("candor")
@dataclass(config=REFUSE_UNKNOWN)
class Candor(PublishedCandor):
    """Component-Aware Network Dynamics with Ordered Relations.

    Args:
        stages: which there are; None is the account and the shared networks, or with a recipe the published network.
        account: what the account is made of; what is left open is chosen on the readings.
        shared: sizes and training of the shared networks.
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
        """Whether it is an account with what is built on it, and not the published network."""
        return self.used_stages() != ("network",)

    def chosen_account(self) -> AccountSettings:
        """Return what the account is made of, with everything that was left open."""
        self._check_fitted()
        return parse_settings(AccountSettings, json.loads(self.state_[_CHOSEN].tobytes()), _CHOSEN)

    def members(self) -> list[str]:
        """Return the names of what is blended, in the order of `blend_weights`."""
        return ["account", *(name for name, _ in self._groups(self.state_)), *self._rules()]

    def blend_weights(self) -> NDArray[np.float64]:
        """Return how much each member counts at each step, step x member."""
        return self.state_[_BLEND]

    def groups(self) -> list[tuple[str, list[int]]]:
        """Return the networks by name of the member that is their mean."""
        return self._groups(self.state_)

    def rule_states(self) -> dict[str, State]:
        """Return what each simple rule in the blend has learned, by name and in the order of the weights."""
        return {name: rule.state_ for name, rule in self._rules().items()}

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

    # Learning

    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        if not self.is_additive:
            return super()._learn(panel, split, report)
        began = time.monotonic()
        state = self._frame_in(self._limits["folder"], panel, split, report)
        rules = {name: _fitted_rule(name, self.history, self.horizon, panel, split) for name in RULES}
        state[_NETWORKS] = np.array([0])
        if "shared" in self.used_stages():
            session = self._session(panel, split, state, report)
            state = self._train_networks(replace(session, began=began), state, rules, panel, split)
        return state | self._learn_blend(panel, split, state, rules, report)

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
        training = slice(0, split.train_end)
        filled = account.deviations.filled(panel.values, calendar_of(panel.times))[training]
        centred = panel.values[training].astype(np.float64) - state["means"]
        count = np.maximum((~np.isnan(centred)).sum(axis=0), 1)
        deviation = np.sqrt(np.nansum(centred**2, axis=0) / count)
        state |= {f"{_ACCOUNT}{name}": array for name, array in account.to_state().items()}
        relations = relations_of(panel, filled, self.shared.sizes.alike)
        return state | {f"{_RELATIONS}{name}": array for name, array in relations.items()} | {
            _CHOSEN: np.frombuffer(chosen.model_dump_json().encode(), np.uint8).copy(),
            _LEVELS: np.stack([state["means"], np.where(deviation > 0, deviation, 1.0)], axis=1).astype(np.float32),
            _YEARS: np.array([split.train_end * panel.times.interval >= TWO_YEARS]),
            _DISJOINT: np.array([len(split.train) / self.horizon]),
        }  # fmt: skip

    def _train_networks(
        self, session: Session, state: State, rules: Mapping[str, Forecaster], panel: Panel, split: Split
    ) -> State:
        """Return a state with the weights of all networks, trained one after the other within the budget."""
        budget = session.budget_seconds
        if budget is not None:
            last = self._seconds_of_the_last_word(panel, split, state, rules)
            session = replace(session, budget_seconds=max(0.0, budget - last))
        count, passes = self._plan_networks(session, state)
        training, place = self.shared.training_of(len(session.data.training), passes), 0
        while place < count:
            began, seed = time.monotonic(), self.seed + _SEEDS_APART * place
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                trainable = self._additive(state, len(panel.sensors), [place])
            stage = Stage(training, f"network-{place + 1}" if place else "", 1 / (count - place))
            weights = replace(session, seed=seed).train(trainable, stage)
            found = {key.replace("shared.0.", f"shared.{place}.", 1): tensor for key, tensor in weights.items()}
            state = state | {f"{WEIGHTS}{key}": tensor.numpy() for key, tensor in found.items()}
            place += 1
            if place == count and self._has_time_for_another(session, time.monotonic() - began, count):
                count += 1
                self._write_plan(session, count, passes)
        return state | {_NETWORKS: np.array([count])}

    def _plan_networks(self, session: Session, state: State) -> tuple[int, float]:
        """Return how many networks are trained, and over how many passes each, so that all learn to their end in time.

        A training that goes on keeps the plan it began with.
        """
        path = None if session.folder is None else session.folder / PLAN
        if path is not None and path.is_file():
            plan = read_json(path)
            return int(plan["networks"]), float(plan["passes"])
        windows = len(session.data.training)
        passes, count = self.shared.passes_for(windows, float(state[_DISJOINT][0])), self.shared.networks or 1
        if session.budget_seconds is not None and self.shared.networks is None:
            left = session.budget_seconds - (time.monotonic() - session.began)
            learned = _SHARE_OF_LEARNING * left / self._seconds_per_window(session, state)
            count = max(1, min(_MOST_NETWORKS, int(learned / max(windows, 1) / passes)))
        if self.shared.networks is None and self.shared.sizes.season is None and state[_YEARS][0]:
            count = max(count, 2)  # one with the week of the year, and one without
        self._write_plan(session, count, passes)
        return count, passes

    def _write_plan(self, session: Session, count: int, passes: float) -> None:
        if session.folder is not None:
            schedule = self.shared.training_of(len(session.data.training), passes).model_dump(mode="json")
            content, path = {"networks": count, "passes": passes, "training": schedule}, session.folder / PLAN
            in_main_process(lambda: write_json(path, content))

    def _has_time_for_another(self, session: Session, took: float, count: int) -> bool:
        """Return whether the budget has time left for one more network, where the number of them is not settled."""
        budget = session.budget_seconds
        if budget is None or self.shared.networks is not None or count >= _MOST_NETWORKS:
            return False
        return in_main_process(lambda: time.monotonic() - session.began + took < budget)

    def _seconds_per_window(self, session: Session, state: State) -> float:
        """Return about how long a network learns from a window."""
        trainable = self._additive(state, len(session.data.sensors), [0])
        size = min(self.shared.training.batch, len(session.data.training))
        batch = tensors_of(session.data.training.batch(np.arange(size)))
        valid = max(1, int(batch["target_mask"].sum()))
        took = []
        with torch.random.fork_rng(devices=[]):
            for _ in range(5):
                began = time.monotonic()
                trainable.objective(batch, StepContext(self.horizon, True, valid, 1.0)).total.backward()
                took.append(time.monotonic() - began)
        return min(took) / size

    def _seconds_of_the_last_word(
        self, panel: Panel, split: Split, state: State, rules: Mapping[str, Forecaster]
    ) -> float:
        """Return about how long it takes to blend and to calibrate, by forecasting from a few windows now.

        Most of a few windows' time is that of filling the whole record, which many windows share.
        """
        some = split.validation[:_WINDOWS_TO_MEASURE]
        if not len(some):
            return 0.0
        self._make_ready(panel, split, self._with_first_weights(state, len(panel.sensors)))
        took = []
        for origins in (some[:1], some):
            began = time.monotonic()
            self._member_forecasts(panel, origins, rules)
            took.append(time.monotonic() - began)
        slope = max(0.0, took[1] - took[0]) / max(len(some) - 1, 1)
        windows = len(split.validation) + min(len(split.validation), _WINDOWS_THAT_BLEND)
        return _MARGIN * (_FILLINGS * took[0] + slope * windows)

    def _with_first_weights(self, state: State, nodes: int) -> State:
        with torch.random.fork_rng(devices=[]):
            network = self._additive(state, nodes, [0]).network
        first = {f"{WEIGHTS}{name}": tensor.numpy() for name, tensor in network.state_dict().items()}
        return state | first | {_NETWORKS: np.array([1])}

    def _learn_blend(
        self, panel: Panel, split: Split, state: State, rules: Mapping[str, Forecaster], report: Report
    ) -> State:
        """Return the weights of stages and rules, and what the rules that have any have learned."""
        choosing, stages = split.validation, 1 + len(self._groups(state))
        places = np.linspace(0, len(choosing) - 1, min(len(choosing), _WINDOWS_THAT_BLEND)).round().astype(np.int64)
        report("blending", None)
        weights = np.zeros((self.horizon, stages + len(rules)))
        weights[:, stages - 1] = 1.0
        if len(origins := choosing[places]):
            self._make_ready(panel, split, state)
            truth = panel.values[origins[:, None] + np.arange(self.horizon)]
            span = (int(choosing[-1]) - int(choosing[0]) + self.horizon) / self.horizon
            weights = fit_blend(self._member_forecasts(panel, origins, rules), truth, span)
        is_used = [True] * stages + [bool(column.any()) for column in weights.T[stages:]]
        found: State = {_BLEND: weights[:, is_used]}
        for (name, rule), is_kept in zip(rules.items(), is_used[stages:], strict=True):
            found |= {f"{_RULES}{name}/{key}": array for key, array in rule.state_.items() if is_kept}
        return found

    def _make_ready(self, panel: Panel, split: Split, state: State) -> None:
        """Let what was learned so far forecast."""
        self.state_ = state
        self._remember(panel, split)

    # Forecasting

    def _inputs(self, panel: Panel, state: State) -> NDArray[np.float32]:
        if not self.is_additive:
            return super()._inputs(panel, state)
        return _account(state).deviations.filled(panel.values, calendar_of(panel.times))

    def _trainable(self, state: State, scaler: Scaler, nodes: int) -> Any:
        if not self.is_additive:
            return super()._trainable(state, scaler, nodes)
        return self._additive(state, nodes, range(int(state[_NETWORKS][0])))

    def _additive(self, state: State, nodes: int, places: Iterable[int]) -> AdditiveTrainable:
        """Return the account with the networks of some places on it, which have first weights."""
        relations = relations_in(_under(_RELATIONS, state), nodes)
        networks = []
        for place in places:
            sizes = self.shared.sizes.settled(float(state[_DISJOINT][0]))
            sizes = sizes.model_copy(update={"season": self._reads_season(state, place)})
            scale = torch.from_numpy(state[_LEVELS])
            networks.append(SharedNetwork(sizes, nodes, self.history, self.horizon, relations, scale))
        return AdditiveTrainable(AdditiveNetwork(AccountLayer(_account(state)), networks), self.horizon)

    def _reads_season(self, state: State, place: int) -> bool:
        """Return whether a network has the week of the year in its clock.

        What two or three years had in common may not come again: if it is not settled, half of the networks do without.
        """
        settled = self.shared.sizes.season
        return settled if settled is not None else bool(state[_YEARS][0]) and place % 2 == 1

    def _groups(self, state: State) -> list[tuple[str, list[int]]]:
        """Return the networks by name of the member that is their mean."""
        places = range(int(state[_NETWORKS][0]))
        by_name: dict[str, list[int]] = {}
        for place in places:
            name = "networks with the year" if self._reads_season(state, place) else "networks"
            by_name.setdefault(name, []).append(place)
        return list(by_name.items())

    def trained(self) -> Any:
        """Return the stages, or the published network, with the weights they learned."""
        return super().trained() if not self.is_additive else NetworkForecaster.trained(self)

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        if not self.is_additive:
            return super()._forecast(panel, origins)
        return blended(self.blend_weights(), self._member_forecasts(panel, origins, self._rules()))

    def _member_forecasts(
        self, panel: Panel, origins: Origins, rules: Mapping[str, Forecaster], hears_alike: bool = True
    ) -> list[NDArray[np.float32]]:
        """Return the forecasts that are blended, each origin x horizon x sensor: of the stages, then of rules."""
        windows = self.windows(panel, origins)
        found = list(infer(self.trained(), windows, lambda net, batch: net.network(batch, hears_alike)))
        shape = 1 + int(self.state_[_NETWORKS][0]), 0, self.horizon, len(panel.sensors)
        account, *networks = torch.cat([torch.empty(shape), *found], dim=1).numpy()
        means = [np.mean([networks[place] for place in places], axis=0) for _, places in self._groups(self.state_)]
        return [account, *means, *(rule.predict(panel, origins) for rule in rules.values())]

    def explain(self, panel: Panel, sensor: str, time: datetime | str | None = None) -> ForecastExplanation:
        self._check_fitted()
        if self.is_additive:
            what = "this model has an account and shared networks, and no states of the published network"
            raise InputError(what, hint="call break_down, which says what a forecast is made of")
        return super().explain(panel, sensor, time)

    def break_down(self, panel: Panel, sensor: str, time: datetime | str | None = None) -> Breakdown:
        """Return what the forecast of one sensor is made of, in parts that sum to it; not for the published network.

        Args:
            panel: as for `predict`.
            sensor: id.
            time: of the first forecast step, see `explain`.
        """
        self._check_fitted()
        self._check_same_sensors(panel)
        panel = panel.in_zone(self.trained_on_.panel.times.zone)
        column, origin = find_sensor(panel, sensor), find_origin(panel, time, self.history)
        origins, weights = np.array([origin]), self.blend_weights()
        heard = self._member_forecasts(panel, origins, self._rules())
        deaf = self._member_forecasts(panel, origins, {}, hears_alike=False)
        account, *others = (part[0, :, column].astype(np.float64) for part in heard)
        learned, alike, blend = np.zeros((3, self.horizon))
        for place, member in enumerate(others, 1):
            if place < len(deaf):
                alone = deaf[place][0, :, column]
                learned += weights[:, place] * (alone - account)
                alike += weights[:, place] * (member - alone)
            else:
                blend += weights[:, place] * (member - account)
        parts = (
            *own_parts(_account(self.state_), panel, column, origin, self.horizon),
            ForecastPart("alike", alike, 0.0),
            ForecastPart("learned", learned, 0.0),
            ForecastPart("blend", blend, 0.0),
        )
        return break_down(panel, column, origin, blended(weights, heard)[0, :, column].astype(np.float64), parts)

    def _rules(self) -> dict[str, Forecaster]:
        """Return the simple rules that have a weight, by name and in order."""
        state: State = self.__dict__.get("state_", {})
        found = {}
        for name in RULES:
            if own := _under(f"{_RULES}{name}/", state):
                rule = forecasters.get(name)(history=self.history, horizon=self.horizon)
                rule.state_, rule.trained_on_ = own, self.trained_on_
                found[name] = rule
        return found


def _account(state: State) -> Account:
    return Account.from_state(_under(_ACCOUNT, state))


def _under(prefix: str, state: State) -> State:
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}


def _fitted_rule(name: str, history: int, horizon: int, panel: Panel, split: Split) -> Forecaster:
    """Return a simple rule fitted to the training part."""
    rule = forecasters.get(name)(history=history, horizon=horizon)
    return rule.fit(panel, replace(split, validation=split.validation[:0]))


def _write(path: Path, state: State) -> None:
    with atomic_file(path) as temporary:
        save_file({name: np.ascontiguousarray(array) for name, array in state.items()}, temporary)
