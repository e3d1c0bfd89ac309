"""Requests to services: retries, pauses, several at a time, and clear errors when all fails."""

import signal
import threading

import httpx
import pytest
from dataretrieval.transport import http
from forked import Forked
from three_sites import ALL, AXIS, SITES, hours_of
from usgs_answers import recorded
from usgs_server import Trouble, UsgsServer, served_by

from candor.core.errors import InputError
from candor.river import readings as readings_module
from candor.river.cache import ResponseCache
from candor.river.client import ServiceClient
from candor.river.readings import as_frame, fetch_readings
from candor.river.retries import Clock, RetryPolicy

pytestmark = pytest.mark.usefixtures("three_sites")


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_service_that_is_busy_for_a_while_is_asked_again(usgs, client, status: int) -> None:
    usgs.troubles += [Trouble(site, times=3, status=status, body={"code": "busy"}) for site in SITES]
    with served_by(usgs, retries=0):
        assert hours_of(client) == ALL


def test_the_client_itself_tries_again_too(usgs, tmp_path) -> None:
    usgs.troubles.append(Trouble("USGS-2", times=3, status=503))
    assert hours_of(ServiceClient(ResponseCache(tmp_path / "cache"), RetryPolicy(attempts=1))) == ALL
    assert len(usgs.asked("USGS-2")) == 4


class Noting(Clock):
    """A clock on which pauses are over at once, and noted."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def now(self) -> float:
        return sum(self.waits)

    def wait(self, seconds: float, stop: threading.Event) -> None:
        self.waits.append(seconds)


class TwoWait(Clock):
    """A clock that stands still until two workers wait, and notes for how long each of them would."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.hour = 0.0
        self.both = threading.Barrier(2, timeout=20)

    def now(self) -> float:
        return self.hour

    def wait(self, seconds: float, stop: threading.Event) -> None:
        self.waits.append(seconds)
        self.both.wait()
        self.hour = 3600.0


def test_a_pause_that_the_service_asks_for_is_kept_by_everybody(usgs, tmp_path) -> None:
    paused, clock, true_answer = threading.Event(), TwoWait(), usgs.answer

    def second_after_the_pause(address: str):
        if "USGS-2" in address:
            paused.wait(20)
        return true_answer(address)

    usgs.answer = second_after_the_pause
    usgs.troubles += [
        Trouble("USGS-1", status=429, headers={"Retry-After": "1800"}),
        Trouble("USGS-2", status=503),  # names no time; alone it would be asked again after a moment
    ]
    client = ServiceClient(
        ResponseCache(tmp_path / "cache"),
        RetryPolicy(first_wait=0.001),
        report=lambda what, share: paused.set() if "pause of 1800 s" in what else None,
        clock=clock,
    )
    with served_by(usgs, retries=0):
        assert hours_of(client) == ALL
    assert clock.waits == [1800.0, 1800.0]


@pytest.mark.parametrize(
    ("status", "words", "expected"),
    [(503, "out of order", []), (503, "out of order", [5, 10]), (429, "too many requests", [780, 780])],
)
def test_pauses_grow_and_a_question_is_not_asked_for_ever(usgs, tmp_path, status, words, expected) -> None:
    clock = Noting()
    usgs.troubles.append(Trouble("", times=99, status=status))
    client = ServiceClient(ResponseCache(tmp_path / "cache"), RetryPolicy(attempts=1 + len(expected)), clock=clock)
    with served_by(usgs, retries=0), pytest.raises(InputError, match=words):
        fetch_readings(client, SITES[:1], "00300", AXIS)
    assert len(usgs.requests) == 1 + len(expected)
    assert clock.waits == pytest.approx(expected)


def test_a_pause_that_is_too_long_is_told_of_with_the_way_to_a_key(usgs, tmp_path) -> None:
    usgs.troubles.append(Trouble("continuous", times=99, status=429, headers={"Retry-After": "7200"}))
    clock = Noting()
    with pytest.raises(InputError) as caught:
        hours_of(ServiceClient(ResponseCache(tmp_path / "cache"), clock=clock))
    assert "too many requests" in caught.value.what and clock.waits == []
    assert "API_USGS_PAT" in caught.value.hint and "signup" in caught.value.hint


def test_a_service_that_stays_out_of_order_is_told_of_and_what_was_answered_is_kept(usgs, client, tmp_path) -> None:
    usgs.troubles.append(Trouble("USGS-3", times=999, status=503))
    with served_by(usgs, retries=0), pytest.raises(InputError, match="out of order") as caught:
        hours_of(client)
    assert str(tmp_path / "cache") in caught.value.hint
    kept = len(list((tmp_path / "cache").rglob("*.json")))
    assert kept == 2
    usgs.troubles.clear()
    usgs.requests.clear()
    assert hours_of(client) == ALL
    assert len(usgs.requests) == 1


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (400, "error_time_envelope", "limited to 1100 day"),
        (400, "error_unknown_property", "requested property wasn't found"),
        (403, "error_invalid_key", "An invalid api_key was supplied"),
    ],
)
def test_the_words_of_the_service_reach_the_reader_and_a_refusal_is_not_asked_again(
    usgs, client, status, body, words
) -> None:
    usgs.troubles.append(Trouble("continuous", times=99, status=status, body=recorded(body)))
    with pytest.raises(InputError) as caught:
        client.get_all([readings_module.readings_request("USGS-1", "00300", AXIS.start, AXIS.end)], "asking")
    assert words in caught.value.what
    assert usgs.address not in caught.value.what
    assert len(usgs.requests) == 1
    if status == 403:
        assert "API_USGS_PAT" in caught.value.hint


def test_cut_connections_lose_nothing(usgs, client) -> None:
    usgs.troubles.append(Trouble("USGS-2", times=2, is_cut=True))
    assert hours_of(client) == ALL


@pytest.mark.parametrize("retries", [0, 4])  # asked again by us, or by the client
def test_an_answer_that_does_not_come_in_time_is_asked_for_again(usgs, client, monkeypatch, retries: int) -> None:
    is_asked_again, true_answer = threading.Event(), usgs.answer

    def first_only_after_the_second(address: str):
        if "USGS-1" in address and len(usgs.asked("USGS-1")) == 1:
            is_asked_again.wait(60)
        elif "USGS-1" in address:
            is_asked_again.set()
        return true_answer(address)

    usgs.answer = first_only_after_the_second
    # Half a second instead of a minute for the answer, but as long as ever for everything else.
    monkeypatch.setitem(http.HTTPX_ASYNC_DEFAULTS, "timeout", httpx.Timeout(60.0, read=0.5))
    with served_by(usgs, retries=retries):
        assert hours_of(client) == ALL
    assert len(usgs.asked("USGS-1")) >= 2


def test_a_connection_cut_on_a_later_page_starts_the_walk_again(usgs, client, monkeypatch) -> None:
    monkeypatch.setattr(readings_module, "PAGE", 5)
    usgs.troubles += [Trouble("cursor", times=2, is_cut=True), Trouble("cursor", status=503)]
    assert hours_of(client) == ALL
    assert [len(one["also"]) for one in client.record] == [4, 4, 4], "every page once, however often it was asked for"
    frame = as_frame(fetch_readings(client, ["USGS-1"], "00300", AXIS)["USGS-1"])
    assert frame["value"].tolist() == [f"{hour}.5" for hour in range(24)]


def test_an_answer_that_is_no_json_is_told_of_and_not_kept(usgs, client, tmp_path) -> None:
    usgs.troubles.append(Trouble("continuous", times=99, status=200, body=b"<html>maintenance</html>"))
    with pytest.raises(InputError, match="cannot be read"):
        hours_of(client)
    assert list((tmp_path / "cache").rglob("*.answer")) == []


@pytest.mark.parametrize(
    ("where", "body"),  # the first page, or a later one
    [("continuous", {"message": "maintenance"}), ("cursor", {"features": None}), ("cursor", ["maintenance"])],
)
def test_an_answer_that_is_no_collection_of_readings_is_told_of_and_not_kept(
    usgs, client, tmp_path, monkeypatch, where: str, body: object
) -> None:
    monkeypatch.setattr(readings_module, "PAGE", 12)
    trouble = Trouble(where, times=99, status=200, body=body)
    usgs.troubles.append(trouble)
    with pytest.raises(InputError, match="cannot be read") as caught:
        hours_of(client)
    assert "no collection of features" in caught.value.what and usgs.address not in caught.value.what
    assert ("maintenance" in caught.value.what) == ("maintenance" in str(body))
    assert list((tmp_path / "cache").rglob("*.answer")) == []
    usgs.troubles.clear()
    assert hours_of(client) == ALL


def test_a_service_that_has_no_readings_is_believed(usgs, client) -> None:
    usgs.observations.clear()
    assert hours_of(client) == dict.fromkeys(SITES, 0)


@pytest.mark.parametrize("place", [{}, {"event_hooks": None}, {"event_hooks": {"response": ()}}])
def test_a_client_whose_answers_cannot_be_looked_at_is_refused(usgs, client, tmp_path, monkeypatch, place) -> None:
    monkeypatch.setattr(http, "HTTPX_ASYNC_DEFAULTS", http.HTTPX_DEFAULTS | place)  # as in some later version
    with pytest.raises(InputError, match="dataretrieval") as caught:
        hours_of(client)
    assert "pip install" in caught.value.hint
    assert list((tmp_path / "cache").rglob("*.answer")) == []


def test_without_a_network_the_words_are_plain_and_come_at_once(tmp_path) -> None:
    with UsgsServer() as server:
        pass  # nobody listens at its address any more
    clock = Noting()
    with served_by(server, retries=0), pytest.raises(InputError) as caught:
        hours_of(ServiceClient(ResponseCache(tmp_path / "cache"), clock=clock))
    assert "cannot be reached" in caught.value.what and clock.waits == []
    assert "connection to the internet" in caught.value.hint and "run the same command again" in caught.value.hint


def test_a_few_questions_are_under_way_at_a_time_and_no_more(usgs, tmp_path) -> None:
    three, true_answer = threading.Barrier(3), usgs.answer

    def answer_three_together(address: str):
        three.wait(60)
        return true_answer(address)

    usgs.answer = answer_three_together
    usgs.troubles.append(Trouble("", times=99, seconds=0.05))  # a fourth would have time to come
    sites = [f"USGS-{number}" for number in range(9)]
    fetch_readings(ServiceClient(ResponseCache(tmp_path / "cache"), RetryPolicy(at_once=3)), sites, "00300", AXIS)
    assert usgs.most_at_once == 3


def test_progress_runs_from_what_is_known_to_the_end(usgs, client, tmp_path) -> None:
    fetch_readings(client, SITES[:1], "00300", AXIS)
    told: list[tuple[str, float | None]] = []
    fetch_readings(
        ServiceClient(ResponseCache(tmp_path / "cache"), report=lambda what, share: told.append((what, share))),
        SITES, "00300", AXIS,
    )  # fmt: skip
    assert [share for _, share in told] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert told[-1][0] == "fetching readings | fetching readings: 3 of 3 answers"


def test_a_killed_job_leaves_whole_answers_and_goes_on_with_the_rest(usgs, tmp_path) -> None:
    arrived, is_killed, true_answer = threading.Event(), threading.Event(), usgs.answer

    def hold_the_third(address: str):
        if "USGS-3" in address:
            arrived.set()
            is_killed.wait(60)
        return true_answer(address)

    usgs.answer = hold_the_third

    def fetch() -> None:
        hours_of(ServiceClient(ResponseCache(tmp_path / "cache"), RetryPolicy(at_once=1)))

    with Forked(fetch) as job:
        assert arrived.wait(60)
        job.kill()
        assert job.wait() == -signal.SIGKILL
    is_killed.set()
    usgs.answer = true_answer
    usgs.requests.clear()
    client = ServiceClient(ResponseCache(tmp_path / "cache"))
    assert hours_of(client) == ALL
    assert [address for address in usgs.requests if "USGS-3" not in address] == []
    assert client.cache.damaged == []


def test_an_interruption_ends_the_work_and_the_next_call_goes_on(usgs, tmp_path) -> None:
    def press_a_key(what: str, share: float | None) -> None:
        if "1 of 3" in what:
            raise KeyboardInterrupt

    usgs.troubles.append(Trouble("USGS-2", status=503, headers={"Retry-After": "3000"}))  # would wait for long
    with served_by(usgs, retries=0), pytest.raises(KeyboardInterrupt):
        hours_of(ServiceClient(ResponseCache(tmp_path / "cache"), RetryPolicy(at_once=1), report=press_a_key))
    assert usgs.asked("USGS-3") == []
    assert hours_of(ServiceClient(ResponseCache(tmp_path / "cache"))) == ALL
    assert len(usgs.asked("USGS-1")) == 1
