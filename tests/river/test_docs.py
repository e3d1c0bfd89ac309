"""What the page about rivers shows is what happens."""

import math
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import typer

from candor.cli import run
from candor.cli.app import app
from candor.data.panel_store import load_panel
from candor.river import rain, readings
from candor.river.client import KEY_ADDRESS, KEY_VARIABLE
from candor.river.imerg import _HOW_TO_LOG_IN
from candor.river.retries import RetryPolicy

PAGE = (Path(__file__).parents[2] / "docs" / "river.md").read_text(encoding="utf-8")
COMMANDS = [
    line.strip() for line in PAGE.replace("\\\n", " ").splitlines() if re.match(r"    (\w+=\S+ )?candor ", line)
]


def test_the_two_files_and_the_third_become_a_panel(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in re.findall(r"^```csv (\S+)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL):
        Path(name).write_text(content, encoding="utf-8")
    shown = [command for command in COMMANDS if "readings.csv" in command]
    assert [shlex.split(command)[2] for command in shown] == ["check", "import"]
    for command in shown:
        assert run(shlex.split(command)[1:]) == 0, command
    panel = load_panel(Path("bukhan"))
    assert panel.sensor_ids == ("S01010", "S01012", "S01001")
    assert (len(panel.edges), panel.edges.distance_unit, panel.unit) == (3, "km", "mg/L")
    assert panel.times.zone == "Asia/Seoul"
    assert (~panel.mask).sum() == 1


def test_every_option_shown_is_there() -> None:
    tree = typer.main.get_command(app)
    assert len(COMMANDS) >= 6
    for command in COMMANDS:
        words = [word for word in shlex.split(command, comments=True) if not re.match(r"\w+=", word)][1:]
        here = tree
        while words and words[0] in getattr(here, "commands", {}):
            here = here.commands[words.pop(0)]
        known = {option for parameter in here.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, command
    build = tree.commands["data"].commands["build-river"]  # type: ignore[attr-defined]
    options = {option for parameter in build.params for option in parameter.opts}
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) - {"--interval"} <= options


def test_the_page_tells_how_to_log_in_which_hosts_are_asked_and_how_to_get_a_key() -> None:
    from dataretrieval.credentials import WATERDATA_BASE_URL
    from dataretrieval.nldi import NLDI_API_BASE_URL

    hosts = {urlsplit(address).netloc for address in (WATERDATA_BASE_URL, NLDI_API_BASE_URL)}
    for words in (*hosts, "EARTHDATA_TOKEN", "EARTHDATA_USERNAME", ".netrc", "HTTPS_PROXY", KEY_VARIABLE, KEY_ADDRESS):
        assert words in PAGE
    for name in re.findall(r"NASA GESDISC [A-Z ]+[A-Z]|https://urs\.\S+gov|machine urs\S+ login \w+", _HOW_TO_LOG_IN):
        assert name in PAGE


def test_as_many_requests_are_under_way_as_the_page_promises() -> None:
    in_words = {4: "four"}
    assert f"{in_words[RetryPolicy().at_once]} requests are under way at a time" in PAGE.lower()
    assert f"seconds a page and {in_words[RetryPolicy().at_once]} at a time" in PAGE
    assert f"{in_words[rain._WORKERS]} files at a time" in PAGE


def test_the_arithmetic_of_the_page_is_right() -> None:
    files = 2 * 43_824
    assert f"{files:,} files" in PAGE
    assert round(files * 1.2e6 / 1e9) == 105 and "105 GB" in PAGE
    seconds = [files * 4 * one / rain._WORKERS / 3600 for one in (0.25, 0.5)]
    assert [round(hours) for hours in seconds] == [6, 12] and "6 to 12 hours" in PAGE
    pages = 5 * math.ceil(96 * readings.DAYS_AT_A_TIME / readings.PAGE)
    assert 11 * pages == 220 and "11 x 20 = 220 pages" in PAGE
