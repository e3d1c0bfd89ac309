"""Clients that send too much, too slowly or too often do not bring the service down, and are told so."""

import json
import socket
import struct
import threading
import time
from pathlib import Path

import httpx
import pytest

from candor.service import middleware
from candor.service.batching import Worker

TIMEOUT = 120  # seconds for a busy machine; no test waits so long for something that must not happen


@pytest.fixture
def short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the service wait only a moment for the rest of a body that it refused and nobody sends."""
    monkeypatch.setattr(middleware, "_LINGER_SECONDS", 0.2)


@pytest.fixture(scope="module")
def terse(start_for_all, linear_run: Path):
    """A service of small bodies."""
    return start_for_all(linear_run, most_body_bytes=20_000)


@pytest.fixture(scope="module")
def narrow(start_for_all, linear_run: Path):
    """A service that has room for one body, and all the time in the world."""
    return start_for_all(linear_run, most_body_bytes=50_000, most_held_bytes=60_000, body_seconds=10 * TIMEOUT)


def connect(service) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=TIMEOUT)


def read_answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Returns status, headers and body of an answer, read until the service closes the connection."""
    received = b""
    while part := connection.recv(65536):
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return int(status.split()[1]), headers, body


def is_closed(connection: socket.socket) -> bool:
    """Returns whether the service closes the connection without a word; in what way is all the same."""
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


def head(length: str) -> bytes:
    return (
        f"POST /v1/forecast HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
    ).encode()


@pytest.mark.usefixtures("short_linger")
def test_a_chunked_body_is_cut_at_the_limit_while_it_streams_in(terse) -> None:
    with connect(terse) as connection:
        connection.sendall(head("Transfer-Encoding: chunked"))
        chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
        for _ in range(5):  # 20,480 bytes, and the end of the body is never sent
            connection.sendall(chunk)
        status, headers, body = read_answer(connection)
    assert (status, json.loads(body)["error"]["code"]) == (413, "too_large")
    assert headers["connection"] == "close"


@pytest.mark.usefixtures("short_linger")
def test_a_body_that_announces_its_size_is_refused_before_it_is_sent(terse) -> None:
    with connect(terse) as connection:
        connection.sendall(head("Content-Length: 20001"))
        status, _, body = read_answer(connection)
    assert (status, json.loads(body)["error"]["code"]) == (413, "too_large")


def test_a_client_that_sends_on_after_the_refusal_still_reads_it(terse) -> None:
    answer = terse.client.post("/v1/forecast", content=iter([b"x" * 1_000_000] * 8))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


def test_a_body_at_the_limit_is_read(terse) -> None:
    status, error = terse.refusal("POST", "/v1/forecast", content=b"x" * 20_000)
    assert (status, error["code"]) == (422, "wrong_shape")


def test_bodies_of_all_clients_together_are_bounded(narrow) -> None:
    with connect(narrow) as first:
        first.sendall(head("Content-Length: 50000") + b" " * 40_000)
        deadline = time.monotonic() + TIMEOUT
        codes = set()
        while "overload" not in codes and time.monotonic() < deadline:  # until the first has been read
            status, error = narrow.refusal("POST", "/v1/forecast", content=b" " * 30_000)
            codes.add(error["code"])
        assert status == 429 and codes <= {"overload", "wrong_shape"}
    first.close()


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_client_that_leaves_in_the_middle_of_its_body_holds_nothing(narrow, is_reset: bool) -> None:
    def wait_for(wanted: int) -> None:
        """Sends whole bodies until they are answered as they should be now."""
        deadline, status = time.monotonic() + TIMEOUT, 0
        while status != wanted and time.monotonic() < deadline:
            status, _ = narrow.refusal("POST", "/v1/forecast", content=b" " * 30_000)
        assert status == wanted

    for _ in range(3):  # together more than may be held
        with connect(narrow) as connection:
            connection.sendall(head("Content-Length: 50000") + b" " * 40_000)
            wait_for(429)  # the half is in memory, and there is no room for others
            if is_reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wait_for(422)


@pytest.mark.usefixtures("short_linger")
def test_a_slow_body_holds_nothing_for_ever(start, linear_run: Path) -> None:
    service = start(linear_run, body_seconds=0.3, most_waiting=1)
    with connect(service) as connection:
        connection.sendall(head("Content-Length: 1000") + b"{")
        # Its body is not there: it holds no place in the queue, and others are served.
        assert service.get("/v1/models")["models"]
        status, _, body = read_answer(connection)
    assert (status, json.loads(body)["error"]["code"]) == (408, "too_slow")


def test_a_slow_head_is_given_up(start, linear_run: Path) -> None:
    service = start(linear_run, header_seconds=0.3)
    with connect(service) as silent, connect(service) as slow:
        slow.sendall(b"GET /v1/models HTTP/1.1\r\nHost: 127.0")
        for connection in (silent, slow):
            assert is_closed(connection)


def test_a_second_request_may_not_be_slow_either(start, linear_run: Path) -> None:
    service = start(linear_run, header_seconds=0.5)
    with connect(service) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = b""
        while b'{"status":"ok"}' not in answer:
            answer += connection.recv(4096)
        connection.sendall(b"GET /hea")
        assert is_closed(connection)


def test_an_answer_that_nobody_reads_is_given_up(start, linear_run: Path) -> None:
    service = start(linear_run, reading_seconds=0.2)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(TIMEOUT)
        connection.connect(("127.0.0.1", service.port))
        connection.sendall(b"GET /static/plotly.min.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        deadline = time.monotonic() + TIMEOUT
        while service.server.server_state.connections and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not service.server.server_state.connections


def test_what_is_not_http_is_answered_in_the_same_shape(live) -> None:
    with connect(live) as connection:
        connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        status, headers, body = read_answer(connection)
    assert (status, json.loads(body)["error"]["code"]) == (400, "bad_http")
    assert headers["content-type"] == "application/json"


def test_a_full_queue_says_when_to_come_back(start, linear_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_free, has_come, forecast = threading.Event(), threading.Semaphore(0), Worker.forecast

    def hold_and_forecast(worker, *arguments):
        worker.submit(lambda: is_free.wait(TIMEOUT))
        has_come.release()
        return forecast(worker, *arguments)

    monkeypatch.setattr(Worker, "forecast", hold_and_forecast)
    service, answers = start(linear_run, most_waiting=3), []

    def ask() -> None:
        answers.append(httpx.get(f"{service.url}/v1/forecast/latest", timeout=TIMEOUT, trust_env=False).status_code)

    clients = [threading.Thread(target=ask) for _ in range(3)]
    for client in clients:
        client.start()
    try:
        for _ in clients:
            assert has_come.acquire(timeout=TIMEOUT)
        for _ in range(3):
            refused = service.client.get("/v1/forecast/latest")
            assert refused.status_code == 429
            assert refused.json()["error"]["code"] == "overload"
            assert int(refused.headers["retry-after"]) >= 1
        assert service.get("/healthz") == {"status": "ok"}  # those who look after it are not turned away
    finally:
        is_free.set()
        for client in clients:
            client.join()
    assert answers == [200] * 3
    assert service.client.get("/v1/forecast/latest").status_code == 200
