"""What is wrong with a request is said in one shape and in plain words; what can be borne is borne and said."""

import re
from pathlib import Path

import numpy as np
import pytest

from candor.core.errors import InputError
from candor.data.panel import Panel
from candor.service.server import prepare
from candor.service.settings import ServiceSettings

NOW = "2024-01-26T00:30:00+01:00"
ONE = {"time": "2024-01-26T00:00:00+01:00", "sensor": "g0", "value": 1.0}


@pytest.mark.parametrize(
    ("method", "address", "status", "code", "words"),
    [
        ("GET", "/nothing", 404, "not_found", "nothing under this address"),
        ("GET", "/v1", 404, "not_found", "nothing under this address"),
        ("GET", "/docs", 404, "not_found", "nothing under this address"),
        ("DELETE", "/v1/forecast", 405, "method_not_allowed", "DELETE"),
        ("POST", "/v1/models", 405, "method_not_allowed", "POST"),
        ("GET", "/v1/sensors", 400, "bad_input", "several models"),
        ("GET", "/v1/sensors?model=nobody", 404, "unknown_model", "'nobody'"),
        ("GET", "/v1/sensors?model=", 422, "wrong_shape", "model"),
        ("GET", "/v1/sensors?model=small&modle=plain", 422, "wrong_shape", "modle"),
        ("GET", "/v1/history?model=small", 422, "wrong_shape", "sensor"),
        ("GET", "/v1/history?model=small&sensor=g9", 404, "unknown_sensor", "'g9'"),
        ("GET", "/v1/history?model=small&sensor=%FF%00", 404, "unknown_sensor", "no sensor"),
        ("GET", "/v1/history?model=small&sensor=g0&steps=0", 422, "wrong_shape", "steps"),
        ("GET", "/v1/history?model=small&sensor=g0&steps=many", 422, "wrong_shape", "steps"),
        ("GET", "/v1/history?model=small&sensor=g0&steps=500000", 400, "bad_input", "too many"),
        ("GET", "/v1/history?model=small&sensor=g0&until=now", 422, "wrong_shape", "until"),
        ("GET", "/v1/history?model=small&sensor=g0&until=soon", 400, "bad_input", "not a time"),
        ("GET", "/v1/forecast/latest?model=small&coverage=1", 422, "wrong_shape", "coverage"),
        ("GET", "/v1/forecast/latest?model=small&coverage=nan", 422, "wrong_shape", "coverage"),
        ("GET", "/v1/forecast/at?model=small", 422, "wrong_shape", "time"),
        ("GET", "/v1/forecast/at?model=small&time=yesterday", 400, "bad_input", "not a time"),
        ("GET", "/v1/forecast/at?model=small&time=2024-02-30", 400, "bad_input", "not a time"),
        ("GET", "/v1/forecast/at?model=small&time=2030-01-01", 400, "bad_input", "must be in the record"),
        ("GET", "/v1/forecast/at?model=small&time=2024-01-01", 400, "bad_input", "must be in the record"),
        ("GET", "/v1/forecast/at?model=small&time=0001-01-01", 400, "bad_input", "not a time"),
        ("GET", "/v1/forecast/at?model=small&time=1700-01-01", 400, "bad_input", "out of all proportion"),
        ("GET", "/v1/forecast/at?model=small&time=9999-12-31T23:59-12:00", 400, "bad_input", "not a time"),
        ("GET", "/v1/overview?model=small&time=2031-01-01", 400, "bad_input", "must be in the record"),
    ],
)
def test_a_wrong_address_or_question_is_refused(live, method, address, status, code, words) -> None:
    found, error = live.refusal(method, address)
    assert (found, error["code"]) == (status, code)
    assert words in error["what"]


def test_a_method_that_is_not_possible_is_told_which_are(live) -> None:
    assert live.client.delete("/v1/forecast").headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "body"),
        (b"not json", "JSON"),
        (b"[]", "body"),
        (b'{"model": "small"}', "readings"),
        (b'{"model": "small", "readings": []}', "at least 1"),
        (b'{"model": "small", "readings": [{"time": "2024-01-01", "sensor": "g0"}]}', "value"),
        (b'{"model": "small", "readings": [{"time": "2024-01-01", "sensor": "g0", "value": "10"}]}', "number"),
        (b'{"model": "small", "readings": [{"time": "2024-01-01", "sensor": "g0", "value": true}]}', "number"),
        (b'{"model": "small", "readings": [{"time": "2024-01-01", "sensor": "g0", "value": NaN}]}', "finite"),
        (b'{"model": "small", "readings": [{"time": "2024-01-01", "sensor": "g0", "value": -Infinity}]}', "finite"),
        (b'{"model": "small", "readings": [{"time": "2024-01-01", "sensor": "g0", "value": 1e400}]}', "finite"),
        (b'{"model": "small", "readings": [{"time": "2024-01-01", "sensor": "g0", "value": 1e39}]}', "less than"),
        (b'{"model": "small", "readings": [{"time": 1704067200, "sensor": "g0", "value": 1}]}', "string"),
        (b'{"model": "small", "readings": [{"time": "2024-01-01", "sensor": 0, "value": 1}]}', "string"),
        (b'{"model": "small", "readings": [{"time": "2024-01-01", "sensor": "g0", "value": 1, "x": 1}]}', "Extra"),
        (b'{"model": "small", "readings": {"g0": 1}}', "list"),
        (b'{"model": 7, "readings": [{"time": "2024-01-01", "sensor": "g0", "value": 1}]}', "model"),
    ],
)
def test_a_body_of_another_shape_is_refused(live, content: bytes, words: str) -> None:
    status, error = live.refusal("POST", "/v1/forecast", content=content, headers={"content-type": "application/json"})
    assert (status, error["code"]) == (422, "wrong_shape")
    assert words in error["what"]


def test_of_many_wrong_readings_the_first_is_told_and_the_others_are_not_collected(live) -> None:
    wrong = [ONE] + [ONE | {"value": "much"}] * 1_000
    status, error = live.refusal("POST", "/v1/readings", json={"model": "small", "readings": wrong})
    assert (status, error["code"]) == (422, "wrong_shape")
    assert "readings.1.value" in error["what"] and "readings.2" not in error["what"] and "more" not in error["what"]


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"model": "small", "readings": ' + b"9" * 10_000 + b"}",
        b'{"model": "small", "readings": "\xff\xfe"}',
        b'{"model": "\\ud800", "readings": [{"time": "2024-01-01", "sensor": "\\udfff", "value": 1}]}',
    ],
)
def test_a_body_made_to_hurt_is_refused_in_the_same_shape(live, content: bytes) -> None:
    status, _ = live.refusal("POST", "/v1/forecast", content=content, headers={"content-type": "application/json"})
    assert status in (400, 404, 422)


def test_a_form_of_a_foreign_page_is_no_question(live) -> None:
    form = {"content-type": "text/plain"}  # what a browser sends without asking the service first
    status, error = live.refusal("POST", "/v1/readings", content=b'{"readings": []}', headers=form)
    assert (status, error["code"]) == (422, "wrong_shape")


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"readings": [ONE]}, 400, "1 of the model's 5 sensors"),
        ({"readings": [ONE | {"sensor": "x"}]}, 400, "none of the model's 5 sensors"),
        ({"readings": [ONE | {"sensor": f"g{i}"} for i in range(5)]}, 400, "1 rows until the last reading"),
        ({"readings": [ONE | {"sensor": f"g{i}", "value": None} for i in range(5)]}, 400, "reading"),
        ({"readings": [ONE, ONE | {"time": "1901-01-01"}, ONE | {"time": "1971-01-01T00:00Z"}]}, 400, "sensors"),
        ({"readings": [ONE | {"time": "noon"}]}, 400, "not a time"),
        ({"now": "2024-01-20"}, 400, "none later than now"),
        ({"now": "never"}, 400, "not a time"),
        ({"below": 5, "above": 6}, 400, "two questions"),
        ({"model": "nobody"}, 404, "no model"),
        ({"coverage": 0}, 422, "coverage"),
        ({"allow_short": "yes"}, 422, "allow_short"),
    ],
)
def test_readings_that_make_no_forecast_are_refused(live, panel: Panel, sendable, change, status, words) -> None:
    request = {"model": "small", "readings": sendable(panel.slice(570, 600)), "now": NOW} | change
    found, error = live.refusal("POST", "/v1/forecast", json=request)
    assert found == status
    assert words in error["what"]
    assert "--" not in error["hint"]  # a client has no command line


def test_what_a_client_can_send_instead_is_said(live, panel: Panel, sendable) -> None:
    rows = sendable(panel.slice(570, 600))
    for change, words in (
        ({"readings": [row | {"value": None} for row in rows]}, "null"),
        ({"now": "2024-01-20"}, "offset"),
        ({"readings": rows[-5:]}, "allow_short"),
    ):
        request = {"model": "small", "readings": rows, "now": NOW} | change
        assert words in live.refusal("POST", "/v1/forecast", json=request)[1]["hint"]
    shouted = [row | {"sensor": row["sensor"].upper()} for row in rows]
    findings = live.post("/v1/forecast", model="small", readings=shouted, now=NOW)["findings"]
    assert any("/v1/sensors" in finding["hint"] for finding in findings if "state no unit" in finding["what"])


def test_no_answer_names_an_option_of_the_command_line() -> None:
    import candor.data.alignment as alignment
    from candor.service.readings import _CLIENT_HINTS

    options = set(re.findall(r"--[a-z-]+", Path(alignment.__file__).read_text(encoding="utf-8")))
    # The one hint that names a lower bound names the number for missing before it.
    assert {"--missing", "--zone", "--unit"} <= options <= {*_CLIENT_HINTS, "--minimum"}


def test_readings_over_centuries_do_not_fill_the_memory(start, linear_run: Path) -> None:
    readings = [ONE | {"sensor": f"g{i}", "time": time} for i in range(5) for time in ("1900-01-02", ONE["time"])]
    service = start(linear_run, most_cells=100_000)
    status, error = service.refusal("POST", "/v1/forecast", json={"readings": readings, "now": NOW})
    assert (status, error["code"]) == (400, "bad_input")
    assert "1,087,537 steps of 1 h for 5 sensors" in error["what"]


def test_more_sensors_than_the_service_takes_are_refused(start, linear_run: Path) -> None:
    service = start(linear_run, most_sensors=5)
    readings = [ONE | {"sensor": f"s{i}"} for i in range(6)]
    status, error = service.refusal("POST", "/v1/forecast", json={"readings": readings})
    assert (status, error["code"]) == (413, "too_large")


@pytest.mark.parametrize(("limit", "words"), [({"most_sensors": 4}, "5 sensors"), ({"most_horizon": 5}, "6 steps")])
def test_a_model_larger_than_the_limits_is_not_served(linear_run: Path, tmp_path: Path, limit, words) -> None:
    with pytest.raises(InputError, match=words):
        prepare([linear_run], ServiceSettings(port=0, store=tmp_path, **limit), print)


@pytest.mark.parametrize(
    ("change", "level", "words"),
    [
        (lambda rows: [*rows, *rows[:7]], "warning", "share sensor and moment"),
        (lambda rows: [*rows, rows[-5] | {"value": 1e9}], "warning", "far outside"),
        (lambda rows: [*rows, rows[0] | {"sensor": "stranger"}], "note", "unknown to the model"),
        (lambda rows: [row | {"sensor": row["sensor"].upper()} for row in rows], "note", "spelled unlike"),
        (lambda rows: [row for row in rows if row["sensor"] != "g1"], "warning", "absent"),
        (lambda rows: [row | {"time": row["time"].replace(":00:00+", ":04:00+")} for row in rows], "note", "beside"),
        (lambda rows: rows[-25:], "note", "rows before the first were added"),
    ],
)
def test_trouble_that_can_be_borne_is_said(live, panel: Panel, sendable, change, level, words) -> None:
    readings = change(sendable(panel.slice(550, 600)))
    content = live.post("/v1/forecast", model="small", readings=readings, now=NOW, allow_short=True)
    assert any(finding["level"] == level and words in finding["what"] for finding in content["findings"])
    assert not [finding for finding in content["findings"] if "--" in finding["hint"]]
    assert len(content["forecasts"]) == 20
    assert np.isfinite([row["forecast"] for row in content["forecasts"]]).all()


@pytest.mark.parametrize("model", ["small", "plain"])
def test_readings_out_of_all_proportion_are_no_bug(live, panel: Panel, sendable, model: str) -> None:
    readings = [row | {"value": 1e15} for row in sendable(panel.slice(550, 600))]
    answer = live.client.post("/v1/forecast", json={"model": model, "readings": readings, "now": NOW})
    assert answer.status_code in (200, 400), answer.text


def test_times_without_an_offset_are_read_on_the_clock_of_the_run(live, panel: Panel, sendable) -> None:
    readings = sendable(panel.slice(550, 600))
    bare = [row | {"time": row["time"][:19]} for row in readings]
    one, other = (live.post("/v1/forecast", model="small", readings=rows, now=NOW) for rows in (readings, bare))
    assert one == other


def test_the_order_of_readings_does_not_matter(live, panel: Panel, sendable) -> None:
    readings = sendable(panel.slice(550, 600))
    shuffled = [readings[place] for place in np.random.default_rng(3).permutation(len(readings))]
    one, other = (
        live.post("/v1/forecast", model="small", readings=rows, now=NOW)["forecasts"] for rows in (readings, shuffled)
    )
    assert one == other


@pytest.fixture(scope="module")
def keeping(start_for_all, linear_run: Path):
    """A service that has kept nothing yet, and is sent only what it may not keep."""
    return start_for_all(linear_run)


@pytest.mark.parametrize(
    ("reading", "status", "code"),
    [
        ({"sensor": "g9"}, 404, "unknown_sensor"),
        ({"time": "2199-01-01"}, 400, "bad_input"),
        ({"time": "1924-01-01"}, 400, "bad_input"),
        ({"time": "?" * 20}, 400, "bad_input"),
        ({"value": "1"}, 422, "wrong_shape"),
    ],
)
def test_readings_that_cannot_be_kept_are_refused_all_together(keeping, reading, status, code) -> None:
    found, error = keeping.refusal("POST", "/v1/readings", json={"readings": [ONE, ONE | reading]})
    assert (found, error["code"]) == (status, code)
    last = keeping.get("/v1/history", sensor="g0", steps=1)["values"]
    assert last != [1.0]


def test_one_reading_of_another_century_does_not_stretch_the_record(start, linear_run: Path, panel: Panel) -> None:
    service = start(linear_run, most_steps_back=100)
    grid, readings = panel.times.slice(-101, 0).local, []
    for row, is_kept in ((0, False), (1, True)):
        readings.append(ONE | {"time": grid[row].isoformat()})
        answer = service.client.post("/v1/readings", json={"readings": [readings[-1]]})
        assert answer.status_code == (200 if is_kept else 400), answer.text
    error = service.refusal("POST", "/v1/readings", json={"readings": readings})[1]
    assert "100 steps of 1 h before the run's own record, 2024-01-01T" in error["what"]
    assert grid[1].isoformat() in error["hint"]
    assert service.get("/v1/models")["models"][0]["first_origin"] == panel.times.slice(-76, 0).local[0].isoformat()
    withdrawn = [reading | {"value": None} for reading in readings]
    assert service.post("/v1/readings", readings=withdrawn)["accepted"] == 2
    assert service.get("/v1/models")["models"][0]["first_origin"] == panel.times.local[24].isoformat()


def test_a_model_that_is_not_candor_explains_nothing(live) -> None:
    status, error = live.refusal("POST", "/v1/explain", json={"model": "plain", "sensor": "g0"})
    assert (status, error["code"]) == (409, "no_explanation")
    status, error = live.refusal("POST", "/v1/explain", json={"model": "small", "sensor": "g7"})
    assert (status, error["code"]) == (404, "unknown_sensor")


def test_a_bug_is_told_in_the_same_shape_and_tells_nothing_else(start, linear_run: Path, monkeypatch) -> None:
    from candor.service import answers

    def fail(*arguments: object) -> None:
        raise RuntimeError("a secret of the machine")

    monkeypatch.setattr(answers, "describe_network", fail)
    status, error = start(linear_run).refusal("GET", "/v1/sensors")
    assert (status, error["code"]) == (500, "internal")
    assert "secret" not in str(error)
