"""From a run and somebody's recent readings to a table: right numbers, or plain words about what is wrong."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_runs import PROTOCOL, make_run, readings_of, river

from candor.data.panel_store import save_panel
from candor.data.protocol import Protocol, make_task
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.forecasting.forecast_table import ForecastTable
from candor.runs.run import load_run

# The last row of the river, 25 January 2024 at 23:00 UTC, is 26 January at midnight in Berlin.
NOW = ("--now", "2024-01-26T00:30")
HORIZON, SENSORS = PROTOCOL.horizon, 5


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run")


def write(table: pd.DataFrame, name: str = "new.csv") -> str:
    table.to_csv(name, index=False)
    return name


def numbers(path: str | Path) -> pd.DataFrame:
    path = Path(path)
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    return table.assign(time=pd.to_datetime(table["time"], utc=True))


@pytest.mark.parametrize("file", ["deep/folder/f.csv", "f.parquet"])
def test_the_file_holds_what_the_model_says_of_the_end_of_its_own_data(candor, run: Path, file: str) -> None:
    shown = candor("forecast", run, "--out", file, "--coverage", "0.8", "--below", "10")
    assert shown.code == 0, shown.err
    table, model, panel = numbers(file), load_run(run).forecaster, river()
    assert list(table.columns) == ["time", "sensor", "step", "forecast", "lower", "upper", "probability"]
    made = model.predict_interval(panel, coverage=0.8)
    for name in ("forecast", "lower", "upper"):
        expected = getattr(made, name)[0].reshape(-1)
        np.testing.assert_array_equal(table[name].to_numpy(np.float32), expected)
    probability = model.probability_below(panel, 10.0)[0].reshape(-1)
    np.testing.assert_allclose(table["probability"], probability, rtol=1e-6)
    assert table["sensor"].tolist() == [f"g{i}" for i in range(5)] * HORIZON
    assert table["step"].tolist() == np.repeat(np.arange(1, 7), 5).tolist()
    ahead = pd.to_timedelta(table["step"], unit="h")
    assert (table["time"] == pd.Timestamp("2024-01-25 23:00Z") + ahead).all()


def test_times_are_on_the_local_clock_and_the_screen_shows_names_and_unit(candor, run: Path) -> None:
    shown = candor("forecast", run, "--out", "f.csv")
    assert pd.read_csv("f.csv")["time"][0] == "2024-01-26 01:00:00+01:00"
    for words in ("linear on river [m]", "2024-01-26 01:00", "Upper weir", "Old mill [broken]", "90 % from", "f.csv"):
        assert words in shown.out + shown.err
    assert "NaN" not in shown.out and "nan" not in Path("f.csv").read_text()


def test_the_two_hours_of_autumn_are_told_apart_on_the_screen(candor, tmp_path: Path) -> None:
    panel = river()
    times = replace(panel.times, start=datetime(2024, 10, 26, 23, tzinfo=UTC) - panel.times.length * timedelta(hours=1))
    shown = candor("forecast", make_run(tmp_path / "autumn", "last-value", panel=replace(panel, times=times)))
    for words in ("2024-10-27 01:00 ", "2024-10-27 02:00 UTC+02:00", "2024-10-27 02:00 UTC+01:00"):
        assert words in shown.out


def test_how_a_file_is_read_cannot_be_said_where_there_is_none(candor, run: Path) -> None:
    save_panel(river(), Path("panel"))
    for readings in ((), ("--readings", "panel"), ("--readings", "klamath-daily")):
        shown = candor("forecast", run, *readings, "--zone", "UTC", "--missing", "-1")
        assert shown.code == 2 and "--zone, --missing say how a file is read" in " ".join(shown.err.split())
    shown = candor("forecast", run, "--readings", "absent.csv", "--zone", "UTC")
    assert shown.code == 2 and "absent.csv" in shown.err and "how a file is read" not in shown.err


def test_forecasting_needs_history_only(candor, run: Path) -> None:
    panel, task = river(), make_task(river(), PROTOCOL)
    origin = int(task.split.test[10])
    known = write(readings_of(panel.slice(origin - 60, origin)))
    assert candor("forecast", run, "--readings", known, "--out", "f.csv").code == 0
    expected = load_run(run).forecaster.predict(panel, np.array([origin]))[0].reshape(-1)
    np.testing.assert_allclose(numbers("f.csv")["forecast"], expected, rtol=1e-4)


def test_new_readings_alone_are_enough(candor, run: Path, tmp_path: Path) -> None:
    write(readings_of(river()))
    candor("forecast", run, "--out", "own.csv")
    shutil.rmtree(run / "data")
    shown = candor("forecast", run, "--readings", "new.csv", *NOW, "--out", "new-forecast.csv")
    assert shown.code == 0, shown.err
    pd.testing.assert_frame_equal(numbers("own.csv"), numbers("new-forecast.csv"))
    assert "old" not in shown.err


def test_what_stood_for_missing_in_training_does_so_in_new_readings(candor, tmp_path: Path) -> None:
    table = readings_of(river())
    table.iloc[-3:, 1], table.iloc[5:9, 2] = -1.0, -7.0
    told = ("--zone", "Europe/Berlin", "--missing", "-1", "--minimum", "-5")
    assert (
        candor("train", write(table), *told, "--model", "linear", "--run", "mine", "horizon=6", "history=12").code == 0
    )
    forecasts = []
    for name, said in (("table", ()), ("told", told)):
        assert candor("forecast", "mine", "--readings", write(table), *NOW, *said, "--out", f"{name}.csv").code == 0
        forecasts.append(numbers(f"{name}.csv"))
    blank = table.replace([-1.0, -7.0], np.nan)
    assert candor("forecast", "mine", "--readings", write(blank), *NOW, "--out", "blank.csv").code == 0
    for forecast in forecasts:
        pd.testing.assert_frame_equal(forecast, numbers("blank.csv"))
    assert (
        candor("forecast", "mine", "--readings", write(table), *NOW, "--missing", "-2", "--out", "other.csv").code == 0
    )
    assert not numbers("other.csv").equals(numbers("blank.csv"))


@pytest.mark.parametrize("part", [slice(None), slice(-60, None), slice(60)])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_days_that_carry_the_offsets_of_summer_and_winter_are_known_again(
    candor, tmp_path: Path, part: slice, kind: str
) -> None:
    days = pd.date_range("2023-01-01", "2023-08-30", tz="Europe/Berlin")
    table = pd.DataFrame({"time": days} | {f"g{i}": np.sin(np.arange(len(days)) + i) for i in range(3)})
    panel = read_panel(table, options=ReadOptions(zone="Europe/Berlin"))
    run, last = make_run(tmp_path / "run", panel=panel), days[part][-1]
    new, now = Path(f"new.{kind}"), last + pd.Timedelta(hours=6)
    (table[part].to_csv if kind == "csv" else table[part].to_parquet)(new, index=False)
    expected = load_run(run).forecaster.predict(panel, np.array([days.get_loc(last) + 1])).reshape(-1)
    for said in ((), ("--zone", "Europe/Berlin")):
        shown = candor("forecast", run, "--readings", new, "--now", now, "--out", "f.csv", *said)
        assert shown.code == 0, shown.err
        np.testing.assert_allclose(numbers("f.csv")["forecast"], expected, rtol=1e-4)
        assert pd.read_csv("f.csv")["time"][0] == f"{last + pd.DateOffset(days=1):%Y-%m-%d} 00:00:00+01:00"
    abroad = table.assign(time=days.tz_localize(None).tz_localize("UTC"))
    shown = candor("forecast", run, "--readings", write(abroad), "--now", now)
    # Naming the zone of the run would change nothing.
    assert shown.code == 2 and "read the dates with the --zone whose clock they follow" in " ".join(shown.err.split())


def test_extra_reordered_and_respelled_sensors_are_put_right(candor, run: Path) -> None:
    candor("forecast", run, "--out", "own.csv")
    table = readings_of(river())
    table = table.rename(columns={"g0": "G0 "})[["time", "g4", "g3", "g2", "g1", "G0 "]].assign(stranger=1.0)
    shown = candor("forecast", run, "--readings", write(table), "--unit", "m", *NOW, "--out", "f.csv")
    assert shown.code == 0, shown.err
    pd.testing.assert_frame_equal(numbers("own.csv"), numbers("f.csv"))
    for words in ("spelled unlike", "'g0'", "unknown to the model", "stranger"):
        assert words in shown.err


def test_another_unit_is_converted(candor, run: Path) -> None:
    candor("forecast", run, "--out", "own.csv")
    table = readings_of(river())
    table.iloc[:, 1:] *= 100
    shown = candor("forecast", run, "--readings", write(table), "--unit", "cm", *NOW, "--out", "f.csv")
    assert "from cm to m" in " ".join(shown.err.split())
    np.testing.assert_allclose(numbers("f.csv")["forecast"], numbers("own.csv")["forecast"], rtol=1e-4)


def drop_sensor(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="g1")


def silence_sensor(table: pd.DataFrame) -> pd.DataFrame:
    table.loc[len(table) - 40 :, "g4"] = np.nan
    return table


def stick_sensor(table: pd.DataFrame) -> pd.DataFrame:
    table.loc[len(table) - 40 :, "g4"] = 10.123
    return table


def exaggerate(table: pd.DataFrame) -> pd.DataFrame:
    table.loc[len(table) - 1, "g0"] = 500.0
    return table


@pytest.mark.parametrize(
    ("trouble", "options", "words"),
    [
        (drop_sensor, NOW, "absent: treated as silent"),
        (silence_sensor, NOW, "no reading in the last 24 rows"),
        (stick_sensor, NOW, "repeat one number"),
        (exaggerate, NOW, "far outside"),
        (lambda table: table, (), "old: the forecast is for"),
        (lambda table: table.tail(10), (*NOW, "--allow-short"), "rows before the first were added"),
    ],
)
def test_trouble_that_can_be_borne_is_said_and_the_forecast_is_whole(candor, run, trouble, options, words) -> None:
    new = write(trouble(readings_of(river())))
    shown = candor("forecast", run, "--readings", new, *options, "--out", "f.csv")
    assert shown.code == 0, shown.err
    assert words in " ".join(shown.err.split())
    table = numbers("f.csv")
    assert len(table) == HORIZON * SENSORS
    assert np.isfinite(table[["forecast", "lower", "upper"]]).all(axis=None)
    assert (table["lower"] <= table["upper"]).all()


@pytest.mark.parametrize(
    ("trouble", "options", "words"),
    [
        (lambda table: table.tail(10), NOW, "10 rows until the last reading; the model needs 24"),
        (lambda table: table.iloc[::7], NOW, "rows of the readings are 7 h apart"),
        (lambda table: table, ("--now", "2024-01-20"), "none later than now"),
        (lambda table: table, (*NOW, "--unit", "mg/L"), "no known way from one to the other"),
        (lambda table: table.rename(columns=lambda name: name.replace("g", "x")), NOW, "none of the model's 5 sensors"),
        (lambda table: table.assign(**{f"g{i}": np.nan for i in range(5)}), NOW, "reading"),
        (lambda table: table.drop(columns="time"), NOW, "no column holds times"),
        (lambda table: table, ("--now", "yesterday"), "not a time"),
        (lambda table: table, (*NOW, "--below", "5", "--above", "6"), "two questions"),
        (lambda table: table, (*NOW, "--coverage", "1.5"), "between 0 and 1"),
        (lambda table: table, (*NOW, "--below", "nan"), "finite"),
        (lambda table: table, (*NOW, "--zone", "Atlantis"), "no time zone"),
    ],
)
def test_trouble_that_cannot_be_borne_is_refused_in_plain_words(candor, run, trouble, options, words) -> None:
    new = write(trouble(readings_of(river())))
    shown = candor("forecast", run, "--readings", new, *options, "--out", "f.csv")
    assert shown.code == 2, shown.err
    assert words in " ".join(shown.err.split())
    assert "Traceback" not in shown.err
    assert not Path("f.csv").exists()


def test_the_present_is_read_on_the_clock_of_the_run(candor, run: Path) -> None:
    new = write(readings_of(river()))
    refused = candor("forecast", run, "--readings", new, "--now", "2024-01-25T22:00")  # two hours before the last row
    assert refused.code == 2
    assert "none later than now" in " ".join(refused.err.split())
    assert candor("forecast", run, "--readings", new, "--now", "2024-01-25T22:00+00:00").code == 0


@pytest.mark.parametrize("out", ["f.xlsx", "f", "run/f.txt"])
def test_another_kind_of_file_is_refused_before_any_work(candor, run: Path, out: str) -> None:
    shown = candor("forecast", run, "--out", out)
    assert shown.code == 2
    assert ".csv or .parquet" in shown.err


def test_a_forecast_is_not_written_over_what_it_is_made_from(candor, run: Path) -> None:
    new = write(readings_of(river()))
    before = Path(new).read_bytes()
    Path("link.csv").symlink_to(new)
    for out in (new, f"../{Path.cwd().name}/{new}", "link.csv"):
        for option in ("--readings", "--edges"):
            shown = candor("forecast", run, option, new, *NOW, "--out", out)
            assert shown.code == 2 and "its own input" in shown.err
    assert Path(new).read_bytes() == before


def test_a_file_that_cannot_be_written_leaves_the_old_one(candor, run: Path, monkeypatch) -> None:
    Path("f.csv").write_text("old")

    def write_half(table, path) -> None:
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ForecastTable, "_write_csv", write_half)
    shown = candor("forecast", run, "--out", "f.csv")
    assert shown.code == 2
    assert "No space left" in shown.err
    assert Path("f.csv").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["f.csv", "run"]


def test_silent_sensors_are_named_also_where_a_protocol_fills_the_record(candor, tmp_path: Path) -> None:
    filled = Protocol(history=24, horizon=6, fill="forward-backward", targets="filled")
    silent = []
    for name, protocol in (("filled", filled), ("plain", PROTOCOL)):
        make_run(tmp_path / name, "last-value", protocol)
        content = json.loads(candor("forecast", name, "--json").out)
        silent.append([one["where"] for one in content["findings"] if "no reading in the last" in one["what"]])
        forecast = [row["forecast"] for row in content["forecasts"]]
        expected = load_run(tmp_path / name).forecaster.predict(make_task(river(), protocol).panel)
        np.testing.assert_allclose(forecast, expected.reshape(-1), rtol=1e-6)
    assert silent[0] == silent[1] and "Old mill" in silent[0][0]


def test_below_and_above_are_two_sides_of_one_coin(candor, run: Path) -> None:
    chances = []
    for side in ("below", "above"):
        content = json.loads(candor("forecast", run, f"--{side}", "10.2", "--json").out)
        assert content["probability_of"] == {"below": None, "above": None} | {side: 10.2}
        chances.append(np.array([row["probability"] for row in content["forecasts"]]))
    np.testing.assert_allclose(chances[0] + chances[1], 1.0, atol=1e-6)
    assert np.ptp(chances[0]) > 0.5


def test_json_holds_the_same_numbers_as_the_file(candor, run: Path) -> None:
    shown = candor("forecast", run, "--json", "--out", "f.csv")
    content = json.loads(shown.out)
    assert content["units"]["g0"] == "m"
    assert content["zone"] == "Europe/Berlin"
    assert content["last_reading"] == "2024-01-26T00:00:00+01:00"
    assert content["coverage"] == 0.9
    table = pd.DataFrame(content["forecasts"]).assign(time=lambda rows: pd.to_datetime(rows["time"], utc=True))
    pd.testing.assert_frame_equal(table, numbers("f.csv"), check_dtype=False, rtol=1e-6)
    assert content["findings"][0]["level"] == "warning"  # two gauges are silent


def test_more_coverage_is_wider(candor, run: Path) -> None:
    widths = []
    for coverage in ("0.5", "0.9"):
        rows = json.loads(candor("forecast", run, "--coverage", coverage, "--json").out)["forecasts"]
        widths.append([row["upper"] - row["lower"] for row in rows])
    assert (np.array(widths[0]) < np.array(widths[1])).all()


def test_it_is_said_where_intervals_cannot_hold_what_is_asked_of_them(candor, run: Path) -> None:
    for coverage, is_told in (("0.9", False), ("0.9999", True)):
        shown = candor("forecast", run, "--coverage", coverage)
        assert (
            "too few errors of the model are known for intervals of 99.99 %" in " ".join(shown.err.split())
        ) == is_told
        told = json.loads(candor("forecast", run, "--coverage", coverage, "--json").out)["findings"]
        assert any(finding["where"] == "30 of 30 pairs of step and sensor" for finding in told) == is_told


def test_without_calibration_there_is_a_forecast_and_no_promise(candor, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", protocol=Protocol(history=24, horizon=6, shares=(0.8, 0.0, 0.2)))
    shown = candor("forecast", run, "--out", "f.csv")
    assert shown.code == 0, shown.err
    assert "no intervals" in shown.err
    assert list(pd.read_csv("f.csv").columns) == ["time", "sensor", "step", "forecast"]
    assert json.loads(candor("forecast", run, "--json").out)["coverage"] is None
    refused = candor("forecast", run, "--below", "5")
    assert refused.code == 2
    assert "validation" in refused.err


def test_many_sensors_and_steps_give_a_short_table(candor, tmp_path: Path) -> None:
    panel = river()
    columns = [i % 3 for i in range(60)]
    sensors = tuple(type(panel.sensors[0])(f"n{i:02d}") for i in range(60))
    wide = type(panel)(panel.values[:, columns], panel.times, sensors, name="wide")
    run = make_run(tmp_path / "run", "last-value", panel=wide)
    shown = candor("forecast", run).out
    assert "n23" in shown and "n24" not in shown
    assert "60 sensors and 6 steps; --out FILE writes all" in shown
    assert "name" not in shown
    assert len(shown.splitlines()) < 35


@pytest.mark.parametrize("state", ["nothing", "unfinished", "no such readings"])
def test_a_run_or_file_that_is_not_there_is_refused(candor, run: Path, state: str) -> None:
    if state == "unfinished":
        shutil.rmtree(run / "model")
    arguments = {"nothing": ("nowhere",), "unfinished": (run,), "no such readings": (run, "--readings", "no.csv")}
    shown = candor("forecast", *arguments[state])
    assert shown.code == 2
    assert "Traceback" not in shown.err


def test_a_panel_folder_can_be_the_readings(candor, run: Path) -> None:
    shown = candor("forecast", run, "--readings", run / "data", *NOW, "--json")
    own = candor("forecast", run, "--json")
    assert json.loads(shown.out)["forecasts"] == json.loads(own.out)["forecasts"]
