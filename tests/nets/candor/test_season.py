"""The season of the year in the calendar: nothing where it is off, and where it is on exactly what it should be."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import torch
from tiny import PROTOCOL, SIZES
from torch import Tensor

from candor.data.panel import Panel, Sensor
from candor.data.preprocessing import Scaler
from candor.data.protocol import Protocol, make_task
from candor.data.times import WEEKS_PER_YEAR, TimeAxis
from candor.data.windows import Windows
from candor.forecasting.contract import sample_panel
from candor.forecasting.own_data import choose_recipe
from candor.nets.candor.candor import CandorNetwork, summarise
from candor.nets.candor.losses import LossSpace, losses
from candor.nets.candor.physical_operator import EdgeArrays
from candor.nets.candor.recipe import Recipe
from candor.nets.candor.settings import LossWeights, ModelSettings
from candor.nets.candor.trainable import CandorTrainable
from candor.nets.trainable import StepContext, tensors_of
from candor.presets import load_preset, preset_names

NODES, HISTORY, HORIZON, WIDTH = 5, 10, 6, 8  # the last step of the history begins no patch
SPANS = {"nodes": NODES, "history": HISTORY, "horizon": HORIZON, "patch_length": 3, "patch_stride": 2}
# Two edges into sensor 2, so that they compete: a single one has all the weight, whatever the calendar says.
EDGES = EdgeArrays(np.array([0, 0, 1, 3]), np.array([1, 2, 2, 4]), np.array([0.5, 0.3, 1.0, 2.0]))
TABLES = ("calendar.season.weight", "fusion.season.weight")


def fresh(*, season: bool) -> CandorNetwork:
    """A network as it begins, from the same chance with and without seasons."""
    torch.manual_seed(0)
    return CandorNetwork(ModelSettings(**SPANS, **SIZES, season=season), EDGES).double().eval()


def with_seasons() -> CandorNetwork:
    """A network in which every part takes part, seasons too."""
    network = fresh(season=True)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return network


def without_seasons(network: CandorNetwork) -> CandorNetwork:
    """The same weights in a network that knows no seasons."""
    plain = fresh(season=False)
    plain.load_state_dict({name: value for name, value in network.state_dict().items() if name not in TABLES})
    return plain


def inputs(batch: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    chance, whole = torch.Generator().manual_seed(1), (batch, HISTORY + HORIZON)
    values = torch.randn(batch, HISTORY, NODES, generator=chance, dtype=torch.float64)
    return values, torch.randint(288, whole, generator=chance), torch.randint(7, whole, generator=chance)


def weeks(batch: int = 3) -> Tensor:
    return torch.randint(WEEKS_PER_YEAR, (batch, HISTORY + HORIZON), generator=torch.Generator().manual_seed(2))


def test_without_seasons_there_is_nothing_of_them() -> None:
    off = fresh(season=False)
    drawn_after = torch.rand(3)
    on = fresh(season=True)
    assert torch.equal(torch.rand(3), drawn_after)  # seasons draw no chance, neither here nor for what comes later
    ours, theirs = on.state_dict(), off.state_dict()
    assert ours.keys() - theirs.keys() == set(TABLES)
    assert all(torch.equal(value, ours[name]) for name, value in theirs.items())
    assert torch.equal(off(*inputs(), weeks()), off(*inputs()))


def test_two_tables_as_wide_as_a_row_are_all_that_seasons_add() -> None:
    sizes = {"nodes": 207, "history": 12, "horizon": 12, "patch_length": 4, "patch_stride": 2}
    counts = [
        sum(row.parameters for row in summarise(ModelSettings(**sizes, season=season))) for season in (False, True)
    ]
    assert counts == [898_566, 898_566 + 2 * 53 * 64]


def test_seasons_change_nothing_at_first_and_then_can_learn() -> None:
    on, off = fresh(season=True), fresh(season=False)
    forecast = on(*inputs(), weeks())
    assert torch.equal(forecast, off(*inputs()))
    forecast.square().sum().backward()
    assert on.calendar.season.weight.grad.any()


@pytest.mark.parametrize("week", [0, 31, 52])
def test_in_a_single_week_a_season_is_a_shift_of_the_other_tables(week: int) -> None:
    on = with_seasons()
    off = without_seasons(on)
    with torch.no_grad():
        for ours, theirs in ((on.calendar, off.calendar), (on.fusion, off.fusion)):
            theirs.time_of_day.weight.add_(ours.season.weight[week, :WIDTH])
            theirs.day_of_week.weight.add_(ours.season.weight[week, WIDTH:])
    forecast = on(*inputs(), torch.full_like(weeks(), week))
    torch.testing.assert_close(forecast, off(*inputs()), rtol=1e-12, atol=1e-12)
    assert (forecast - on(*inputs(), torch.full_like(weeks(), week - 1 if week else 1))).abs().min() > 1e-6


@pytest.mark.parametrize("half", [0, 1])
def test_every_step_has_the_season_of_its_own_week(half: int) -> None:
    """Weeks that follow from the time of day, or the day of week, can be folded into its table row by row."""
    on, (values, *clock) = with_seasons(), inputs()
    week_of_row = torch.arange((288, 7)[half]) * 5 % WEEKS_PER_YEAR
    kept, cleared = (slice(WIDTH), slice(WIDTH, None)) if half == 0 else (slice(WIDTH, None), slice(WIDTH))
    off = without_seasons(on)
    with torch.no_grad():
        for ours, theirs in ((on.calendar, off.calendar), (on.fusion, off.fusion)):
            ours.season.weight[:, cleared] = 0
            table = (theirs.time_of_day, theirs.day_of_week)[half]
            table.weight.add_(ours.season.weight[week_of_row, kept])
    forecast = on(values, *clock, week_of_row[clock[half]])
    torch.testing.assert_close(forecast, off(values, *clock), rtol=1e-12, atol=1e-12)


def objective(
    network: CandorNetwork, part: slice, targets: Tensor, mask: Tensor, prefix: int = HORIZON, **counted: float
) -> Tensor:
    batch = len(targets)
    states = network.encode(*(tensor[part] for tensor in inputs(batch)), prefix, weeks(batch)[part])
    settled = {"prefix": prefix, "space": LossSpace(3.0, 2.0), "is_active": True}
    return losses(network, states, targets[part], mask[part], LossWeights(), **settled, **counted).total


def supervision(batch: int) -> tuple[Tensor, Tensor]:
    chance, shape = torch.Generator().manual_seed(3), (batch, HORIZON, NODES)
    targets = torch.randn(shape, generator=chance, dtype=torch.float64)
    return targets, torch.rand(shape, generator=chance) < 0.7


def gradients(network: CandorNetwork, total: Tensor) -> dict[str, Tensor]:
    network.zero_grad()
    total.backward()
    return {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("prefix", [1, 4, 6])
def test_weeks_that_are_read_learn_and_no_others(prefix: int) -> None:
    network, targets_and_mask = with_seasons(), supervision(3)
    found = gradients(network, objective(network, slice(None), *targets_and_mask, prefix))
    settings = network.settings
    decoded = settings.target_starts[: settings.decoded_patches(prefix)]
    read = [*settings.history_starts, *settings.target_starts, HISTORY - 1]
    for name, steps in zip(TABLES, (read, decoded), strict=True):
        learning = found[name].abs().amax(dim=-1).nonzero().flatten()
        assert set(learning.tolist()) == set(weeks()[:, steps].flatten().tolist()), name


def test_micro_batches_have_the_gradient_of_the_whole_batch() -> None:
    network, (targets, mask) = with_seasons(), supervision(7)
    expected = gradients(network, objective(network, slice(None), targets, mask))
    total = torch.zeros((), dtype=torch.float64)
    for part in (slice(0, 3), slice(3, 4), slice(4, 7)):
        share = len(targets[part]) / 7
        total = total + objective(network, part, targets, mask, valid=int(mask.sum()), share=share)
    found = gradients(network, total)
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-9, atol=1e-10, msg=name)


def test_a_network_with_seasons_refuses_to_work_without_the_week() -> None:
    network = fresh(season=True)
    for work in (network, network.encode):
        with pytest.raises(ValueError, match="needs week_of_year"):
            work(*inputs())


def test_what_is_trained_reads_the_weeks_of_its_batches() -> None:
    values, time_of_day, day_of_week = inputs()
    learner = CandorTrainable(with_seasons(), Scaler(2.0, 3.0), LossWeights(), True, False)
    batch = {"inputs": values, "time_of_day": time_of_day, "day_of_week": day_of_week, "week_of_year": weeks()}
    expected = learner.network(*inputs(), weeks()) * 3 + 2
    torch.testing.assert_close(learner.forecast(batch), expected)


@pytest.mark.parametrize(("days", "is_on"), [(1216, False), (1217, True)])  # of which 0.6 are for training
def test_own_data_have_seasons_if_two_years_are_trained_on(days: int, is_on: bool) -> None:
    times = TimeAxis(datetime(2020, 1, 1, tzinfo=UTC), timedelta(days=1), days)
    panel = Panel(np.zeros((days, 1), np.float32), times, (Sensor("gauge"),))
    recipe, reasons = choose_recipe(make_task(panel, Protocol(history=28, horizon=14)), None, {})
    assert recipe.model_settings(1, 28, 14).season == is_on
    assert any("week of the year" in reason for reason in reasons) == is_on


@pytest.mark.parametrize("preset", ["klamath-daily-network", "metr-la"])
@pytest.mark.parametrize("wanted", [True, False])
def test_seasons_can_be_switched_by_hand(preset: str, wanted: bool) -> None:
    task = make_task(sample_panel(), PROTOCOL)
    recipe, _ = choose_recipe(task, preset, {"season": wanted})
    settings = recipe.model_settings(1, 28, 14)
    assert settings.season == wanted
    assert settings.patch_stride == load_preset(preset).recipe.model["patch_stride"]


def test_the_paper_knows_no_seasons() -> None:
    for name in preset_names():
        recipe = load_preset(name).recipe
        assert recipe is None or recipe.model.get("season", False) == (name == "klamath-daily-network"), name


def test_training_moves_the_weeks_it_sees_and_leaves_the_rest_at_zero() -> None:
    task, recipe = make_task(sample_panel(), PROTOCOL), Recipe(model=SIZES | {"season": True})
    windows = Windows(task.panel, np.nan_to_num(task.panel.values), task.split.train, 12, 4)
    batch = tensors_of(windows.batch(np.arange(0, len(windows), 9)))
    network = CandorNetwork(recipe.model_settings(len(task.panel.sensors), 12, 4), EDGES)
    learner = CandorTrainable(network, Scaler(0.0, 1.0), recipe.loss, True, True)
    optimiser = torch.optim.Adam(network.parameters(), weight_decay=1e-5)
    for _ in range(2):  # the first step of all only wakes up the last layer of fusion, which begins at zero
        optimiser.zero_grad()
        learner.objective(batch, StepContext(4, True, int(batch["target_mask"].sum()), 1.0)).total.backward()
        optimiser.step()
    seen = set(batch["week_of_year"].flatten().tolist())
    assert 1 < len(seen) < WEEKS_PER_YEAR
    for tables in (network.calendar, network.fusion):
        assert tables.season is not None
        assert set(tables.season.weight.abs().amax(dim=-1).nonzero().flatten().tolist()) == seen
