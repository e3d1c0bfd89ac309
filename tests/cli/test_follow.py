"""`candor data follow` from a run to a table, against the local server: rounds, trouble, and plain words."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import certifi
import numpy as np
import pandas as pd
import pytest
from made_basin import GOOD, HOUR, RULES, START, oxygen
from made_runs import PROTOCOL, make_run, river
from usgs_answers import Observation, sensor_id
from usgs_server import Trouble, UsgsServer, served_by

from candor.cli import follow as follow_module
from candor.data.panel import Edges, Panel, Sensor
from candor.data.times import TimeAxis
from candor.runs.run import load_run

SITES, HOURS, LATER = GOOD[2:5], 300, 8
END = START + HOURS * HOUR
NOW = ("--now", f"{END + (LATER - 0.25) * HOUR:%Y-%m-%dT%H:%M}+00:00")


@pytest.fixture
def usgs(tmp_path_factory, monkeypatch) -> Iterator[UsgsServer]:
    """The services on this machine, with three sites at work for some hours more than the run knows."""
    end = "-----END CERTIFICATE-----"  # one is enough: clients load all they are given for each request
    authority = tmp_path_factory.mktemp("certificates") / "one.pem"
    authority.write_text(certifi.contents().partition(end)[0] + end + "\n", encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    monkeypatch.delenv("API_USGS_PAT", raising=False)
    monkeypatch.setattr("dataretrieval.transport.retry._RETRY_BASE_BACKOFF", 0.001)
    with UsgsServer() as server, served_by(server):
        server.observations = [
            Observation(site, "00300", sensor_id((site, 0)), START + hour * HOUR, oxygen(site, hour))
            for site in SITES
            for hour in range(HOURS - 150, HOURS + LATER)
        ]
        yield server


def basin(hours: int = HOURS) -> Panel:
    """Returns what the builder would have made of the first hours of the three sites."""
    values = np.array([[oxygen(site, hour) for site in SITES] for hour in range(hours)], np.float32)
    return Panel(
        values,
        TimeAxis(START, HOUR, hours, "America/Los_Angeles"),
        tuple(Sensor(site, f"RIVER AT {site}", 42.0, -122.0, "mg/l") for site in SITES),
        Edges(np.array([0, 1]), np.array([1, 2]), np.array([5.0, 6.0]), distance_unit="km"),
        name="huc180102",
        provenance={"settings": RULES.model_dump(), "sensors": {site: sensor_id((site, 0)) for site in SITES}},
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", panel=basin())


def numbers(text: str) -> pd.DataFrame:
    return pd.DataFrame(json.loads(text)["forecasts"])


def test_the_forecast_is_that_of_the_hours_until_now(candor, usgs, run: Path) -> None:
    shown = candor("data", "follow", run, *NOW, "--out", "f.csv")
    assert shown.code == 0, shown.err
    expected = load_run(run).forecaster.predict(basin(HOURS + LATER))[0].reshape(-1)
    table = pd.read_csv("f.csv")
    np.testing.assert_allclose(table["forecast"], expected, rtol=1e-5)
    assert pd.Timestamp(table["time"][0]) == pd.Timestamp(END + LATER * HOUR)
    words = " ".join(shown.out.split())
    assert "Sites at 2021-05-13 19:45" in words and "45 min" in words and "RIVER AT USGS-03" in words
    assert "90 % from" in words
    assert "API_USGS_PAT is not set" in shown.err
    assert sorted(path.name for path in (run / "live").iterdir()) == [f"{site}.parquet" for site in SITES]


@pytest.mark.parametrize("bundle", ["klamath", "klamath.zip"])
def test_a_bundle_is_followed_and_its_readings_lie_beside_it(candor, usgs, run: Path, bundle: str) -> None:
    def content() -> dict[Path, bytes]:
        files = [Path(bundle), *Path(bundle).rglob("*")]
        return {path: path.read_bytes() for path in files if path.is_file()}

    made = candor("export", run, "--bundle", bundle)
    assert made.code == 0, made.err
    before = content()
    followed, expected = (candor("data", "follow", path, *NOW, "--json") for path in (bundle, run))
    assert followed.code == 0, followed.err
    pd.testing.assert_frame_equal(numbers(followed.out), numbers(expected.out))
    assert json.loads(followed.out)["run"] == bundle  # and not where it was unpacked
    live = Path(f"{bundle}-results") / "live"
    assert sorted(path.name for path in live.iterdir()) == [f"{one}.parquet" for one in SITES]
    assert before and content() == before


def test_json_says_how_stale_each_site_is_and_the_next_call_is_of_what_is_new(candor, usgs, run: Path) -> None:
    silent = SITES[1]
    usgs.observations = [one for one in usgs.observations if one.site != silent or one.time < END]
    before = f"{END - HOUR / 4:%Y-%m-%dT%H:%M}+00:00"
    first = json.loads(candor("data", "follow", run, "--now", before, "--json").out)
    later = json.loads(candor("data", "follow", run, *NOW, "--json").out)
    assert [site["new"] for site in first["sites"]] == [PROTOCOL.history + 3 * 24] * 3
    stale = {site["id"]: (site["new"], site["revised"], site["age_hours"]) for site in later["sites"]}
    assert stale == {SITES[0]: (8, 0, 0.75), silent: (0, 0, 8.75), SITES[2]: (8, 0, 0.75)}
    assert later["asked"] == f"{END + 7.75 * HOUR:%Y-%m-%dT%H:%M:%S}+00:00"
    assert later["last_reading"] == "2021-05-13T19:00:00-07:00"
    assert len(later["forecasts"]) == PROTOCOL.horizon * 3


def test_it_goes_on_until_ctrl_c_through_trouble(candor, usgs, run: Path, monkeypatch) -> None:
    moments = iter([END, END + HOUR, END + 2 * HOUR])
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        usgs.troubles = [Trouble("continuous", times=99, status=400, body={})] if len(waits) == 1 else []
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(follow_module, "present", lambda *_: next(moments))
    monkeypatch.setattr(follow_module, "_wait", wait)
    shown = candor("data", "follow", run, "--every", 30, "--out", "f.csv")
    assert shown.code == 0, shown.err
    assert shown.out.count("Sites at") == 2
    errors = " ".join(shown.err.split())
    assert "does not accept the request" in errors and "trying again in 30 minutes" in errors and "stopped" in errors
    assert len(waits) == 3 and all(0 < seconds <= 1800 for seconds in waits)
    assert pd.Timestamp(pd.read_csv("f.csv")["time"][0]) == pd.Timestamp(END + 2 * HOUR)


def test_without_a_network_plain_words_say_what_can_be_done_and_offline_does_it(candor, usgs, run: Path) -> None:
    whole = candor("data", "follow", run, *NOW, "--json")
    before = {path.name: path.read_bytes() for path in (run / "live").iterdir()}
    usgs.__exit__()  # nobody listens any more
    refused = candor("data", "follow", run, *NOW)
    words = " ".join(refused.err.split())
    assert refused.code == 2
    assert "cannot be reached" in words and "connection to the internet" in words and "--offline" in words
    assert "Traceback" not in refused.err
    assert {path.name: path.read_bytes() for path in (run / "live").iterdir()} == before
    offline = candor("data", "follow", run, *NOW, "--offline", "--json")
    pd.testing.assert_frame_equal(numbers(offline.out), numbers(whole.out))
    assert "API_USGS_PAT" not in offline.err


def test_a_service_that_is_busy_for_a_moment_is_asked_again(candor, usgs, run: Path) -> None:
    usgs.troubles = [Trouble("continuous", times=2, status=503)]
    assert candor("data", "follow", run, *NOW, "--store", "elsewhere").code == 0
    assert len(usgs.requests) == 3 + 2
    assert len(list(Path("elsewhere").iterdir())) == 3 and not (run / "live").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--every", "1"), "5 or more"),
        (("--every", "nan"), "5 or more"),
        (("--every", "inf"), "every inf minutes"),
        (("--every", "30", *NOW), "give one of them"),
        (("--every", "30", "--offline"), "give one of them"),
        (("--out", "f.xlsx"), ".csv or .parquet"),
        (("--coverage", "2"), "between 0 and 1"),
        (("--now", "soon"), "not a time"),
        (("--offline", *NOW), "no site has a reading"),
    ],
)
def test_wrong_options_give_plain_words_and_no_request(candor, usgs, run: Path, options, words: str) -> None:
    shown = candor("data", "follow", run, *options)
    assert shown.code == 2
    assert words in " ".join(shown.err.split())
    assert "Traceback" not in shown.err and usgs.requests == []


def test_runs_that_have_no_feed_are_refused(candor, usgs, run: Path, tmp_path: Path, monkeypatch) -> None:
    other = make_run(tmp_path / "other", panel=river())
    shown = candor("data", "follow", other, *NOW)
    assert shown.code == 2 and "build-river" in shown.err
    rainy = load_run(run)
    rainy.forecaster.state_["covariates"] = np.ones((2, 1))  # what models keep that read any
    monkeypatch.setattr("candor.runs.bundle.open_run", lambda _: rainy)
    shown = candor("data", "follow", run, *NOW)
    assert shown.code == 2 and "also reads another quantity" in " ".join(shown.err.split())
    assert usgs.requests == []


def test_the_present_is_that_of_the_clock(candor, usgs, run: Path) -> None:
    shown = candor("data", "follow", run)
    assert shown.code == 2  # these sites have been silent for years
    assert "no site has a reading since" in " ".join(shown.err.split())
    (span,) = {address.partition("time=")[2].partition("&")[0] for address in usgs.requests}
    assert datetime.fromisoformat(span.replace("%3A", ":").split("%2F")[1]) <= datetime.now(UTC)
