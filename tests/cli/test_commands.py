"""The command as people use it: from two files to a table, and plain words where something is wrong."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray
from hypothesis import example, given
from hypothesis import strategies as st

import candor as package
from candor.cli import app, inputs
from candor.cli.inputs import parse_interval, parse_names, parse_seeds
from candor.cli.train import _smaller_preset
from candor.core.errors import InputError
from candor.core.text import duration_option
from candor.data.catalog import datasets
from candor.data.panel_store import load_panel


def test_version_and_help(candor) -> None:
    assert candor("--version").out.strip() == f"candor {package.__version__}"
    shown = candor("--help")
    assert shown.code == 0
    for command in ("data", "train", "evaluate", "demo"):
        assert command in shown.out


def test_an_unknown_command_or_option_is_the_users_mistake(candor) -> None:
    assert candor("trian").code == 2
    assert candor("train", "klamath-daily", "--wings").code == 2
    assert candor().code in (0, 2)


def test_two_files_become_a_judged_run(candor, two_files) -> None:
    readings, edges = two_files
    checked = candor("data", "check", readings, "--edges", edges, "--unit", "mg/L")
    assert checked.code == 0, checked.out
    told = ("--unit", "mg/L", "--zone", "Europe/Berlin", "--model", "linear")
    trained = candor("train", readings, "--edges", edges, *told, "horizon=12")
    assert trained.code == 0, trained.err
    judged = candor("evaluate", "runs/readings-linear")
    assert judged.code == 0, judged.err
    assert "MAE [mg/L]" in judged.out
    content = json.loads(Path("runs/readings-linear/evaluation.json").read_text())
    assert content["protocol"]["horizon"] == 12
    assert content["unit"] == "mg/L"
    assert content["skill"]["value"] > 0.3


@pytest.mark.parametrize("model", ["last-value", "seasonal-naive", "historical-average", "linear"])
def test_every_simple_model_trains_and_is_judged_on_the_bundled_data(candor, model: str) -> None:
    trained = candor("train", "klamath-daily", "--model", model, "--run", "r", "--json")
    assert trained.code == 0, trained.err
    assert json.loads(trained.out)["model"] == model
    judged = candor("evaluate", "r", "--json")
    content = json.loads(judged.out)
    assert content == json.loads(Path("r/evaluation.json").read_text())
    assert content["split"]["windows"] == {"train": 924, "validation": 310, "test": 308}
    assert 0 < content["overall"]["mae"] < 3


@pytest.mark.slow
def test_demo_trains_compares_forecasts_and_draws(candor) -> None:
    quick = ("epochs=1", "hidden=8", "heads=2", "forecast_width=16", "head_width=16")
    shown = candor("demo", "--out", "d", *quick)
    assert shown.code == 0, shown.err
    assert "a check found 0 errors" in shown.err
    for model in ("last-value", "seasonal-naive", "historical-average", "linear", "candor"):
        assert model in shown.out
        content = json.loads(Path("d", model, "evaluation.json").read_text())
        assert f"{100 * content['intervals']['overall']['coverage']:.1f} %" in shown.out
        assert f"{content['overall']['mae']:.3f}" in shown.out
    forecast = pd.read_csv("d/forecast.csv", dtype={"sensor": str})
    assert len(forecast) == 14 * 11
    assert forecast.forecast.between(0, 30).all()
    assert (forecast.lower <= forecast.forecast).all() and (forecast.forecast <= forecast.upper).all()
    assert forecast.time.iloc[0].startswith("2025-03-05")
    assert len(list(Path("d/candor/figures").glob("*.png"))) == 6
    listed = json.loads(candor("runs", "list", "d", "--json").out)
    assert {row["state"] for row in listed} == {"evaluated"} and len(listed) == 5

    again = candor("demo", "--out", "d")
    assert again.code == 0, again.err
    assert "going on with the run" in again.err
    assert again.out == shown.out


def test_a_demo_with_settings_is_not_made_over_another(candor) -> None:
    Path("d/candor").mkdir(parents=True)
    Path("d/candor/run.json").touch()
    refused = candor("demo", "--out", "d", "epochs=2")
    assert refused.code == 2 and "a run in this folder already" in refused.err
    assert "(--out)" in refused.err and "--run" not in refused.err


def test_data_list_and_info(candor) -> None:
    listed = json.loads(candor("data", "list", "--json").out)
    assert {"klamath-daily", "metr-la", "synthetic-river"} <= {row["name"] for row in listed}
    assert "klamath-daily" in candor("data", "list").out
    facts = json.loads(candor("data", "info", "klamath-daily", "--json").out)
    assert facts["times"] == 4086
    assert facts["sha256 of the content"] in facts["facts"]
    assert facts["as recorded in the catalogue"] == "yes"
    assert "public domain" in candor("data", "info", "klamath-daily").out


@pytest.mark.parametrize("name", ["klamath-daily", "basin180102"])
def test_info_of_a_dataset_refuses_options_of_files(candor, monkeypatch, tmp_path: Path, name: str) -> None:
    monkeypatch.setenv("CANDOR_DATA", str(tmp_path / "nothing"))
    refused = candor("data", "info", name, "--zone", "UTC")
    assert refused.code == 2 and "--zone cannot be given" in refused.err and not refused.out


def test_info_of_a_dataset_that_is_damaged_does_not_call_it_absent(candor, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CANDOR_DATA", str(tmp_path))
    (tmp_path / "metr-la.parquet").write_bytes(b"no table")
    (tmp_path / "metr-la.edges.csv").write_text("from,to\n")
    shown = candor("data", "info", "metr-la").out
    assert "34,272" in shown and "here: yes, but it cannot be read: " in shown


@pytest.mark.parametrize("named", [("klamath-daily",), ("--preset", "klamath-daily")])
def test_another_copy_of_a_dataset_is_noticed_before_it_is_trained_on(candor, monkeypatch, named) -> None:
    words = ("train", *named, "--model", "last-value", "--run")
    assert "warning" not in candor(*words, "same").err
    entry = datasets.get("klamath-daily")
    cut = replace(entry, load=lambda: entry.load().slice(0, 4000))
    monkeypatch.setattr(datasets, "get", lambda name: cut)
    trained = candor(*words, "other")
    assert trained.code == 0, trained.err
    assert "warning: these data are not those that the catalogue knows" in " ".join(trained.err.split())


def test_info_of_a_dataset_that_is_not_here_says_how_to_get_it(candor, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CANDOR_DATA", str(tmp_path / "nothing"))
    shown = candor("data", "info", "basin180102")
    assert shown.code == 0
    assert "43,824 hours" in shown.out
    assert "CANDOR_DATA" in shown.out
    refused = candor("train", "basin180102")
    assert refused.code == 2
    assert "CANDOR_DATA" in refused.err


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_import_and_export_are_inverse(candor, two_files, format: str) -> None:
    readings, edges = two_files
    where = ("--edges", edges, "--zone", "Europe/Berlin", "--unit", "m")
    assert candor("data", "import", readings, *where, "--out", "panel").code == 0
    assert candor("data", "export", "panel", "--out", "files", "--format", format).code == 0
    again = ("--edges", f"files/edges.{format}", "--sensors", f"files/sensors.{format}", "--zone", "Europe/Berlin")
    assert candor("data", "import", f"files/readings.{format}", *again, "--out", "panel2").code == 0
    prints = [json.loads(Path(p, "panel.json").read_text())["fingerprint"] for p in ("panel", "panel2")]
    assert prints[0] == prints[1]


def test_one_variable_of_a_netcdf_file_is_imported(candor, tmp_path: Path) -> None:
    times, values = pd.date_range("2021-05-01", periods=6, freq="h"), np.arange(12.0).reshape(6, 2)
    content = {name: (("time", "site"), values * factor) for name, factor in (("nitrate", 1), ("flow", 3))}
    xarray.Dataset(content, {"time": times, "site": ["a", "b"]}).to_netcdf("both.nc", engine="netcdf4")
    unsaid = candor("data", "import", "both.nc", "--out", "panel")
    assert unsaid.code == 2 and "--variable" in unsaid.err and "nitrate, flow" in unsaid.err
    assert candor("data", "import", "both.nc", "--variable", "flow", "--out", "panel").code == 0
    np.testing.assert_array_equal(load_panel(Path("panel")).values, values * 3)


def test_check_names_the_trouble_and_leaves_with_two(candor, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3,4\n")
    shown = candor("data", "check", "bad.csv")
    assert shown.code == 2
    assert "no column holds times" in shown.out
    assert "Traceback" not in shown.out + shown.err
    content = json.loads(candor("data", "check", "bad.csv", "--json").out)
    assert content["findings"][0]["level"] == "error"
    assert content["findings"][0]["hint"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "metrla"), "did you mean metr-la"),
        (("train", "nowhere/readings.csv"), "no such file"),
        (("train", "klamath-daily", "--model", "linaer"), "did you mean linear"),
        (("train", "klamath-daily", "horizon=many"), "horizon"),
        (("train", "klamath-daily", "horizon=5000"), "too few"),
        (("train", "klamath-daily", f"horizon={400 * '9'}"), "horizon: a whole number of more than 18 digits"),
        (("train", "klamath-daily", f"epochs={400 * '9'}"), "epochs: a whole number of more than 18 digits"),
        (("train", "klamath-daily", "--seed", 400 * "9", "--model", "last-value"), "seed: a whole number of more"),
        (("train", "klamath-daily", "last=2020-02-30"), "'2020-02-30'"),
        (("train", "klamath-daily", "wings=2"), "wings"),
        (("train", "klamath-daily", "wings"), "key=value"),
        (("train", "klamath-daily", "--preset", "nothing"), "known: "),
        (("train", "klamath-daily", "first=yesterday"), "not a time"),
        (("evaluate", "nowhere"), "run.json"),
        (("data", "info", "nothing-like-it"), "no dataset"),
        (("data", "export", "klamath-daily", "--out", "x", "--format", "xls"), "csv or --format parquet"),
    ],
)
def test_wrong_input_gives_plain_words_and_two(candor, arguments: tuple[str, ...], words: str) -> None:
    shown = candor(*arguments)
    assert shown.code == 2
    assert words in shown.err
    assert "Traceback" not in shown.err
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ("data", "check", "LONG", "--json"),
        ("data", "check", "LONG.csv", "--json"),
        ("data", "info", "LONG"),
        ("data", "import", "readings.csv", "--out", "LONG"),
        ("data", "export", "klamath-daily", "--out", "LONG"),
        ("train", "LONG"),
        ("train", "readings.csv", "--model", "last-value", "--run", "LONG"),
        ("evaluate", "LONG"),
        ("runs", "list", "LONG"),
    ],
)
def test_a_name_too_long_to_be_looked_at_is_the_users_mistake(candor, two_files, arguments: tuple[str, ...]) -> None:
    shown = candor(*(word.replace("LONG", 300 * "x") for word in arguments))
    assert shown.code == 2 and "Traceback" not in shown.err
    assert "name too long" in " ".join((shown.out + shown.err).lower().split())


@pytest.mark.parametrize("command", ["check", "info"])
def test_what_may_not_be_looked_at_is_the_users_mistake(candor, monkeypatch, command: str) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", refuse)
        shown = candor("data", command, "secret/readings.csv")
    assert shown.code == 2 and "Traceback" not in shown.err
    words = " ".join((shown.out + shown.err).split())
    assert "Permission denied" in words and "secret" in words


def test_settings_may_be_longer_than_a_path(candor) -> None:
    shown = candor("train", "--preset", "klamath-daily", f"wings={300 * 'x'}", "--model", "last-value")
    assert shown.code == 2 and "wings" in shown.err and "looked at" not in shown.err


def test_a_bug_is_one_and_says_so(candor, monkeypatch) -> None:
    monkeypatch.setattr("candor.data.catalog.load_dataset", lambda name: 1 / 0)
    shown = candor("train", "klamath-daily")
    assert shown.code == 1
    assert "ZeroDivisionError" in shown.err
    assert "bug in candor" in shown.err


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes")])
def test_too_little_memory_is_no_bug(candor, monkeypatch, error: Exception) -> None:
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr("candor.data.catalog.load_dataset", fail)
    shown = candor("train", "klamath-daily")
    assert shown.code == 2 and "not enough memory" in shown.err and "bug" not in shown.err


def test_the_installed_command_gives_its_exit_code(two_files) -> None:
    readings, _ = two_files
    command = [sys.executable, "-m", "candor", "train", "nothing"]
    done = subprocess.run(command, cwd=readings.parent, capture_output=True, check=False)
    assert done.returncode == 2, done.stderr


def test_a_reader_that_stops_reading_is_no_error() -> None:
    script = """
import os, sys
from candor.cli import run
for flags in ([], ["--json"]):
    reader, writer = os.pipe()
    os.close(reader)  # nobody reads, as after `| head`
    os.dup2(writer, 1)
    assert run(["data", "info", "klamath-daily", *flags]) == 0
    sys.stdout.flush()  # as at the end of a process
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("text", "minutes"), [("15min", 15), ("1h", 60), ("2 hours", 120), ("1d", 1440), ("30s", 0.5)])
def test_intervals_are_read_as_written(text: str, minutes: float) -> None:
    assert parse_interval(text).total_seconds() == 60 * minutes


@given(st.integers(1, 999_999_999), st.sampled_from([timedelta(microseconds=1), timedelta(seconds=1)]))
@example(100, timedelta(minutes=1))  # 1.67 h, in words
@example(36, timedelta(hours=1))
def test_an_interval_that_is_suggested_can_be_typed(count: int, size: timedelta) -> None:
    assert parse_interval(duration_option(count * size)) == count * size


@pytest.mark.parametrize("text", ["500ms", "1hs", "2", "-1h", "0h", "1 week"])
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not an interval"):
        parse_interval(text)


@pytest.mark.parametrize("listed", ["0,1", "0, 1,", " ,0,,1"])
def test_a_comma_too_many_names_nothing(listed: str) -> None:
    assert parse_names(listed, "model") == ["0", "1"] and parse_seeds(listed) == [0, 1]
    with pytest.raises(InputError, match="no model is named"):
        parse_names(" ,", "model")


def test_options_of_files_are_refused_where_data_say_it_of_themselves(candor, two_files) -> None:
    assert candor("data", "import", two_files[0], "--out", "panel").code == 0
    for data in ("panel", "klamath-daily"):
        refused = candor("data", "import", data, "--edges", two_files[1], "--time-column", "when", "--out", "other")
        assert refused.code == 2 and "--edges, --time-column cannot be given" in " ".join(refused.err.split())
        assert candor("data", "info", data).code == 0


def test_every_command_has_help() -> None:
    groups = (app.app, app.data_app, app.runs_app, app.model_app)
    for command in (command for group in groups for command in group.registered_commands):
        assert command.callback is not None
        assert command.callback.__doc__


def test_guesses_that_change_what_data_mean_are_told_by_every_command(candor) -> None:
    hours = [f"0{1 + hour // 24}/05/2020 {hour % 24:02}:00" for hour in range(96)]
    Path("readings.csv").write_text("time;a;b\n" + "".join(f"{hour};1,234;987\n" for hour in hours))
    Path("edges.csv").write_text("a,b,2.5\n")
    np.save("matrix.npy", np.eye(2))
    guesses = ["may divide thousands", "with the day first"]
    for edges, guess in (("matrix.npy", "those of a, b, in this order"), ("edges.csv", "read as from, to, distance")):
        shown = candor("data", "info", "readings.csv", "--edges", edges)
        assert shown.code == 0, shown.err
        assert [words for words in (*guesses, guess) if words not in " ".join(shown.err.split())] == []


@pytest.mark.parametrize(
    ("name", "folder"), [("../../x", "x"), ("/tmp/x", "tmp-x"), ("Fluß 3.b", "Fluß 3.b"), ("", "data")]
)
def test_the_name_in_a_strangers_panel_leads_nowhere_else(candor, two_files, name: str, folder: str) -> None:
    assert candor("data", "import", two_files[0], "--out", "panel").code == 0
    header = json.loads(Path("panel/panel.json").read_text())
    Path("panel/panel.json").write_text(json.dumps(header | {"name": name}))
    assert candor("train", "panel", "--model", "last-value").code == 0
    assert [place.name for place in Path("runs").iterdir()] == [f"{folder}-last-value"]
    assert inputs.folder_name(name) == folder


def test_settings_may_follow_a_preset_that_names_its_data(candor) -> None:
    trained = candor("train", "--preset", "klamath-daily", "horizon=3", "history=9", "--model", "linear", "--run", "r")
    assert trained.code == 0, trained.err
    assert json.loads(Path("r/run.json").read_text())["protocol"]["horizon"] == 3
    assert "no dataset called" in candor("train", "horizon=3").err


def test_only_who_needs_it_is_shown_the_smaller_preset(monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert any("--preset metr-la-small" in line for line in _smaller_preset("candor", "metr-la"))
    assert not [*_smaller_preset("linear", "metr-la"), *_smaller_preset("candor", "klamath-daily")]


def test_what_was_left_out_of_files_is_told_also_when_they_are_imported_or_trained_on(candor, two_files) -> None:
    lines = two_files[0].read_text().splitlines()
    two_files[0].write_text("\n".join([*lines[:9], "no time," + lines[9].split(",", 1)[1], *lines[10:]]))
    for words in (("data", "import", two_files[0], "--out", "panel"), ("train", two_files[0], "--model", "last-value")):
        shown = candor(*words)
        assert shown.code == 0, shown.err
        assert "warning:" in shown.err and "time" in shown.err
