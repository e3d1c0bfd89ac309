"""What docs/benchmark.md says of models is what their networks do."""

import re
from pathlib import Path

import pytest
import torch
from frames import calendar, frame
from torch import Tensor

from candor.forecasting import forecasters
from candor.nets.baseline import BaselineNetwork
from candor.nets.baselines import baselines
from candor.research.notes import shown_name

PAGE = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text(encoding="utf-8")
NETWORKS = baselines.names()
HISTORY, HORIZON, NODES = 12, 6, 5
Inputs = tuple[Tensor, Tensor, Tensor]


def readers(of_what: str) -> set[str]:
    """Returns the models in a row of the table of calendars, all of which are named as people are shown them."""
    (row,) = re.findall(rf"^\| {of_what} \| (.*) \|$", PAGE, flags=re.MULTILINE)
    names = {shown_name(name): name for name in forecasters.names()}
    return {names[shown] for shown in row.split(", ")}


def normalisers() -> set[str]:
    """Returns the models that the page says normalise each window."""
    (names,) = re.findall(r"These are ([^.]*)\.", PAGE)
    return set(re.split(r",\s+|\s+and\s+", names))


def made(name: str) -> tuple[BaselineNetwork, Inputs]:
    """Returns a network none of whose weights and tables is zero, and what it reads."""
    kind = baselines.get(name)
    torch.manual_seed(0)
    network = kind(kind.tiny).build(frame(NODES, HISTORY, HORIZON)).eval()
    with torch.no_grad():
        learned = [*network.parameters(), *(buffer for name, buffer in network.named_buffers() if name == "usual")]
        for numbers in learned:
            numbers += 0.1 * torch.randn_like(numbers)
    return network, (torch.randn(2, HISTORY, NODES), *calendar(2, HISTORY + HORIZON, 12))


def test_every_model_has_its_place_in_the_table_of_calendars() -> None:
    rows = [readers(row) for row in ("time of day and day of week", "time of day", "none")]
    assert sum(len(row) for row in rows) == len(set.union(*rows))
    assert set.union(*rows) == set(forecasters.names())
    assert normalisers() <= set(NETWORKS)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_reads_of_the_calendar_what_the_page_says(name: str) -> None:
    network, (values, time_of_day, day_of_week) = made(name)
    with torch.no_grad():
        usual = network(values, time_of_day, day_of_week)
        is_moved_by_time = not torch.equal(network(values, (time_of_day + 96) % 288, day_of_week), usual)
        is_moved_by_day = not torch.equal(network(values, time_of_day, (day_of_week + 3) % 7), usual)
    both = name in readers("time of day and day of week")
    assert (is_moved_by_time, is_moved_by_day) == (both or name in readers("time of day"), both)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_normalises_windows_forecasts_in_whatever_unit_it_reads(name: str) -> None:
    network, (values, *calendars) = made(name)
    with torch.no_grad():
        usual, other = network(values, *calendars), network(2 * values + 3, *calendars)
    is_moved_along = torch.allclose(other, 2 * usual + 3, rtol=1e-3, atol=1e-3)
    assert is_moved_along == (name in normalisers())
