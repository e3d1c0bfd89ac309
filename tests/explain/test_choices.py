"""What is looked at unless somebody says: the best observed sensor, the last known forecast, evenly spread windows."""

from dataclasses import replace

import numpy as np
import pytest
from made_readings import HISTORY, HORIZON, made_candor, made_trainable, river_panel

from candor.core.errors import InputError
from candor.data.protocol import Protocol, Split, make_task
from candor.explain.choices import choose_forecast, choose_windows
from candor.explain.run import affordable_windows


def test_windows_come_from_the_last_part_that_has_any() -> None:
    empty, some = np.empty(0, np.int64), np.arange(50, 150)
    name, origins = choose_windows(Split(some - 40, some - 10, some, 100), 200, 7)
    assert name == "test part" and len(origins) == 7 and (origins[0], origins[-1]) == (50, 149)
    assert choose_windows(Split(some, some + 9, empty, 100), 200, 500)[0] == "validation part"
    assert len(choose_windows(Split(some, empty, empty, 100), 200, 500)[1]) == 100
    assert choose_windows(Split(empty, empty, empty, 0), 200, 7) == ("end of the record", np.array([200]))


def test_large_networks_are_read_over_fewer_windows() -> None:
    network = made_trainable(river_panel()).network
    assert affordable_windows(network) == 200
    network.settings = network.settings.model_copy(update={"nodes": 10_000})
    assert affordable_windows(network) == 6_000_000 // (10_000 * 5 * 8)
    network.settings = network.settings.model_copy(update={"nodes": 10_000_000})
    assert affordable_windows(network) == 2


def test_windows_are_spread_evenly() -> None:
    empty, many = np.empty(0, np.int64), np.arange(10_000)
    _, chosen = choose_windows(Split(many, many, many + 7, 1), 20_000)
    assert (len(chosen), chosen[0], chosen[-1]) == (200, 7, 10_006) and np.ptp(np.diff(chosen)) <= 1
    assert choose_windows(Split(empty, many[:5], empty, 1), 20_000)[1].tolist() == [0, 1, 2, 3, 4]


def test_the_best_observed_sensor_and_the_last_known_forecast_are_shown_first() -> None:
    panel = river_panel()
    values = panel.values.copy()
    values[:400, 4] = np.nan  # silent before the test part, which alone counts
    values[-50:, [0, 1, 2, 3]] = np.nan
    panel = replace(panel, values=values)
    task, candor = make_task(panel, Protocol(history=HISTORY, horizon=HORIZON)), made_candor(river_panel())
    assert choose_forecast(task, candor, None, None) == (4, panel.times.length - HORIZON)
    moment = panel.times.local[100].isoformat()
    assert choose_forecast(task, candor, "g1", moment) == (1, 100)
    with pytest.raises(InputError, match="no sensor called g9"):
        choose_forecast(task, candor, "g9", None)
