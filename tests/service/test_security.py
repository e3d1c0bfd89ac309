"""Who is let in, where the service listens, and what a browser is told."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import make_run, river

from candor.core.errors import InputError
from candor.data.panel import Sensor
from candor.service.auth import check_binding, is_loopback, read_token
from candor.service.page import page_files
from candor.service.server import bind, prepare
from candor.service.settings import ServiceSettings

TOKEN = "8f2c-is-secret"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def guarded(start_for_all, linear_run: Path):
    """A service that asks for a token."""
    return start_for_all(linear_run, token=TOKEN)


def test_without_the_right_token_nothing_is_told(guarded) -> None:
    for sent in (None, "Bearer", "Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, b"Bearer gr\xfcn"):
        headers = {} if sent is None else {"authorization": sent}
        for path in ("/v1/models", "/v1/openapi.json", "/v1/nothing", "/metrics"):
            status, error = guarded.refusal("GET", path, headers=headers)
            assert (status, error["code"]) == (401, "unauthorized")
            assert TOKEN not in str(error)
        answer = guarded.client.post("/v1/forecast", headers=headers, content=b"x" * 100_000)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"


def test_the_right_token_opens_and_some_doors_need_none(guarded) -> None:
    for path in ("/v1/models", "/v1/openapi.json", "/metrics"):
        assert guarded.client.get(path, headers={"authorization": f"bearer {TOKEN}"}).status_code == 200
    for path in ("/", "/healthz", "/readyz", "/static/plotly.min.js"):
        assert guarded.client.get(path).status_code == 200
    document = guarded.client.get("/v1/openapi.json", headers={"authorization": f"Bearer {TOKEN}"}).json()
    assert document["paths"]["/v1/models"]["get"]["security"]


def test_a_token_is_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CANDOR_TOKEN", raising=False)
    assert read_token(None) is None
    file = tmp_path / "token"
    file.write_text(f"  {TOKEN}\n")
    assert read_token(file).get_secret_value() == TOKEN
    monkeypatch.setenv("CANDOR_TOKEN", "other")
    assert read_token(None).get_secret_value() == "other"
    assert read_token(file).get_secret_value() == TOKEN
    assert TOKEN not in repr(ServiceSettings(token=read_token(file)))


@pytest.mark.parametrize("content", [b"", b" \n", b"two words", "grün".encode(), b"\xff\xfe"])
def test_what_cannot_be_a_token_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(InputError, match="token"):
        read_token(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_token(tmp_path / "absent")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1"])
def test_this_machine_alone_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    check_binding(ServiceSettings(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_beyond_this_machine_a_token_or_a_word_is_needed(host: str, linear_run: Path) -> None:
    assert not is_loopback(host)
    with pytest.raises(InputError, match="no token"):
        prepare([linear_run], ServiceSettings(host=host, port=0), print)
    check_binding(ServiceSettings(host=host, token=TOKEN))
    check_binding(ServiceSettings(host=host, allow_open=True))


def test_a_port_that_is_taken_is_said_in_plain_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError, match="cannot listen"):
        bind("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(InputError, match="no network address"):
        is_loopback("no.such.host.invalid")


def test_a_page_that_calls_itself_this_machine_is_turned_away(live, guarded) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000"):
        status, error = live.refusal("GET", "/v1/models", headers={"host": host})
        assert (status, error["code"]) == (421, "wrong_host")
    for host in ("localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000"):
        assert live.client.get("/v1/models", headers={"host": host}).status_code == 200
    known = {"host": "behind.a.proxy", "authorization": f"Bearer {TOKEN}"}
    assert guarded.client.get("/v1/models", headers=known).status_code == 200


@pytest.mark.parametrize("path", ["/", "/v1/models", "/nothing", "/static/plotly.min.js", "/healthz"])
def test_every_answer_tells_browsers_to_trust_nothing_else(live, path: str) -> None:
    headers = live.client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["script-src"] == "'self'" and policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'" and "unsafe-eval" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_the_files_of_the_page_have_their_types(live) -> None:
    kinds = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    files = page_files()
    assert {"index.html", "plotly.min.js"} <= set(files)
    for name, path in files.items():
        answer = live.client.get(f"/static/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].split(";")[0] == kinds.get(path.suffix, "")
        assert answer.content == path.read_bytes()
    assert live.client.get("/").content == files["index.html"].read_bytes()


def test_a_file_that_has_not_changed_is_not_sent_again(live) -> None:
    first = live.client.get("/static/plotly.min.js")
    again = live.client.get("/static/plotly.min.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/..%5capp.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/__init__.py",
        "/static/",
        "/static/index.html%00.js",
        "/static/./index.html",
    ],
)
def test_nothing_but_the_page_can_be_reached(live, path: str) -> None:
    with socket.create_connection(("127.0.0.1", live.port), timeout=120) as connection:  # clients tidy paths up
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 404 ") and b'"code":"not_found"' in answer


def test_a_script_in_the_name_of_a_sensor_comes_back_as_data(start, tmp_path: Path) -> None:
    panel = river()
    sensors = (Sensor(SCRIPT, SCRIPT, unit=SCRIPT), *panel.sensors[1:])
    service = start(make_run(tmp_path / "run", panel=replace(panel, sensors=sensors)))
    for path in ("/v1/sensors", "/v1/forecast/latest", "/v1/overview", f"/v1/history?sensor={SCRIPT}", "/v1/models"):
        answer = service.client.get(path)
        assert answer.headers["content-type"] == "application/json"
        assert SCRIPT in str(answer.json())
    status, error = service.refusal("GET", f"/v1/history?sensor={SCRIPT}{SCRIPT}")
    assert status == 404 and SCRIPT in error["what"]
